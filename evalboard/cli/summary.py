"""Render a run or a release for CI: a step summary, and a comment that replaces the previous one.

Both are Markdown for GitHub and GitLab; nothing from a model or a case is read as markup.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalboard.cli.results import FAILED, MISSING, CaseResult, SuiteResult
from evalboard.wording.numbers import capital, counted, points, scores_beside
from evalboard.wording.results import (
    NO_VERDICT,
    change_digits,
    describe_draws,
    describe_lean,
    describe_verdict,
    find_lean,
    render_change,
)

if TYPE_CHECKING:
    from evalboard.contract.release import Gate, Release, ReleaseWarning
    from evalboard.contract.run import Run, RunWarning

# GitHub takes 1 MiB of summary for a step and 65,536 characters of comment; nobody reads as much.
MAX_SUMMARY_BYTES = 64_000
MAX_COMMENT_BYTES = 24_000
MAX_SUMMARY_CASES, MAX_COMMENT_CASES = 50, 15
MAX_REASON_CHARS, MAX_SENTENCE_CHARS = 160, 600
MAX_LINES = 20  # of repeats, warnings, gates
ALWAYS = 2  # parts of a head: its title and its sentence
GLYPHS = {"ship": "✔", "no_ship": "✘", "inconclusive": "◐", "not_comparable": "≠"}

# Everything but letters, digits and spaces goes out as a character reference: Markdown reads these as text, never as
# structure, inside a table's cell, too.
NOT_PLAIN = re.compile(r"[^\w ]|_")
# Where GitHub and GitLab find mentions, references and addresses, even in what came as character references.
LINKED = re.compile(r"[@#!%~$&](?=\w)|\.(?=[^\W\d])|:(?=/)")
JOINER = "&#8288;"  # a word joiner: nothing to see, and no link
NOT_IN_ADDRESS = re.compile(r"[^\w\-.~:/?#@!$&*+,=%]", re.ASCII)


@dataclass(frozen=True, slots=True)
class SummaryPage:
    """A report in parts: `head` is always shown, the suites' cases as space permits."""

    suites: tuple[str, ...]
    head: tuple[str, ...]
    results: tuple[SuiteResult, ...]
    url: str


def build_run_page(run: "Run", result: SuiteResult, *, sentence: str, note: str = "") -> SummaryPage:
    """Return a run's page. sentence: how it ended; note: a remark, such as why there is no lean."""
    head = [f"## {escape(run.suite.slug)}: run {run.id} {escape(run.status)}", escape(sentence)]
    head += [escape(line) for line in (describe_draws(run), note) if line]
    scores = [(str(repeat.index), escape(_render_points(repeat.score))) for repeat in run.repeats[:MAX_LINES]]
    head.append(table(("repeat", "score"), scores))
    head += _render_warnings(run.warnings)
    return SummaryPage((run.suite.slug,), tuple(head), (result,), run.url)


def build_release_page(release: "Release", results: Sequence[SuiteResult], *, lean: str | None = None) -> SummaryPage:
    """Return a release's page. `lean` is given where the answer is one, and no verdict."""
    word = release.verdict if lean is None else lean
    suites = tuple(gate.suite for gate in release.gates)
    names = ", ".join(map(escape, dict.fromkeys(suites)))
    title = describe_verdict(release.verdict) if lean is None else describe_lean(lean)
    head = [
        f"## {GLYPHS.get(word or '', '◐')} {escape(capital(title))}: {names}",
        escape(shorten(release.summary, MAX_SENTENCE_CHARS)),
    ]
    if lean is not None:
        head.append(escape(NO_VERDICT))
    rows = [_render_gate(gate, is_lean=lean is not None) for gate in release.gates[:MAX_LINES]]
    head.append(table(("suite", "tier", "verdict", "baseline", "candidate", "change", "repeats"), rows))
    head += [escape(shorten(text, MAX_SENTENCE_CHARS)) for text in release.computations[:MAX_LINES]]
    if release.next:
        head.append("\n".join(f"- next: {escape(step.text)}" for step in release.next[:MAX_LINES]))
    head += _render_warnings(release.warnings)
    return SummaryPage(suites, tuple(head), tuple(results), release.url)


def render_summary(page: SummaryPage) -> str:
    """Return the summary, at most MAX_SUMMARY_BYTES."""
    return _render(page, max_cases=MAX_SUMMARY_CASES, max_bytes=MAX_SUMMARY_BYTES)


def render_comment(page: SummaryPage) -> str:
    """Return the page as a comment; its first line is the marker by which the next one finds it."""
    body = _render(page, max_cases=MAX_COMMENT_CASES, max_bytes=MAX_COMMENT_BYTES)
    return f"{render_marker(page.suites)}\n{body}\n<sub>The next run of this suite replaces this comment.</sub>\n"


def render_marker(suites: Sequence[str]) -> str:
    """Return the invisible marker of a comment.

    A slug has only letters, digits, "-" and "_", so it cannot end the HTML comment.
    """
    return f"<!-- evalboard: {' '.join(sorted(set(suites)))} -->"


def _render(page: SummaryPage, *, max_cases: int, max_bytes: int) -> str:
    closing = f"{link('More on its page', page.url)}\n"
    parts = list(page.head[:ALWAYS])
    for part in page.head[ALWAYS:]:
        # Half the room is the cases'; what is left out for its size stands on the page.
        if _count_bytes([*parts, part, closing]) <= max_bytes // 2:
            parts.append(part)
    room = max_bytes - _count_bytes([*parts, closing])
    for result in page.results:
        for part in _list_cases(result, max_cases=max_cases, room=max(room, 0) // len(page.results)):
            parts.append(part)
    return "\n\n".join([*parts, closing])


def _count_bytes(parts: Sequence[str]) -> int:
    return sum(len(part.encode()) + len("\n\n") for part in parts)


def _list_cases(result: SuiteResult, *, max_cases: int, room: int) -> Iterator[str]:
    """Yield the cases that did not pass, as space permits, and count the others."""
    failed, missing = result.select(FAILED), result.select(MISSING)
    if not failed and not missing:
        return
    wrong = "got worse" if result.is_gate else "failed"
    counts = [f"{counted(len(failed), 'case')} {wrong}"] if failed else []
    counts += [f"{counted(len(missing), 'case')} without every response"] if missing else []
    title = f"**{escape(result.suite)}: {', '.join(counts)}**"
    rows: list[tuple[str, ...]] = []
    room -= len(title.encode()) + 200  # the table's head, and the line that counts the rest
    for case in (*failed, *missing)[:max_cases]:
        row = _render_case(case, is_gate=result.is_gate)
        room -= len(" | ".join(row).encode()) + 6
        if room < 0:
            break
        rows.append(row)
    yield title
    head = ("case", "baseline", "candidate", "why") if result.is_gate else ("case", "score", "why")
    if rows:
        yield table(head, rows)
    if n_left := len(failed) + len(missing) - len(rows):
        yield f"{n_left:,} more on {link('its page', result.url)}."


def _render_case(case: CaseResult, *, is_gate: bool) -> tuple[str, ...]:
    scores = [_render_points(case.baseline), _render_points(case.score)] if is_gate else [_render_points(case.score)]
    why = case.why if case.outcome == MISSING else case.reason or case.why
    reason = code(shorten(why, MAX_REASON_CHARS)) if why else ""
    return (link(code(case.case), case.url), *map(escape, scores), reason)


def _render_gate(gate: "Gate", *, is_lean: bool) -> tuple[str, ...]:
    verdict = describe_verdict(gate.verdict) if not is_lean else describe_lean(find_lean(gate) or "none")
    sides = (gate.baseline, gate.candidate)
    beside = scores_beside(gate.baseline.score, gate.candidate.score, gate.difference, change_digits(gate))
    scores = [beside.baseline, f"{beside.candidate} {beside.note}".rstrip()]
    repeats = " and ".join(str(side.n_repeats) for side in sides)
    return tuple(map(escape, (gate.suite, gate.tier, verdict, *scores, render_change(gate), repeats)))


def _render_warnings(warnings: "Sequence[RunWarning | ReleaseWarning]") -> list[str]:
    """Return a part with the warnings; no part where there are none."""
    lines = [f"- {each.severity}: {escape(shorten(each.text, MAX_SENTENCE_CHARS))}" for each in warnings[:MAX_LINES]]
    return ["\n".join(lines)] if lines else []


def _render_points(value: float | None) -> str:
    return "" if value is None else points(value)


def escape(text: str) -> str:
    """Return untrusted text on one line, escaped for a sentence or a table cell."""
    line = draw_line(text)
    linked = {match.start() for match in LINKED.finditer(line)}
    return "".join(_reference(each) + (JOINER if at in linked else "") for at, each in enumerate(line))


def code(text: str) -> str:
    """Return it set as code, in which nothing is taken for a mention either."""
    return f"<code>{''.join(map(_reference, draw_line(text)))}</code>"


def fence(lines: Sequence[str], language: str) -> str:
    """Return anybody's lines as a block of code, which none of them can end."""
    shown = list(map("".join, (map(visible, line) for line in lines)))
    longest = max((len(run) for line in shown for run in re.findall("`+", line)), default=0)
    marks = "`" * max(longest + 1, 3)
    return "\n".join([f"{marks}{language}", *shown, marks])


def shorten(text: str, n: int) -> str:
    return text if len(text) <= n else text[: n - 1] + "…"


def link(words: str, url: str) -> str:
    """Return a link; `words` are Markdown already."""
    address = NOT_IN_ADDRESS.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode(errors="replace")), url
    )
    return f"[{words}]({address})" if address.startswith(("http://", "https://")) else words


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; cells are Markdown already, and an empty one is a dash."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell or '–' for cell in line)} |" for line in lines)


def _reference(character: str) -> str:
    return f"&#{ord(character)};" if NOT_PLAIN.match(character) else character


def draw_line(text: str) -> str:
    """Return text on one line with invisible characters shown by code; they might hide or reverse parts."""
    spaced = " ".join(text.split())
    return "".join(visible(each) for each in spaced)


def visible(character: str) -> str:
    """Return a character, or its code where it cannot be seen."""
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"\\u{{{ord(character):x}}}"
    return character
