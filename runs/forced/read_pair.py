"""Two runs on both their stacks: scorings of their answers there, and what it takes to ask for them."""

import functools
import math
from dataclasses import dataclass
from datetime import datetime

from evalboard.compared.tokens import draw
from evalboard.contract import forced as contract
from evalboard.contract.pair import ForcedFlip
from runs.forced.answers import answers_of, cost_of
from runs.forced.marks import ForcedMark, list_marks
from runs.forced.read import forced_row
from runs.forced.scored_answers import answers_of_response, in_same_tokens, read_scored, responses_at
from runs.forced.scorings import can_score, newest_on, readings_of, stack_of
from runs.models import ForcedAnswerRecord, ForcedScoringRecord, RepeatRecord, RunRecord

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
    answer = _newest_answer(run_id, repeat, case_id, other_id)
    if answer is None:
        return None
    trace, words = read_scored(answer)
    return ForcedStrip(str(answer.scoring_id), str(run_id), str(other_id), len(trace), list_marks(trace, words))


def forced_choice(stack: str, run_id: int, repeat: int, case_id: str, *, other_id: int, at: int) -> ForcedFlip | None:
    """Return what another run's stack would have chosen at a position of a response; None if not scored.

    stack: the side whose it is.
    """
    answer = _newest_answer(run_id, repeat, case_id, other_id)
    if answer is None:
        return None
    trace, words = read_scored(answer)
    listed = sorted(trace.alternatives(at), key=lambda each: -each.logprob) if at < len(trace) else []
    if len(listed) < 2:
        return None
    first, second = listed[:2]
    if not math.isfinite(first.logprob - second.logprob):
        return None
    drawn = draw([first.token_id, second.token_id], words)
    return ForcedFlip(
        stack=stack,
        scoring=str(answer.scoring_id),
        first=drawn[0],
        second=drawn[1],
        margin=first.logprob - second.logprob,
    )


def _newest_answer(run_id: int, repeat: int, case_id: str, other_id: int) -> ForcedAnswerRecord | None:
    run, other = _run(run_id), _run(other_id)
    if other.bucket_id is None or run.bucket_id == other.bucket_id:
        return None
    response = responses_at(run_id, repeat=repeat, case_id=case_id).first()
    if response is None or response.trace_block_id is None:
        return None
    return in_same_tokens(answers_of_response(run_id, response)).filter(scoring__bucket=other.bucket_id).first()


def has_forced(*run_ids: int) -> bool:
    """Tell whether anything was scored of these runs: most have nothing, and their pages look no further."""
    return ForcedScoringRecord.objects.filter(run__in=run_ids).exists()


def _run(run_id: int) -> RunRecord:
    return RunRecord.objects.select_related("suite_version", "endpoint", "profile").get(pk=run_id)


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
