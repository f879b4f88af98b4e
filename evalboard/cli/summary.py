"""What CI shows of a run or a release: a step's summary, and the body of a comment that replaces its older self."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.cli import verdict_words as words
from evalboard.cli.answers import ReleaseAnswer, RunAnswer
from evalboard.cli.markdown import code, escaped, link, shortened, table
from evalboard.cli.results import FAILED, MISSING, CaseResult, SuiteResult
from evalboard.core.verdict_names import verdict_name

# GitHub takes 1 MiB of summary for a step and 65,536 characters of comment; nobody reads as much.
SUMMARY_BYTES = 64_000
COMMENT_BYTES = 24_000
CASES_IN_SUMMARY, CASES_IN_COMMENT = 50, 15
LONGEST_REASON, LONGEST_SENTENCE = 160, 600  # characters
MOST_LINES = 20  # of repeats, warnings, gates
ALWAYS = 2  # parts of a head: its title and its sentence
GLYPHS = {"ship": "✔", "no_ship": "✘", "inconclusive": "◐", "not_comparable": "≠"}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Page:
    """A report in parts: `head` always stands, of each suite's cases as many as there is room for."""

    suites: tuple[str, ...]
    head: tuple[str, ...]
    results: tuple[SuiteResult, ...]
    url: str


def of_run(run: RunAnswer, result: SuiteResult, *, said: str, note: str = "") -> Page:
    """`said` is the run's end in a sentence, `note` one that it stands with, such as why there is no lean."""
    head = [f"## {escaped(run.suite)}: run {run.id} {escaped(run.status)}", escaped(said)]
    if note:
        head.append(escaped(note))
    scored = [(str(line["index"]), _points(line["score"])) for line in run.json["repeats"]]
    head.append(table(("repeat", "score"), [(index, escaped(score)) for index, score in scored[:MOST_LINES]]))
    return Page((run.suite,), (*head, *_warnings(run.warnings)), (result,), run.url)


def of_release(judged: ReleaseAnswer, results: Sequence[SuiteResult], *, lean: str | None = None) -> Page:
    """`lean` is given where the answer is one, and no verdict."""
    word = judged.verdict if lean is None else lean
    suites = tuple(str(gate["suite"]) for gate in judged.gates)
    named = ", ".join(map(escaped, dict.fromkeys(suites)))
    title = verdict_name(judged.verdict) if lean is None else words.of_lean(lean)
    said = words.capital(title)
    head = [
        f"## {GLYPHS.get(word, '◐')} {escaped(said)}: {named}",
        escaped(shortened(judged.summary, LONGEST_SENTENCE)),
    ]
    if lean is not None:
        head.append(escaped(words.NO_VERDICT))
    rows = [_gate_row(gate, is_lean=lean is not None) for gate in judged.gates[:MOST_LINES]]
    head.append(table(("suite", "tier", "verdict", "baseline", "candidate", "change", "repeats"), rows))
    if judged.next_steps:
        head.append("\n".join(f"- next: {escaped(step)}" for step in judged.next_steps[:MOST_LINES]))
    return Page(suites, (*head, *_warnings(judged.warnings)), tuple(results), judged.url)


def text(page: Page) -> str:
    """The summary, at most SUMMARY_BYTES."""
    return _text(page, most_cases=CASES_IN_SUMMARY, most_bytes=SUMMARY_BYTES)


def comment(page: Page) -> str:
    """The same for a comment, its first line the marker by which the next one finds it."""
    body = _text(page, most_cases=CASES_IN_COMMENT, most_bytes=COMMENT_BYTES)
    return f"{marker(page.suites)}\n{body}\n<sub>The next run of this suite replaces this comment.</sub>\n"


def marker(suites: Sequence[str]) -> str:
    """Nothing of it is shown. A slug has only letters, digits, "-" and "_", so it cannot end the HTML comment."""
    return f"<!-- evalboard: {' '.join(sorted(set(suites)))} -->"


def _text(page: Page, *, most_cases: int, most_bytes: int) -> str:
    closing = f"{link('More on its page', page.url)}\n"
    parts = list(page.head[:ALWAYS])
    for part in page.head[ALWAYS:]:
        # Half the room is the cases'; what is left out for its size stands on the page.
        if _n_bytes([*parts, part, closing]) <= most_bytes // 2:
            parts.append(part)
    room = most_bytes - _n_bytes([*parts, closing])
    for result in page.results:
        for part in _cases(result, most_cases=most_cases, room=max(room, 0) // len(page.results)):
            parts.append(part)
    return "\n\n".join([*parts, closing])


def _n_bytes(parts: Sequence[str]) -> int:
    return sum(len(part.encode()) + len("\n\n") for part in parts)


def _cases(result: SuiteResult, *, most_cases: int, room: int) -> Iterator[str]:
    """What did not pass, as far as there is room; the rest is counted."""
    failed, missing = result.of(FAILED), result.of(MISSING)
    if not failed and not missing:
        return
    wrong = "got worse" if result.is_gate else "failed"
    named = [f"{_n_cases(len(failed))} {wrong}"] if failed else []
    named += [f"{_n_cases(len(missing))} without every response"] if missing else []
    title = f"**{escaped(result.suite)}: {', '.join(named)}**"
    rows: list[tuple[str, ...]] = []
    room -= len(title.encode()) + 200  # the table's head, and the line that counts the rest
    for case in (*failed, *missing)[:most_cases]:
        row = _case_row(case, is_gate=result.is_gate)
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


def _case_row(case: CaseResult, *, is_gate: bool) -> tuple[str, ...]:
    scores = [_points(case.baseline), _points(case.score)] if is_gate else [_points(case.score)]
    why = case.why if case.outcome == MISSING else case.reason or case.why
    said = code(shortened(why, LONGEST_REASON)) if why else ""
    return (link(code(case.case), case.url), *map(escaped, scores), said)


def _gate_row(gate: Json, *, is_lean: bool) -> tuple[str, ...]:
    verdict = verdict_name(gate["verdict"]) if not is_lean else words.of_lean(words.lean_of(gate) or "none")
    repeats = f"{gate['baseline']['n_repeats']} and {gate['candidate']['n_repeats']}"
    scores = [_points(gate[side]["score"]) for side in ("baseline", "candidate")]
    return tuple(map(escaped, (gate["suite"], gate["tier"], verdict, *scores, words.change(gate), repeats)))


def _warnings(found: Sequence[str]) -> list[str]:
    if not found:
        return []
    return ["\n".join(f"- warning: {escaped(shortened(each, LONGEST_SENTENCE))}" for each in found[:MOST_LINES])]


def _n_cases(n: int) -> str:
    return "1 case" if n == 1 else f"{n:,} cases"


def _points(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"
