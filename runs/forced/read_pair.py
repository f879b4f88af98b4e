"""Two runs on both their stacks: scorings of their answers there, and what it takes to ask for them."""

import functools
from dataclasses import dataclass
from datetime import datetime

from evalboard.contract import forced as contract
from runs.forced.answers import answers_of, cost_of
from runs.forced.marks import ForcedMark, list_marks
from runs.forced.read import forced_row
from runs.forced.scorings import can_score, newest_on, readings_of, stack_of
from runs.models import RepeatRecord, RunRecord
from runs.pairs.scored_answers import find_scored, has_forced, read_scored

COUNTED_UP_TO = 20_000  # responses of a side whose tokens are counted within a page request


@dataclass(frozen=True, slots=True)
class ForcedSides:
    """The newest scoring of each side on the other's stack and on its own, None without one.

    is_askable: some are missing that engines of ours can do. cost: of these, None where nothing is, or too much to
    count.
    """

    scored: contract.ForcedPair
    is_askable: bool
    cost: contract.ForcedCost | None


@dataclass(frozen=True, slots=True)
class ForcedStrip:
    """One response on the other side's stack: of n_tokens, those that it would not have chosen."""

    scoring: str
    run: str
    other_run: str
    n_tokens: int
    marks: tuple[ForcedMark, ...]


def forced_sides(baseline: RunRecord, candidate: RunRecord) -> ForcedSides:
    """Return the scorings of two runs on both stacks, and the cost of the missing ones.

    baseline, candidate: with suite version, endpoint and profile.
    """
    able = [(run, other) for run, other in readings_of(baseline, candidate) if can_score(stack_of(other))]
    known = {}
    if has_forced(baseline.pk, candidate.pk):
        known = {_name(run, other, baseline): row for run, other in able if (row := newest_on(run, other)) is not None}
    missing = [(run, other) for run, other in able if _name(run, other, baseline) not in known]
    # Of two runs of one stack what served one of them may be gone, so that one scoring is all that can be had.
    is_askable = bool(missing) and (not known or stack_of(baseline) != stack_of(candidate))
    scored = contract.ForcedPair.from_stored({name: forced_row(row.pk) for name, row in known.items()})
    return ForcedSides(scored, is_askable, _cost([run for run, _ in missing]) if is_askable else None)


def _name(run: RunRecord, other: RunRecord, baseline: RunRecord) -> str:
    side = "baseline" if run == baseline else "candidate"
    return f"{side}_own" if run == other else side


def forced_strip(run_id: int, repeat: int, case_id: str, *, other_id: int) -> ForcedStrip | None:
    """Return a response scored on another run's stack, by its newest scoring; None without one."""
    run, other = RunRecord.objects.get(pk=run_id), RunRecord.objects.get(pk=other_id)
    answer = find_scored(run, repeat, case_id, other=other)
    if answer is None:
        return None
    trace, words = read_scored(answer)
    return ForcedStrip(str(answer.scoring_id), str(run_id), str(other_id), len(trace), list_marks(trace, words))


def _cost(runs: list[RunRecord]) -> contract.ForcedCost | None:
    ended: dict[int, list[tuple[int, datetime | None]]] = {run.pk: [] for run in runs}
    rows = RepeatRecord.objects.filter(run__in=runs).exclude(finished_at=None).order_by("index")
    for run_id, index, finished_at in rows.values_list("run", "index", "finished_at"):
        ended[run_id].append((index, finished_at))
    if any(len(ended[run.pk]) * run.suite_version.n_cases > COUNTED_UP_TO for run in runs):
        return None
    costs = [_cost_of_ended(run.pk, tuple(ended[run.pk])) for run in runs]
    return contract.ForcedCost(
        **{name: sum(getattr(cost, name) for cost in costs) for name in contract.ForcedCost.model_fields}
    )


@functools.lru_cache(maxsize=1024)  # what has ended never changes, and each page of the pair asks again
def _cost_of_ended(run_id: int, ended: tuple[tuple[int, datetime | None], ...]) -> contract.ForcedCost:
    """Count what scoring these repeats of a run takes; ended: (index, when it ended) of each."""
    return cost_of(answers_of(run_id, repeats=[index for index, _ in ended], case_indexes=None))
