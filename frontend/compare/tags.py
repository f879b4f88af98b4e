"""Render the rows of long tables in Python: a template would take several times as long."""

from collections.abc import Sequence
from functools import lru_cache
from html import escape

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe

from evalboard.contract.compare import CaseOutcome
from evalboard.contract.excerpt import PairExcerpt, ShownCase
from evalboard.wording.cause import name_changes
from frontend.compare.flip_chart import ChartedFlip
from frontend.compare.outcomes import OutcomeLine
from frontend.templatetags.drawing import case_name, drawn, drawn_plain, shortened
from frontend.templatetags.numbers import nats, p_value
from frontend.templatetags.pairs import answer_excerpt, boxed, cause_name, passes, side_mark

register = template.Library()

ARROW = '<span class="arrow" aria-hidden="true"> → </span>'
BASELINE, CANDIDATE = (f'<span class="visually-hidden">{side}</span>' for side in ("baseline", "candidate"))
# What the key `x` does, where there may be no keys.
WHOLE = (
    '<button type="button" class="link-button whole" data-whole data-needs-script aria-expanded="false">'
    "whole answers</button>"
)
TARGETED = "repeats of the cases most likely to flip alone; they count in a verdict and in no score"
TAGS_SHOWN = 2
SHOWN_AFTER = 64  # characters of an answer after its difference: what the column has room for
_passes = lru_cache(maxsize=1024)(passes)  # few differ


@register.simple_tag
def outcome_rows(lines: Sequence[OutcomeLine], *, has_chances: bool, is_compact: bool, prefix: str = "") -> SafeString:
    """Render a row per case. has_chances: mark those beyond chance; is_compact: one line per row.

    prefix: what all ids of the page begin with.
    """
    draw = _compact_row if is_compact else _row
    return mark_safe("".join(draw(line, has_chances, prefix) for line in lines))  # noqa: S308 (escaped below)


def _row(line: OutcomeLine, has_chances: bool, prefix: str) -> str:
    shown, case = line.row.shown, line.row.shown.outcome
    tags = "".join(f' <span class="tag">{drawn(tag)}</span>' for tag in case.tags[:TAGS_SHOWN])
    answers = f'<p class="prompt-line">{_question(line, 110)}</p>{_answers(shown)}'
    targeted = ""
    if all(line.row.targeted):
        both = " ".join(map(_passes, line.row.targeted))
        targeted = f'<span class="under" title="{TARGETED}">targeted {both}</span>'
    is_divided = shown.n_alike < shown.n_pairs
    alike = f"{shown.n_alike} of {shown.n_pairs} pairs" if is_divided else ""
    return _cells(line, prefix, tags, answers, targeted, _says(line, alike) + (_chance(case) if has_chances else ""))


def _compact_row(line: OutcomeLine, has_chances: bool, prefix: str) -> str:
    case, excerpt = line.row.shown.outcome, line.row.shown.excerpt
    is_moved = excerpt is not None and (excerpt.baseline.is_hit or excerpt.candidate.is_hit)
    tokens = f"{_tokens(excerpt)} " if excerpt and not is_moved and not _is_same_text(line.row.shown) else ""
    prompt = f'<span class="quiet">{_question(line, 90)}</span>'
    return _cells(line, prefix, "", tokens + prompt, "", _says(line) + (_chance(case) if has_chances else ""))


def _question(line: OutcomeLine, length: int) -> str:
    """Draw a case's question, which leads to the case over all runs."""
    prompt = line.row.shown.outcome.prompt
    title = escape(drawn_plain(shortened(prompt, 400)))
    return f'<a class="to-case" href="{escape(line.case_url)}" title="{title}">{drawn(shortened(prompt, length))}</a>'


def _cells(line: OutcomeLine, prefix: str, tags: str, answers: str, targeted: str, says: str) -> str:
    """Return the row. targeted: text below the passes; says: why the answers differ."""
    shown, case = line.row.shown, line.row.shown.outcome
    both = f"{BASELINE}{_passes(case.scores_baseline)}{ARROW}{CANDIDATE}{_passes(case.scores_candidate)}"
    reason = shown.excerpt.reason if shown.excerpt else ""
    name = f'title="{escape(drawn_plain(case.case))}">{case_name(case.case, prefix)}'
    return (
        f'<tr><th scope="row"><a class="mono" href="{escape(line.url)}" {name}</a>{tags}</th>'
        f'<td class="answers">{answers}</td><td class="passed">{both}{targeted}</td>'
        f'<td class="got"><span title="{escape(drawn_plain(reason))}">{drawn(shortened(reason, 100))}</span></td>'
        f'<td class="says">{says}</td></tr>\n'
    )


def _answers(shown: ShownCase) -> str:
    if shown.excerpt is None:
        return '<p class="quiet">One of the answers never came.</p>' if shown.outcome.pair else ""
    if _is_same_text(shown):
        drift = shown.outcome.pair and shown.outcome.pair.drift_onset
        both = "both sides" if drift is None else f"both sides, logprobs differ from token {drift}"
        marks = f'<span>{side_mark("baseline")}{side_mark("candidate")} <span class="quiet">{both}</span></span>'
        return f'<p class="answer-line same">{marks}{answer_excerpt(shown.excerpt.baseline)}</p>{WHOLE}'
    ours, theirs = (answer_excerpt(each, SHOWN_AFTER) for each in (shown.excerpt.baseline, shown.excerpt.candidate))
    return (
        f'<p class="answer-line">{side_mark("baseline")}{BASELINE}{ours}</p>'
        f'<p class="answer-line">{side_mark("candidate")}{CANDIDATE}{theirs}</p>{WHOLE}'
    )


def _is_same_text(shown: ShownCase) -> bool:
    pair, both = shown.outcome.pair, shown.excerpt
    return pair is None or (pair.flip_position is None and both is not None and both.baseline == both.candidate)


def _tokens(excerpt: PairExcerpt) -> str:
    ours, theirs = boxed(excerpt.baseline.token, "baseline"), boxed(excerpt.candidate.token, "candidate")
    return f'{ours} <span role="img" aria-label="to">→</span> {theirs}'


def _says(line: OutcomeLine, alike: str = "") -> str:
    pair = line.row.shown.outcome.pair
    changes = name_changes(pair.evidence) if pair else ""
    confounded = f'<span class="under">confounded: {escape(changes)} differ</span>' if changes else ""
    flip = "" if pair is None or pair.flip_position is None else f"at {pair.flip_position}"
    place = ", ".join(filter(None, (flip, alike)))
    under = f'<span class="under">{place}</span>' if place else ""
    return (cause_name(line.look) + under if line.look else "") + confounded


def _chance(case: CaseOutcome) -> str:
    if case.chance is None:
        return '<span class="under">moved in every repeat</span>'
    word = "<b>beyond chance</b>" if case.is_beyond_chance else "may be chance"
    return f'<span class="under">{word} {escape(p_value(case.chance))}</span>'


@register.simple_tag
def flip_rows(flips: tuple[ChartedFlip, ...]) -> SafeString:
    """Draw the scatter's numbers as rows of a table, each with a link to its flip."""
    return mark_safe("".join(map(_flip_row, flips)))  # noqa: S308 (escaped below)


def _flip_row(flip: ChartedFlip) -> str:
    point = flip.point
    numbers = "".join(f'<td class="number">{nats(value)}</td>' for value in (point.margin, point.movement, point.gap))
    return (
        f'<tr><th scope="row" class="mono"><a href="{conditional_escape(flip.url)}">{drawn(flip.case)}</a></th>'
        f'<td>{cause_name(point.cause)}</td><td class="number">{point.flip}</td>{numbers}</tr>'
    )
