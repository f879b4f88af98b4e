"""The runs that a run can be compared with: others of its suite, and its own repeats."""

from dataclasses import dataclass

from evalboard.contract.baseline import Baseline
from evalboard.contract.run import Run, RunRow
from frontend.compare.pair_address import comparison_url
from runs.run import place_of, runs_of_experiments

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
    """Return those of `rows` that people compare a run with, in their order."""
    candidates = [row for row in with_answers(rows) if row.id != run.id]
    return tuple(Other(row, _older_first(row, run)) for row in candidates[:OTHERS_SHOWN])


def with_answers(rows: tuple[RunRow, ...]) -> tuple[RunRow, ...]:
    """Return the rows with a repeat to compare that are no condition of an experiment."""
    conditions = runs_of_experiments([int(row.id) for row in rows])
    return tuple(row for row in rows if _has_ended_repeat(row) and int(row.id) not in conditions)


def first_choice(rows: tuple[RunRow, ...], baselines: tuple[Baseline, ...]) -> tuple[str | None, str | None]:
    """Return the default baseline and candidate: the newest run and its baseline, if it has one."""
    if not rows:
        return None, None
    newest, *older = rows
    baseline_ids = [row.run.id for row in baselines if row.run.endpoint == newest.endpoint and row.run.id != newest.id]
    alike = [row.id for row in older if (row.endpoint, row.profile) == (newest.endpoint, newest.profile)]
    return next(iter((*baseline_ids, *alike, *(row.id for row in older))), None), newest.id


def repeat_pairs(run: Run) -> tuple[RepeatPair, ...]:
    """Return the first repeat that has ended against each of the later ones."""
    ended = [line.index for line in run.repeats if line.status in ("finished", "incomplete")]
    run_id = int(run.id)
    return tuple(
        RepeatPair(ended[0], other, comparison_url(run_id, run_id, repeats=(ended[0], other)))
        for other in ended[1 : PAIRS_SHOWN + 1]
    )


def _older_first(*pair: RunRow) -> str:
    older, newer = sorted(pair, key=place_of)
    return comparison_url(int(older.id), int(newer.id))


def _has_ended_repeat(row: RunRow) -> bool:
    has_answers = row.status in ("finished", "incomplete") or any(value is not None for value in row.points)
    return has_answers and row.n_repeats > 0  # not one that has targeted repeats alone
