"""What is said of an experiment of the lab: its sources by size, what moves nothing, and where nothing may be said."""

from evalboard.contract.lab_kinds import Source
from evalboard.core.lab import ArmFigures, combine_arms, judge_rows
from evalboard.wording.lab import (
    REASONS,
    SentenceRow,
    describe_experiment,
    describe_finding,
    describe_reason,
    describe_source,
)
from evalboard.wording.numbers import capital
from tests.core.golden.readers import Sentence, Situations

FACTS = {"setting": "enforce_eager", "dtype": "float32", "endpoint": "ours", "limit": 20_000}
STEP = 0.125  # of 800 cases
HELD = 81.25
N_RUNS = 20


def passes(*moves: float, n_same: int | None = None, n_flipped: int = 0) -> ArmFigures:
    """Return an arm of 20 passes that score as the control but for these, moved by so many points."""
    points = tuple(HELD + move for move in moves) + (HELD,) * (N_RUNS - len(moves))
    same = N_RUNS - len(moves) if n_same is None else n_same
    return ArmFigures(points=points, n_same=same, n_responses=16_000, n_flipped=n_flipped, n_tokens=10, seconds=1.0)


def read(
    arms: dict[Source, ArmFigures | None], *, status: str = "finished", n_missing: int = 0, problem: str = ""
) -> list[Sentence]:
    figures = {
        source: None if arm is None else combine_arms(source, [arm], control=HELD, step=STEP)
        for source, arm in arms.items()
    }
    findings = judge_rows(list(figures.items()))
    rows = [
        SentenceRow(
            source=source,
            name="prod-router" if source is Source.ROUTING else "",
            finding=finding,
            n_runs=row.n_runs if row else 0,
            n_same=row.n_same if row else None,
            n_flipped=row.n_flipped if row else 0,
            n_responses=row.n_responses if row else 0,
        )
        for (source, row), finding in zip(figures.items(), findings, strict=True)
    ]
    said = describe_experiment(rows, status=status, n_missing=n_missing, problem=problem)
    return [
        Sentence("experiment", "", said),
        *(Sentence("experiment finding", row.finding.state, describe_finding(row.finding)) for row in rows),
    ]


STEADY = {Source.CONTROL: passes()}
MOVING = {
    Source.ROUTING: passes(-4.0, 0.2, n_flipped=1500),
    Source.BATCH: passes(-1.0, 0.8, n_flipped=900),
    Source.PARSER: ArmFigures(points=(HELD - 1.25, HELD), names=("one_line", "trailing_newline")),
}
QUIET = {Source.ORDER: passes(), Source.PREFIX_CACHE: passes(n_same=0)}

SITUATIONS: Situations = {
    "Some sources move the score, some do not": lambda: read({**STEADY, **MOVING, **QUIET}),
    "One source alone": lambda: read({**STEADY, Source.GRAPHS: passes(-0.125, n_flipped=3)}),
    "Nothing moves the score": lambda: read({**STEADY, **QUIET}),
    "One thing was let go, and moves nothing": lambda: read({**STEADY, Source.ORDER: passes()}),
    "Answers move, and the score does not": lambda: read({**STEADY, Source.BATCH: passes(n_same=3, n_flipped=40)}),
    "The control moved its score": lambda: read({Source.CONTROL: passes(-0.5, n_flipped=30), **MOVING}),
    "The control moved an answer and no score": lambda: read(
        {Source.CONTROL: passes(n_same=19, n_flipped=1), **MOVING}
    ),
    "The control's bits move": lambda: read({Source.CONTROL: passes(n_same=1), **MOVING}),
    "The control has one run with a score": lambda: read({Source.CONTROL: ArmFigures(points=(HELD,)), **MOVING}),
    "The control is running": lambda: read({Source.CONTROL: None, Source.ORDER: None}, status="running"),
    "A plan": lambda: read({Source.CONTROL: None}, status="planned"),
    "Stopped by its budget": lambda: read(
        {**STEADY, Source.BATCH: passes(-1.0, n_flipped=9), Source.GRAPHS: None}, status="stopped", n_missing=1
    ),
    "Cancelled before anything was measured": lambda: read({Source.CONTROL: None}, status="cancelled", n_missing=3),
    "Failed": lambda: read(
        {Source.CONTROL: None},
        status="failed",
        n_missing=2,
        problem="The control failed, so nothing can be compared with it.",
    ),
    "What is not measured, and why": lambda: [
        Sentence("left out", code, f"{capital(describe_source(Source.DTYPE).label)}: {describe_reason(code, FACTS)}")
        for code in REASONS
    ],
}
