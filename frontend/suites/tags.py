"""Draw a case's results by run in Python: a template would take several times as long."""

from collections.abc import Sequence
from html import escape

from django import template
from django.utils.safestring import SafeString, mark_safe

from evalboard.contract.case import CaseChange, CaseRepeat, CaseRun
from frontend.templatetags.drawing import drawn_plain, score_mark

register = template.Library()

LETTERS_WITH_INK = "ABCDEF"


@register.simple_tag
def answer_chip(letter: str | None) -> SafeString:
    """Draw an answer's letter on the ink of that letter; the rarer ones share a plain ground."""
    ink = f" ink-{letter.lower()}" if letter and letter in LETTERS_WITH_INK else ""
    return mark_safe(f'<span class="answer-chip{ink}">{escape(letter or "–")}</span>')  # noqa: S308 (escaped)


@register.simple_tag
def case_columns(runs: Sequence[CaseRun]) -> SafeString:
    """Draw a column per run, newest first: what changed, a mark per repeat, the day and the run."""
    return mark_safe("".join(map(_column, runs)))  # noqa: S308 (escaped below)


def _column(run: CaseRun) -> str:
    marks = "".join(map(_mark, run.repeats)) or '<li class="faint">no answer</li>'
    changed = ""
    if run.changes:
        title = escape(drawn_plain("; ".join(map(_describe, run.changes))))
        changed = (
            f'<span class="changed-then" title="{title}">{escape(", ".join(each.what for each in run.changes))}</span>'
        )
    name = f"{escape(drawn_plain(run.model))}, {escape(drawn_plain(run.server))}"
    day = f'<time datetime="{run.ran_at:%Y-%m-%d}">{run.ran_at.day} {run.ran_at:%b}</time>'
    label = f'<a href="{escape(run.url)}" title="{name}">{day}<br>run {run.run}</a>'
    kind = ' class="has-change"' if run.changes else ""
    return f"<li{kind}>{changed}<ol>{marks}</ol>{label}</li>"


def _mark(repeat: CaseRepeat) -> str:
    title = f' title="{escape(repeat.error)}"' if repeat.error else ""
    odd = "" if repeat.is_sample else ' class="no-sample"'
    return f"<li{title}{odd}>{score_mark(repeat.score, repeat.repeat)}{answer_chip(repeat.answer)}</li>"


def _describe(change: CaseChange) -> str:
    return f"{change.what} {change.before} → {change.after}" if len(change.after) < 60 else f"{change.what} changed"
