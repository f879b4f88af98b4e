"""Forced scorings: requested, claimed by one statement, recorded in blocks under a fence, ended.

One is claimed after replays and probes and before any shard, and it changes nothing of its run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import F, Q

from evalboard.contract.forced import ForcedCost
from evalboard.core.errors import Conflict, InvalidInput
from evalboard.core.profile import OBSERVED
from evalboard.core.trace import Failed, Forced, pack_selection
from runs import acts
from runs.forced.answers import AnswerToForce, answers_of, cost_of, is_of_several_buckets, responses_scored
from runs.forced.figures import answer_figures, figures_by_bucket, scoring_figures
from runs.models import (
    Case,
    EndpointRecord,
    EngineProcess,
    ForcedAnswerRecord,
    ForcedScoringRecord,
    ProfileRecord,
    RunRecord,
    WorkerRecord,
)
from runs.run import named_endpoint, newest_profile
from runs.store import require_row, storable, traces
from runs.work import Lease, Requests, lease_end, refuse_if_nobody_can, requests

DEFAULT_PROFILE = "pinned"

FORCED = Requests(ForcedScoringRecord, serving="")

BothSides = dict[tuple[int, int], ForcedScoringRecord]  # by whose answers and whose stack, both as ids of runs


@dataclass(frozen=True, slots=True)
class Target:
    """The scoring stack: our endpoint under a profile, with another checkpoint if the run had one."""

    endpoint: EndpointRecord
    profile: ProfileRecord
    model_override: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ChosenAnswers:
    """Answers of a run to score. repeats: their indexes; case_indexes: None for all of the suite."""

    run_id: int
    repeats: list[int]
    case_indexes: list[int] | None

    def cost(self) -> ForcedCost:
        return cost_of(answers_of(self.run_id, repeats=self.repeats, case_indexes=self.case_indexes))


@dataclass(frozen=True, slots=True)
class ForcedOutcome:
    """The result for one answer. tokens: as in `GivenTokens`, "" if there were none to give.

    process: the engine that scored it, or failed; None if none was used.
    """

    answer: AnswerToForce
    tokens: str
    is_rendered: bool
    process: EngineProcess | None
    outcome: Forced | Failed


def create_forced(
    *,
    run_id: int,
    endpoint: str | None = None,
    profile: str | None = None,
    as_run: int | None = None,
    cases: Sequence[str] | None = None,
    tag: str | None = None,
    repeats: Sequence[int] | None = None,
    user: Any = None,
) -> ForcedScoringRecord:
    """Request the scoring of a run's answers on one of our stacks, for a worker of its pool to claim.

    endpoint, profile: that stack; without a profile it is the run's own, or `pinned` where that says what a log was
    sampled with. as_run: the stack of another run in their place. cases: ids; tag: one that they have; None leaves
    either open. repeats: of those that have ended; None for all of them.

    Raises NotFound for names that do not exist, InvalidInput with fields, Conflict where the run has nothing to score
    yet, and ProfileRefused when every worker seen lately says that its hardware cannot honour the profile.
    """
    run = _named_run(run_id)
    acts.require("force", run)
    if (endpoint is None) == (as_run is None):
        raise InvalidInput("The scoring is not valid.", fields={"endpoint": "Give either an endpoint or as_run."})
    if as_run is not None and profile is not None:
        raise InvalidInput("The scoring is not valid.", fields={"profile": "as_run has a profile of its own."})
    target = _stack_named(run, endpoint, profile) if endpoint is not None else stack_of(_named_run(as_run or 0))
    if fields := _target_problems(target):
        raise InvalidInput("The scoring is not valid.", fields=fields)
    refuse_if_nobody_can(target.endpoint, target.profile)
    return _store(run, target, cases=cases, tag=tag, repeats=repeats, user=user)


def create_forced_pair(*, baseline_id: int, candidate_id: int, user: Any = None) -> BothSides:
    """Ask for each of two runs to be scored on both stacks, where that is not done or under way.

    Its own stack is the control: what the same tokens come to there. A stack that is not ours is left out. Raises
    NotFound; Conflict where both are, or where a side has nothing to score; ProfileRefused.
    """
    runs = {"baseline": _named_run(baseline_id), "candidate": _named_run(candidate_id)}
    if baseline_id == candidate_id:
        raise InvalidInput("The scoring is not valid.", fields={"candidate": "It is the baseline itself."})
    for run in runs.values():
        acts.require("force", run)
    readings = [(run, other) for run, other in readings_of(*runs.values()) if can_score(stack_of(other))]
    if not readings:
        raise Conflict("No engine here serves the stack of either run, so neither can be scored on the other’s.")
    for _, other in readings:
        refuse_if_nobody_can(stack_of(other).endpoint, stack_of(other).profile)
    with transaction.atomic():
        return {
            (run.pk, other.pk): newest_on(run, other) or _store(run, stack_of(other), user=user)
            for run, other in readings
        }


def readings_of(baseline: RunRecord, candidate: RunRecord) -> list[tuple[RunRecord, RunRecord]]:
    """List (run, stack's run) pairs to score for a comparison: each on the other's stack, then its own.

    Two runs of one stack have no other one.
    """
    crossed = [(baseline, candidate), (candidate, baseline)]
    own = [(baseline, baseline), (candidate, candidate)]
    return crossed if stack_of(baseline) == stack_of(candidate) else [*crossed, *own]


def newest_on(run: RunRecord, other: RunRecord) -> ForcedScoringRecord | None:
    """Return the newest scoring of all cases and ended repeats of a run on the stack of another.

    Where none has ended, one under way; None without either.
    """
    whole = ForcedScoringRecord.objects.filter(run=run, cases=None, repeats__contains=ended_repeats(run)).order_by(
        "-id"
    )
    ended = None
    if other.bucket_id is not None:
        ended = whole.filter(bucket=other.bucket_id, status=ForcedScoringRecord.Status.FINISHED).first()
    if ended is not None:
        return ended
    target = stack_of(other)
    override = target.model_override
    same_model = Q(model_override__isnull=True) if override is None else Q(model_override=override)
    wanted = whole.filter(same_model, endpoint=target.endpoint, profile=target.profile)
    return wanted.filter(status__in=(ForcedScoringRecord.Status.QUEUED, ForcedScoringRecord.Status.RUNNING)).first()


def stack_of(run: RunRecord) -> Target:
    """Return the requested stack of a run."""
    return Target(run.endpoint, run.profile, run.model_override)


def can_score(target: Target) -> bool:
    """Tell whether an engine of ours serves this stack."""
    return not _target_problems(target)


def choose_answers(
    run: RunRecord, *, cases: Sequence[str] | None = None, tag: str | None = None, repeats: Sequence[int] | None = None
) -> ChosenAnswers:
    """Return the answers that these names choose, as in `create_forced`. Raises InvalidInput."""
    ended = ended_repeats(run)
    fields = {}
    if unknown := sorted(set(repeats or ()) - set(ended)):
        fields["repeats"] = f"Run {run.pk} has no repeat {unknown[0]} that has ended."
    indexes = None
    if cases is not None or tag is not None:
        by_id = _cases_named(run, cases, tag)
        indexes = sorted(by_id.values())
        if others := sorted(set(cases or ()) - by_id.keys()):
            fields["cases"] = f"The suite has no case {others[0]}{'' if tag is None else f' with the tag {tag}'}."
        elif not indexes:
            fields["tag"] = f"No case of the suite has the tag {tag}."
    if fields:
        raise InvalidInput("The scoring is not valid.", fields=fields)
    return ChosenAnswers(run.pk, sorted(set(repeats)) if repeats else ended, indexes)


def ended_repeats(run: RunRecord) -> list[int]:
    """Return the indexes of the repeats that have ended, whose responses are all there."""
    return list(run.repeats.exclude(finished_at=None).order_by("index").values_list("index", flat=True))


def claim_forced(*, worker: WorkerRecord, left_alone: frozenset[int] = frozenset()) -> Lease | None:
    """Claim the oldest claimable scoring of the worker's pool, or None. left_alone: ids to skip."""
    return FORCED.claim(ForcedScoringRecord.objects.exclude(pk__in=left_alone), worker=worker)


def record_forced(*, lease: Lease, outcomes: Sequence[ForcedOutcome]) -> None:
    """Store the next results, which renews the lease. Raises LeaseLost.

    The scoring is bound to the bucket of the first ones; ValueError for a trace of another one. Called again with the
    same answers it stores nothing: a worker whose connection broke after the COMMIT sends them once more.
    """
    with FORCED.locked(lease=lease) as scoring:
        stored = ForcedAnswerRecord.objects.filter(
            scoring=scoring, case_index__in={each.answer.case_index for each in outcomes}
        )
        known = {(index, bytes(digest)) for index, digest in stored.values_list("case_index", "trace_digest")}
        fresh = [each for each in outcomes if (each.answer.case_index, each.answer.trace_digest) not in known]
        buckets = {each.process.bucket_id for each in fresh if each.process and isinstance(each.outcome, Forced)}
        if scoring.bucket_id is not None:
            buckets.add(scoring.bucket_id)
        if len(buckets) > 1:
            raise ValueError(f"Traces of the buckets {buckets} cannot be of one scoring.")
        _insert(scoring, fresh)
        bound = next(iter(buckets), None)
        FORCED.write(lease=lease, n_done=F("n_done") + len(fresh), bucket=bound, lease_until=lease_end())


def finish_forced(*, lease: Lease) -> None:
    """End a scoring whose answers are all stored; it fails if none could be scored. Raises LeaseLost.

    Answers of several buckets have figures by bucket, and none together.
    """
    # Without a lock: only this attempt could have changed the answers.
    answers = responses_scored(lease.id)
    figures, by_bucket = None, []
    if is_of_several_buckets(answers):
        by_bucket = figures_by_bucket(lease.id, answers)
    else:
        figures = scoring_figures(lease.id)
    with FORCED.locked(lease=lease) as scoring:
        if scoring.answers.filter(error_code="").exists():
            FORCED.finish(
                lease=lease,
                status=ForcedScoringRecord.Status.FINISHED,
                error="",
                figures=figures,
                figures_by_bucket=by_bucket,
            )
        else:
            error = scoring.answers.order_by("case_index").values_list("error_detail", flat=True).first()
            FORCED.finish(
                lease=lease, status=ForcedScoringRecord.Status.FAILED, error=error or "It has no answer to score."
            )


def _named_run(run_id: int) -> RunRecord:
    return require_row(
        RunRecord.objects.select_related("suite_version", "endpoint", "profile").filter(pk=run_id),
        f"There is no run {run_id}.",
    )


def _stack_named(run: RunRecord, endpoint: str, profile: str | None) -> Target:
    if profile is not None:
        decoding = newest_profile(profile)
    elif run.profile.settings.get("batch_class") == OBSERVED:
        decoding = newest_profile(DEFAULT_PROFILE)
    else:
        decoding = run.profile
    return Target(named_endpoint(endpoint), decoding, None)


def _target_problems(target: Target) -> dict[str, str]:
    """Return why a stack cannot score, by field: only our own engine scores given tokens."""
    fields = {}
    if target.endpoint.engine != EndpointRecord.Engine.VLLM:
        fields["endpoint"] = (
            "It is external, and only your own engine can score given tokens. Choose an endpoint with one."
        )
    if target.profile.settings.get("batch_class") == OBSERVED:
        fields["profile"] = "It was read from logs and lacks settings; choose a complete profile."
    return fields


def _store(
    run: RunRecord,
    target: Target,
    *,
    cases: Sequence[str] | None = None,
    tag: str | None = None,
    repeats: Sequence[int] | None = None,
    user: Any,
) -> ForcedScoringRecord:
    chosen = choose_answers(run, cases=cases, tag=tag, repeats=repeats)
    cost = chosen.cost()
    if not cost.n_answers:
        raise Conflict(f"Run {run.pk} has no answer to score: no repeat of it has ended, or nothing came back.")
    indexes = chosen.case_indexes
    with transaction.atomic():
        scoring = ForcedScoringRecord.objects.create(
            run=run,
            endpoint=target.endpoint,
            profile=target.profile,
            model_override=target.model_override,
            cases=None if indexes is None else pack_selection(np.isin(np.arange(run.suite_version.n_cases), indexes)),
            repeats=chosen.repeats,
            n_answers=cost.n_answers,
            n_tokens=cost.n_tokens,
            created_by=user,
        )
        requests.ring_after_commit(target.endpoint.pool)
    return scoring


def _cases_named(run: RunRecord, cases: Sequence[str] | None, tag: str | None) -> dict[str, int]:
    """Return the index of each case with one of these ids and this tag; None leaves either open."""
    chosen = Case.objects.filter(suite_version=run.suite_version)
    if cases is not None:
        chosen = chosen.filter(case_id__in=cases)
    if tag is not None:
        chosen = chosen.filter(tags__contains=[tag])
    return dict(chosen.values_list("case_id", "index"))


def _insert(scoring: ForcedScoringRecord, outcomes: Sequence[ForcedOutcome]) -> None:
    scored = [
        ((each.answer.case_index, each.answer.trace_digest), each.answer.trace, each.outcome.trace, each.tokens)
        for each in outcomes
        if isinstance(each.outcome, Forced)
    ]
    places = traces.store_blocks(scoring.run_id, [(key, forced) for key, _, forced, _ in scored], is_final=True)
    figures = answer_figures([(ours, forced) for _, ours, forced, _ in scored], [kind for *_, kind in scored])
    by_key = {key: each for (key, *_), each in zip(scored, figures, strict=True)}
    ForcedAnswerRecord.objects.bulk_create(_row(scoring, each, places, by_key) for each in outcomes)


def _row(
    scoring: ForcedScoringRecord,
    scored: ForcedOutcome,
    places: Mapping[traces.Key, traces.BlockSlot],
    figures: Mapping[traces.Key, dict[str, Any]],
) -> ForcedAnswerRecord:
    answer, outcome = scored.answer, scored.outcome
    fields = {
        "scoring": scoring,
        "case_index": answer.case_index,
        "trace_digest": answer.trace_digest,
        "repeat_id": answer.repeat_id,
        "engine_process": scored.process,
        "tokens": scored.tokens,
        "is_rendered": scored.is_rendered,
    }
    if isinstance(outcome, Failed):
        return ForcedAnswerRecord(**fields, error_code=outcome.code, error_detail=storable(outcome.detail))
    key = answer.case_index, answer.trace_digest
    place = places[key]
    return ForcedAnswerRecord(
        **fields,
        trace_block_id=place.block_id,
        trace_slot=place.slot,
        n_tokens=len(outcome.trace),
        figures=figures[key],
    )
