"""Two runs on both their stacks: scorings of their answers there, and what it takes to ask for them."""

from dataclasses import dataclass

import numpy as np

from evalboard.contract import forced as contract
from evalboard.core.trace import Trace, Vocabulary, read_trace
from runs.forced.answers import answers_of, cost_of
from runs.forced.figures import deficits
from runs.forced.read import forced_row
from runs.forced.scorings import can_score, newest_on, readings_of, stack_of
from runs.models import Case, ForcedAnswer, ForcedScoring, Repeat, Response, Run
from runs.pairs import stored_words
from runs.run import draw

COUNTED_UP_TO = 20_000  # responses of a side whose tokens are counted while somebody waits for a page


@dataclass(frozen=True, slots=True)
class ForcedSides:
    """The newest scoring of each side on the other's stack and on its own, None without one.

    is_askable: some are missing that engines of ours can do. cost: of these, None where nothing is, or too much to
    count.
    """

    baseline: contract.ForcedScoring | None = None
    candidate: contract.ForcedScoring | None = None
    baseline_own: contract.ForcedScoring | None = None
    candidate_own: contract.ForcedScoring | None = None
    is_askable: bool = False
    cost: contract.ForcedCost | None = None


@dataclass(frozen=True, slots=True)
class ForcedMark:
    """Where a token is not the other stack's first choice, and what is."""

    position: int
    first_choice: str


@dataclass(frozen=True, slots=True)
class ForcedStrip:
    """One response on the other side's stack: of n_tokens, those that it would not have chosen."""

    scoring: str
    run: str
    other_run: str
    n_tokens: int
    marks: tuple[ForcedMark, ...]


def forced_sides(baseline_id: int, candidate_id: int) -> ForcedSides:
    """Return what is known of two runs on both their stacks, and what asking for the rest takes."""
    runs = Run.objects.select_related("suite_version", "endpoint", "profile").in_bulk([baseline_id, candidate_id])
    baseline, candidate = runs[baseline_id], runs[candidate_id]
    able = [(run, other) for run, other in readings_of(baseline, candidate) if can_score(stack_of(other))]
    known = {}
    if has_forced(baseline_id, candidate_id):
        known = {_name(run, other, baseline): row for run, other in able if (row := newest_on(run, other)) is not None}
    missing = [(run, other) for run, other in able if _name(run, other, baseline) not in known]
    # Of two runs of one stack what served one of them may be gone, so that one scoring is all that can be had.
    is_askable = bool(missing) and (not known or stack_of(baseline) != stack_of(candidate))
    scored = {name: forced_row(row.pk) for name, row in known.items()}
    return ForcedSides(**scored, is_askable=is_askable, cost=_cost([run for run, _ in missing]) if is_askable else None)


def _name(run: Run, other: Run, baseline: Run) -> str:
    side = "baseline" if run == baseline else "candidate"
    return f"{side}_own" if run == other else side


def forced_strip(run_id: int, repeat: int, case_id: str, *, other_id: int) -> ForcedStrip | None:
    """Return a response on the stack of another run, by the newest scoring that has it; None where none has."""
    run, other = _run(run_id), _run(other_id)
    if other.bucket_id is None or run.bucket_id == other.bucket_id:
        return None
    index = Case.objects.filter(suite_version=run.suite_version_id, case_id=case_id).values("index")
    response = Response.objects.filter(repeat__run=run, repeat__index=repeat, case_index__in=index).first()
    if response is None or response.trace_block_id is None:
        return None
    same_tokens = (ForcedAnswer.Tokens.SAME, ForcedAnswer.Tokens.BY_BYTES)
    answers = ForcedAnswer.objects.filter(
        scoring__run=run,
        scoring__bucket=other.bucket_id,
        case_index=response.case_index,
        trace_digest=response.trace_digest,
        tokens__in=same_tokens,
        error_code="",
    )
    answer = answers.select_related("trace_block", "engine_process").order_by("-scoring").first()
    if answer is None or answer.trace_block is None or answer.trace_slot is None:
        return None
    trace = read_trace(bytes(answer.trace_block.data), answer.trace_slot)
    process = answer.engine_process
    words = None if process is None or process.vocabulary_id is None else stored_words(process.vocabulary_id)
    return ForcedStrip(str(answer.scoring_id), str(run_id), str(other_id), len(trace), _marks(trace, words))


def _marks(trace: Trace, words: Vocabulary | None) -> tuple[ForcedMark, ...]:
    positions = np.flatnonzero(deficits(trace) > 0)
    ranks = np.nanargmax(trace.alternative_logprobs[positions], axis=1) if len(positions) else []
    first_choices = trace.alternative_ids[positions, ranks].tolist() if len(positions) else []
    return tuple(
        ForcedMark(position, drawn)
        for position, drawn in zip(positions.tolist(), draw(first_choices, words), strict=True)
    )


def has_forced(*run_ids: int) -> bool:
    """Tell whether anything was scored of these runs: most have nothing, and their pages look no further."""
    return ForcedScoring.objects.filter(run__in=run_ids).exists()


def _run(run_id: int) -> Run:
    return Run.objects.select_related("suite_version", "endpoint", "profile").get(pk=run_id)


def _cost(runs: list[Run]) -> contract.ForcedCost | None:
    repeats: dict[int, list[int]] = {run.pk: [] for run in runs}
    for run_id, index in Repeat.objects.filter(run__in=runs).exclude(finished_at=None).values_list("run", "index"):
        repeats[run_id].append(index)
    if any(len(repeats[run.pk]) * run.suite_version.n_cases > COUNTED_UP_TO for run in runs):
        return None
    costs = [cost_of(answers_of(run.pk, repeats=repeats[run.pk], case_indexes=None)) for run in runs]
    return contract.ForcedCost(
        **{name: sum(getattr(cost, name) for cost in costs) for name in contract.ForcedCost.model_fields}
    )
