"""A bisect as Markdown, as rows of a file, and as the command line prints it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from evalboard.wording.bisect import MARK_WORDS, MARKS, SAID
from evalboard.wording.numbers import capital, points, scores_beside, signed

if TYPE_CHECKING:
    from evalboard.contract.lab import Bisect, BisectCase, BisectField, BisectSide, Experiment

NOTHING = "–"
ENDED = "its end"
NAMES = (
    "field",
    "baseline",
    "candidate",
    "reach",
    "n_made",
    "n_undone",
    "n_reproduced",
    "points",
    "n_steps",
    "state",
    "finding",
    "note",
)
_HEADS = ("field", "baseline", "candidate", "causes", "undoes", "points", "steps", "finding")


def bisect_parts(experiment: "Experiment", bisect: "Bisect", *, address: str) -> list[str]:
    """Return the paragraphs of a bisect's report, from its heading to what comes before its cost."""
    runs = [f"[run {run}]({address}/runs/{run}/)" for run in (bisect.baseline, bisect.candidate)]
    where = f"{experiment.suite.slug} v{experiment.suite.version}, baseline {runs[0]}, candidate {runs[1]}"
    parts = [f"# Which change moved it? Run {bisect.baseline} to run {bisect.candidate}", experiment.sentence]
    parts += [f"{capital(experiment.status)}, {where}: {address}/lab/{experiment.id}/"]
    parts += [markdown_table(_SIDE_HEADS, _side_rows(bisect))] if bisect.sides else []
    parts += ["## Fields that differ", markdown_table(_HEADS, (_field_cells(each, bisect) for each in bisect.fields))]
    if len(bisect.fields) == 1 and bisect.steps:
        parts += [SAID.write("one_field")]
    if bisect.cases:
        parts += ["## What each step gave", markdown_table(*_grid(bisect))]
        marks = ", ".join(f"{mark} {MARK_WORDS[shown]}" for shown, mark in MARKS.items())
        parts += [f"{SAID.write('marks', marks=marks)} {describe_beside(bisect)}".strip()]
        parts += ["## Chosen cases", markdown_table(_CASE_HEADS, _case_cells(bisect)), SAID.write("spaces")]
    return parts


_SIDE_HEADS = ("", "run", "score", "endpoint", "profile", "ended")


def _side_rows(bisect: "Bisect") -> Iterator[Sequence[str]]:
    """Yield the two runs; their scores differ by the change that the bisect explains."""
    scores = {side.side: side.score for side in bisect.sides}
    beside = scores_beside(scores.get("baseline"), scores.get("candidate"), bisect.points)
    for side in bisect.sides:
        text = beside.baseline if side.side == "baseline" else f"{beside.candidate} {beside.note}".rstrip()
        yield _side_cells(side, text)


def _side_cells(side: "BisectSide", score: str) -> Sequence[str]:
    ended = NOTHING if side.finished_at is None else f"{side.finished_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return side.side, side.run, score, side.endpoint, side.profile, ended


def bisect_command(bisect: "Bisect") -> str:
    """Return the command that bisects the same runs again."""
    cases = f" --cases {len(bisect.cases)}" if bisect.cases else ""
    return f"evalboard bisect {bisect.baseline} {bisect.candidate}{cases}"


def bisect_rows(bisect: "Bisect") -> list[dict[str, Any]]:
    """Return a row for each field, by NAMES."""
    own = {"field": "name"}
    beside = {"n_reproduced": bisect.n_reproduced}
    return [
        {name: beside[name] if name in beside else getattr(field, own.get(name, name)) for name in NAMES}
        for field in bisect.fields
    ]


def render_fields(bisect: "Bisect") -> list[str]:
    """Return a line for each field, in columns."""
    lines = [_HEADS, *(_field_cells(each, bisect) for each in bisect.fields)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADS) - 1)]
    return ["  ".join([*(f"{line[at]:<{width}}" for at, width in enumerate(widths)), line[-1]]) for line in lines]


def describe_share(n: int | None, bisect: "Bisect") -> str:
    """Return "12 of 12", a dash where it was not tried."""
    return NOTHING if n is None or bisect.n_reproduced is None else f"{n} of {bisect.n_reproduced}"


def describe_points(value: float | None) -> str:
    """Return a change in points with its sign, a dash where it is not known."""
    return NOTHING if value is None else signed(value)


def describe_beside(bisect: "Bisect") -> str:
    """Say whether the control cases, which did not differ, changed in any step; "" without any."""
    known = [step.n_beside_moved for step in bisect.steps if step.n_beside_moved is not None]
    if not bisect.n_beside or not known:
        return ""
    n_steps = sum(map(bool, known))
    return SAID.write("some_moved" if n_steps else "none_moved", n=bisect.n_beside, n_steps=n_steps)


def _field_cells(field: "BisectField", bisect: "Bisect") -> Sequence[str]:
    finding = f"{field.finding}: {field.note}" if field.note else field.finding
    made, undone = (describe_share(each, bisect) for each in (field.n_made, field.n_undone))
    return (
        field.label,
        field.baseline,
        field.candidate,
        made,
        undone,
        describe_points(field.points),
        str(field.n_steps),
        finding,
    )


def _grid(bisect: "Bisect") -> tuple[Sequence[str], Iterable[Sequence[str]]]:
    heads = ("step", *(case.case for case in bisect.cases), "flips")
    rows = (
        (
            step.label,
            *([MARKS[shown] for shown in step.shown] or [""] * len(bisect.cases)),
            step.status if step.n_candidate is None else describe_share(step.n_candidate, bisect),
        )
        for step in bisect.steps
    )
    return heads, rows


_CASE_HEADS = (
    "case",
    "parts at",
    "baseline has",
    "candidate has",
    "movement, nats",
    "baseline's score",
    "candidate's score",
    "came again",
)


def _case_cells(bisect: "Bisect") -> Iterable[Sequence[str]]:
    for case in bisect.cases:
        yield (
            case.case,
            f"{case.unit} {case.position}",
            *_there(case),
            NOTHING if case.movement is None else f"{case.movement:.3g}",
            NOTHING if case.score_baseline is None else points(case.score_baseline),
            NOTHING if case.score_candidate is None else points(case.score_candidate),
            _came_again(case),
        )


def _came_again(case: "BisectCase") -> str:
    if case.is_chance:
        return "chance"
    return NOTHING if case.is_reproduced is None else "yes" if case.is_reproduced else "no"


def _there(case: "BisectCase") -> Sequence[str]:
    """Return each answer's token where the two diverge; a dash each if an older plan lacks it."""
    tokens = case.token_baseline, case.token_candidate
    if tokens == (None, None):
        return NOTHING, NOTHING
    return [ENDED if token is None else f"`` {token} ``" if "`" in token else f"`{token}`" for token in tokens]


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)
