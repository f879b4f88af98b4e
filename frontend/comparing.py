"""What a run may be held against: other runs of its suite, and its own repeats."""

from dataclasses import dataclass

from frontend.pair_address import of_comparison
from runs.selectors.baseline import BaselineRow
from runs.selectors.run import RunReport, RunRow
from runs.selectors.run_list import place_of

OTHERS_SHOWN = 12
PAIRS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Other:
    """Another run of the suite; of two runs the older one is the baseline."""

    row: RunRow
    url: str


@dataclass(frozen=True, slots=True)
class RepeatPair:
    first: int
    second: int
    url: str


def others(run: RunRow, rows: tuple[RunRow, ...]) -> tuple[Other, ...]:
    """Those of `rows` that have a repeat to compare, in their order."""
    found = [row for row in with_answers(rows) if row.id != run.id]
    return tuple(Other(row, _older_first(row, run)) for row in found[:OTHERS_SHOWN])


def with_answers(rows: tuple[RunRow, ...]) -> tuple[RunRow, ...]:
    """Those of `rows` that have a repeat to compare, in their order."""
    return tuple(row for row in rows if _has_ended_repeat(row))


def first_choice(rows: tuple[RunRow, ...], baselines: tuple[BaselineRow, ...]) -> tuple[int | None, int | None]:
    """Baseline and candidate until somebody chooses: the newest run, against its baseline where it has one."""
    if not rows:
        return None, None
    newest, *older = rows
    held = [row.run.id for row in baselines if row.run.endpoint == newest.endpoint and row.run.id != newest.id]
    alike = [row.id for row in older if (row.endpoint, row.profile) == (newest.endpoint, newest.profile)]
    return next(iter((*held, *alike, *(row.id for row in older))), None), newest.id


def repeat_pairs(report: RunReport) -> tuple[RepeatPair, ...]:
    """The first repeat that has ended against each of the later ones."""
    ended = [line.index for line in report.repeats if line.status in ("finished", "incomplete")]
    run_id = report.row.id
    return tuple(
        RepeatPair(ended[0], other, of_comparison(run_id, run_id, repeats=(ended[0], other)))
        for other in ended[1 : PAIRS_SHOWN + 1]
    )


def may_be_compared(report: RunReport) -> bool:
    return any(line.status in ("finished", "incomplete") for line in report.repeats)


def _older_first(*pair: RunRow) -> str:
    older, newer = sorted(pair, key=place_of)
    return of_comparison(older.id, newer.id)


def _has_ended_repeat(row: RunRow) -> bool:
    return row.status in ("finished", "incomplete") or any(value is not None for value in row.points)
