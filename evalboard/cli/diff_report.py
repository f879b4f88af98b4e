"""A comparison of two logs as text for the terminal, and as Markdown."""

import shutil
import sys
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from evalboard.cli.compare import render_comparison
from evalboard.cli.summary import (
    MAX_SENTENCE_CHARS,
    MAX_SUMMARY_BYTES,
    code,
    draw_line,
    escape,
    fence,
    shorten,
    table,
    visible,
)
from evalboard.client.errors import WrongUse
from evalboard.contract.compare import SIDES
from evalboard.core.compare import cut_pair, cut_texts
from evalboard.core.scoring import is_external
from evalboard.wording.numbers import counted, fixed, nats, percent, points, score_range
from evalboard.wording.scorers import ONLY_A_WORKER, name_scorer

if TYPE_CHECKING:
    from evalboard.contract.compare import ComparedCase
    from evalboard.contract.excerpt import AnswerExcerpt
    from evalboard.core.compare import ResponseFacts
    from evalboard.core.trace import Vocabulary
    from evalboard.logged.comparing import LogComparison, WorstCase
    from evalboard.logged.memory import LogRun
    from evalboard.logged.sources import SplitRun

LETTERS = "AB"
RED, GREEN, BOLD, PLAIN = "\033[31m", "\033[32m", "\033[1m", "\033[0m"
WIDTH = 120
BEFORE, AFTER = 6, 10  # tokens around the one where the answers part
PART = "    "  # before a part of the ledger's line above it
MAX_FACTS, MAX_ID_CHARS = 30, 200  # in Markdown


def render_text(made: "LogComparison", names: Sequence[str], limit: int) -> str:
    """Return the summary, comparability, causes with points, then cases, worst first."""
    comparison, worst = made.comparison, made.list_worst()
    lines = [*render_comparison(comparison, f"{names[1]} against {names[0]}").split("\n"), *_list_ranges(made)]
    head = list(map(_safe, lines))
    if not worst:
        return "\n".join([*head, "No case differs."])
    if not limit:
        return "\n".join([*head, f"{_count_shown(worst, len(worst))}."])
    title = f"{_count_shown(worst, limit)} (A is {names[0]}, B is {names[1]}):"
    return "\n\n".join(["\n".join(head), title, *(_render_worst(made, each) for each in worst[:limit])])


def render_markdown(made: "LogComparison", names: Sequence[str], limit: int, reached: Sequence[str] = ()) -> str:
    """Return the same as Markdown for a check or a comment, at most MAX_SUMMARY_BYTES.

    Nothing from a model is read as markup. reached: sentences on limits.
    """
    comparison, worst = made.comparison, made.list_worst()
    lines = [*render_comparison(comparison, f"{names[1]} against {names[0]}").split("\n"), *_list_ranges(made)]
    title, *facts = (escape(shorten(line.strip(), MAX_SENTENCE_CHARS)) for line in lines)
    facts = [f"{'  ' if line.startswith(PART) else ''}- {fact}" for line, fact in zip(lines[1:], facts, strict=True)]
    left = [f"- {len(facts) - MAX_FACTS} more lines, by `evalboard diff` itself"] if len(facts) > MAX_FACTS else []
    parts = [
        f"### {title}",
        "\n".join(f"- **{escape(shorten(each, MAX_SENTENCE_CHARS))}**" for each in reached),
        "\n".join([*facts[:MAX_FACTS], *left]),
        _render_hunk(made, worst),
    ]
    parts = [part for part in parts if part]
    room, rows = MAX_SUMMARY_BYTES - sum(len(part.encode()) + 2 for part in parts) - 200, []
    for each in worst[:limit]:
        [pair] = made.write_pairs([each.pair])
        answers = (code(_join(cut)) for cut in _cut(made, each))
        why = escape(shorten(pair.text, MAX_SENTENCE_CHARS))
        rows.append((code(shorten(pair.case, MAX_ID_CHARS)), escape(_scores(each)), *answers, why))
        room -= len(" | ".join(rows[-1]).encode()) + 6
        if room < 0:
            rows.pop()
            break
    shown = [escape(f"{_count_shown(worst, len(rows))}:"), table(("case", "score", "A", "B", "cause"), rows)]
    return "\n\n".join([*parts, *(shown if rows else [])])


def _render_hunk(made: "LogComparison", worst: "Sequence[WorstCase]") -> str:
    """Return the worst case with diverging tokens as a diff block, else the worst one; "" without any."""
    first = next((each for each in worst if each.pair.flip.flip_position is not None), worst[0] if worst else None)
    if first is None:
        return ""
    ours, theirs = _cut(made, first)
    if not ours.token and not theirs.token:
        return ""
    [pair] = made.write_pairs([first.pair])
    place = f", token {pair.flip_position:,}" if pair.flip_position is not None else ""
    prompt = shorten(" ".join(made.prompt(first.pair).split()), WIDTH)
    before = f"{'…' if ours.is_cut else ''}{ours.before}"
    lines = [f"@@ {shorten(draw_line(pair.case), MAX_ID_CHARS)}{place} @@ {prompt}", f" {before}"]
    return fence([*lines, f"-{ours.token}{ours.after}", f"+{theirs.token}{theirs.after}"], "diff")


def render_case(made: "LogComparison", case_id: str) -> str:
    """Return one case: the prompt, the cause, and both answers token by token around where they part."""
    index, only = made.find_case(case_id)
    cases = made.baseline.suite_version.cases
    if only:
        return f"{case_id}: only {LETTERS[SIDES.index(only)]} has this case."
    if index is None and not any(case.id == case_id for case in cases):
        raise WrongUse(f"No case is called {case_id}. The first is {cases[0].id}.")
    if index is None:
        return f"{case_id}: its prompt or its target is another one on the other side, so it is no pair."
    worst = next((each for each in made.list_worst() if each.pair.flip.case_index == index), None)
    if worst is None:
        logprobs = " with the same logprobs" if made.has_tokens else ""
        return f"{case_id}: both sides gave the same answers{logprobs}."
    [pair] = made.write_pairs([worst.pair])
    facts, words = made.answers(worst.pair), made.vocabularies
    traced = [each.place for each in facts if each is not None and each.place is not None]
    lines = [_render_worst(made, worst)]
    if len(traced) == 2 and words[0] is not None and words[1] is not None:
        lines.append("\n".join(_list_tokens(pair, traced, (words[0], words[1]))))
    for letter, each in zip(LETTERS, facts, strict=True):
        lines.append(f"{letter} said:\n{_indent(each.text if each is not None else '')}")
    return "\n\n".join(lines)


def render_parts(run: "SplitRun", *, as_markdown: bool) -> str:
    """Return who answered a run: share and score of each fingerprint, provider and model."""
    parts = run.parts
    n = sum(part.n_answers for part in parts)
    prints = {part.fingerprint for part in parts if part.fingerprint}
    who = f"{counted(len(prints), 'fingerprint')} answered" if prints else "the log names no fingerprint"
    title = f"{run.name}: {counted(n, 'answer')} of {run.tool or 'an unnamed tool'}, {who}."
    head = ("fingerprint", "provider", "model", "answers", "share", "score")
    rows = [
        (
            part.fingerprint or "–",
            part.provider or "–",
            part.model or "–",
            f"{part.n_answers:,}",
            percent(part.share),
            "–" if part.score is None else points(part.score),
        )
        for part in parts
    ]
    if as_markdown:
        return f"{escape(title)}\n\n{table(head, [tuple(map(escape, row)) for row in rows])}"
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    ]
    return "\n".join([title, *lines, *(f"note: {_safe(note)}" for note in run.notes)])


def _count_shown(worst: "Sequence[WorstCase]", limit: int) -> str:
    n = len(worst)
    return f"{counted(n, 'case')} {'differs' if n == 1 else 'differ'}" + (
        f", the worst {min(limit, n)} of them" if limit < n else ""
    )


def _list_ranges(made: "LogComparison") -> list[str]:
    """Say the range of each side's repeats, why a side has no score, and what its log lacks."""
    lines, comparison = [], made.comparison
    sides, runs = (comparison.sides.baseline, comparison.sides.candidate), (made.baseline, made.candidate)
    for letter, side, run in zip(LETTERS, sides, runs, strict=True):
        if len(side.buckets) > 1:
            n = len(side.buckets)
            lines.append(f"{letter}: {n} backends answered, so it has no score as a whole. To see each, diff it alone.")
        elif all(repeat.score is None for repeat in side.repeats):
            lines.append(f"{letter}: no repeat has a score: {_explain_no_score(made, run)}")
        elif side.range is not None and len(side.repeats) > 1:
            lines.append(f"{letter}: {score_range(*side.range)} in {counted(len(side.repeats), 'repeat')}.")
    notes = [run.notes for run in (made.baseline, made.candidate)]
    lines += [f"note on {'A and B' if note in notes[1] else 'A'}: {note}" for note in notes[0]]
    return lines + [f"note on B: {note}" for note in notes[1] if note not in notes[0]]


def _explain_no_score(made: "LogComparison", run: "LogRun") -> str:
    plan = run.suite_version.scorer.spec
    if run.is_log and is_external(plan):
        return f"its suite is scored by {name_scorer(plan)}, and {ONLY_A_WORKER.format(log='LOG')}"
    if made.comparison.score.difference is None:
        return "the log holds none, or answers are missing."
    return "answers are missing in each. The points are of the cases that both sides answered."


def _render_worst(made: "LogComparison", worst: "WorstCase") -> str:
    [pair] = made.write_pairs([worst.pair])
    alike = f", {worst.n_alike} of {worst.n_pairs} pairs alike" if worst.n_pairs > 1 else ""
    lines = [f"{_paint(draw_line(pair.case), BOLD)}  {_scores(worst)}  {pair.cause}{alike}"]
    lines.append(f"  prompt   {shorten(draw_line(made.prompt(worst.pair)), _width())}")
    for letter, cut, colour in zip(LETTERS, _cut(made, worst), (RED, GREEN), strict=True):
        marked = _paint(f"[{_safe(cut.token)}]", colour) if cut.token else ""
        before, after = f"{'…' if cut.is_cut else ''}{_safe(cut.before)}", _safe(shorten(cut.after, 70))
        lines.append(f"  {letter}        {before}{marked}{after}")
    margins = [
        f"{letter} {nats(margin)}" for letter, margin in zip(LETTERS, pair.margins, strict=True) if margin is not None
    ]
    lines += [f"  margins  {', '.join(margins)}"] if margins else []
    return "\n".join([*lines, f"  cause    {draw_line(pair.text)}"])


def _cut(made: "LogComparison", worst: "WorstCase") -> "tuple[AnswerExcerpt, AnswerExcerpt]":
    """Cut both answers around where they part: by tokens of one vocabulary, else by their texts."""
    ours, theirs = made.answers(worst.pair)
    words = made.vocabularies[0]
    if ours is not None and theirs is not None and ours.place is not None and theirs.place is not None:
        is_one = ours.vocabulary_id is not None and ours.vocabulary_id == theirs.vocabulary_id
        if is_one and words is not None and (cut := cut_pair(ours.place, theirs.place, words)):
            return cut
    return cut_texts(_text(ours), _text(theirs))


def _text(facts: "ResponseFacts | None") -> str:
    return "" if facts is None else facts.text


def _list_tokens(pair: "ComparedCase", traces: Sequence, words: "tuple[Vocabulary, Vocabulary]") -> list[str]:  # type: ignore[type-arg]
    """Return a line for each position around where the answers part: both tokens with logprob and margin."""
    at = pair.at or 0
    first, last = max(at - BEFORE, 0), at + AFTER
    columns = []
    for trace, own in zip(traces, words, strict=True):
        ids, margins = trace.token_ids[first:last].tolist(), trace.margins()[first:last]
        tokens = [_safe(token) for token in own.draw(ids)]
        rows = zip(tokens, trace.logprobs[first:last].tolist(), margins.tolist(), strict=True)
        longest = max(map(len, tokens), default=0)
        columns.append(
            [f"{each:<{longest}}  {fixed(logprob, 3):>7}  {_margin(margin):>6}" for each, logprob, margin in rows]
        )
    width = max((len(cell) for cell in columns[0]), default=0)
    lines = [f"{'position':>8}  {'A: token, logprob, margin':<{max(width, 25)}}  B"]
    for place in range(max(map(len, columns), default=0)):
        ours, theirs = (next(islice(column, place, None), "") for column in columns)
        line = f"{first + place:>8}  {ours:<{max(width, 25)}}  {theirs}"
        lines.append(_paint(line, BOLD) if first + place == at else line)
    return lines


def _margin(margin: float) -> str:
    return fixed(margin, 3) if np.isfinite(margin) else "–"


def _scores(worst: "WorstCase") -> str:
    sides = [worst.scores_baseline, worst.scores_candidate]
    ours, theirs = (" ".join("–" if each is None else points(100 * each, 0) for each in side) or "–" for side in sides)
    return f"{ours} → {theirs}"


def _join(cut: "AnswerExcerpt") -> str:
    marked = f"[{cut.token}]" if cut.token else ""
    return shorten(f"{'…' if cut.is_cut else ''}{cut.before}{marked}{cut.after}", 120)


def _width() -> int:
    return min(shutil.get_terminal_size((WIDTH, 20)).columns, WIDTH) - 11


def _indent(text: str) -> str:
    return "\n".join(f"  {_safe(line)}" for line in text.splitlines()) or "  (nothing)"


def _safe(text: str) -> str:
    """Return a line of an answer as a terminal may be given it: what cannot be seen shows by its code."""
    return "".join(map(visible, text))


def _paint(text: str, colour: str) -> str:
    return f"{colour}{text}{PLAIN}" if sys.stdout.isatty() else text
