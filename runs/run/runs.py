"""Runs: asked for, extended, cancelled, deleted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import Q, Sum
from django.db.models.functions import Now

from evalboard.calling.request import needs_completions
from evalboard.contract.run import Draws
from evalboard.core import scoring
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.images import NEEDS_EXTERNAL
from evalboard.core.profile import MAX_SEED, OBSERVED, order_key, parse_profile
from evalboard.core.suite import COMPLETION
from evalboard.core.trace import pack_selection, unpack_selection
from evalboard.logged.runs import MAX_REPEATS
from evalboard.wording.numbers import counted
from runs import acts
from runs.catalogue import model_problems
from runs.models import (
    CHECKPOINT,
    Case,
    DeletionRecord,
    EndpointRecord,
    ForcedAnswerRecord,
    JudgingRecord,
    Priority,
    ProfileRecord,
    RepeatRecord,
    ResponseRecord,
    RunRecord,
    ScoringRecord,
    Shard,
    Suite,
    SuiteVersionRecord,
)
from runs.pairs import draws_of, planned_draws
from runs.store import changes, history, require_row, take_as_long_as_it_takes
from runs.work import dispatch, own_open_judgings, queue, refuse_if_nobody_can, rollup

MAX_LABELS = 20
CASES_READ = 1000  # of a suite, before a run of it is made
# A shard is minutes of work at most, and several workers can share a repeat. A crash costs what was in flight.
SHARD_CASES_MIN, SHARD_CASES_MAX = 12, 100
SHARDS_PER_REPEAT = 32
SCORED_AT_ONCE = 2000  # responses; about a second
VERSION = 0x5E75  # the first half of the lock of a suite version


@dataclass(frozen=True, slots=True)
class Order:
    """A validated request for a run: everything it names exists, and a worker can decode it."""

    version: SuiteVersionRecord
    endpoint: EndpointRecord
    profile: ProfileRecord
    repeats: int
    seed: int
    model: dict[str, Any] | None
    labels: dict[str, Any]
    priority: str
    is_shuffled: bool
    is_restarted: bool

    @property
    def n_responses(self) -> int:
        return self.repeats * self.version.n_cases


def create_run(*, user: Any = None, cases: Sequence[int] | None = None, **fields: Any) -> RunRecord:
    """Write a run with its repeats and shards in one transaction; workers find it there.

    cases: the indexes of those that every repeat decodes, each of them targeted then; None: all. fields: what
    `find_order` takes, which raises.
    """
    order = find_order(**fields)
    n_cases = order.version.n_cases
    chosen = None if cases is None else pack_selection(np.isin(np.arange(n_cases), cases))
    with transaction.atomic():
        queue.refuse_beyond_limit(user, order.repeats * (n_cases if cases is None else len(set(cases))))
        run = store_order(order, user=user)
        store_repeats(run, range(1, order.repeats + 1), chosen)
        announce(run)
    return run


def find_order(
    *,
    suite: str,
    suite_version: int | None = None,
    endpoint: str,
    profile: str | ProfileRecord,
    repeats: int = 5,
    seed: int | None = None,
    model: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
    priority: str = Priority.NORMAL,
    is_shuffled: bool = False,
    is_restarted: bool = False,
) -> Order:
    """Return the run that these names ask for, with nothing stored.

    profile: the slug of one, whose newest version it is; or a version.
    seed: what the seeds of all calls follow from where the profile samples or the server is external; default: the
    profile's.
    priority: `release` is for runs that a release is to judge.
    is_shuffled: each repeat has its cases in an order of its own. is_restarted: each has an engine process of its own.

    Raises NotFound for names that do not exist, InvalidInput with fields, and ProfileRefused when
    every worker seen lately says that its hardware cannot honour the profile.
    """
    version = named_suite_version(suite, suite_version)
    target = named_endpoint(endpoint)
    decoding = profile if isinstance(profile, ProfileRecord) else newest_profile(profile)
    drawn, default = (planned_draws(decoding, target, seed=each) for each in (seed, None))
    fields = label_problems(labels or {}) | _model_problems(model, target) | decoding_problems(target, decoding)
    if scoring.is_recorded(version.scorer.spec):
        fields["suite"] = "Its scores were read from logs; push it with a scorer to run it."
    if target.is_remote and model is not None:
        fields["model"] = "The operator of this external endpoint chooses the model; create another endpoint."
    if target.is_remote and is_restarted:
        fields["is_restarted"] = "The endpoint is external, so its engine cannot be restarted from here."
    if is_shuffled and decoding.settings["batch_class"] == "fixed":
        fields["is_shuffled"] = "The batch class fixed promises that the same cases share each batch; leave it out."
    fields |= _seed_problems(seed, drawn, default)
    fields |= _deleted_case(version)
    if priority not in Priority.values:
        fields["priority"] = f"Must be one of: {', '.join(Priority.values)}."
    if not 1 <= repeats <= MAX_REPEATS:
        fields["repeats"] = f"Must be a whole number from 1 to {MAX_REPEATS}."
    if target.max_model_len is not None and version.max_tokens >= target.max_model_len:
        fields["suite"] = (
            f"Its answers of {version.max_tokens} tokens leave no room for a prompt in the endpoint's context of "
            f"{target.max_model_len}."
        )
    if not fields:
        fields = _prompt_problems(version, target)
    if fields:
        raise InvalidInput("The run is not valid.", fields=fields)
    refuse_if_nobody_can(target, decoding)
    return Order(
        version=version,
        endpoint=target,
        profile=decoding,
        repeats=repeats,
        seed=drawn.seed or 0,
        model={name: value for name, value in model.items() if value} if model else None,
        labels=dict(labels or {}),
        priority=priority,
        is_shuffled=is_shuffled,
        is_restarted=is_restarted,
    )


def store_order(order: Order, *, user: Any) -> RunRecord:
    """Store the run of an order, without repeats. Raises InvalidInput if a case was deleted meanwhile."""
    hold_version(order.version.pk)
    if fields := _deleted_case(order.version):
        raise InvalidInput("The run is not valid.", fields=fields)
    return RunRecord.objects.create(
        suite_version=order.version,
        endpoint=order.endpoint,
        profile=order.profile,
        seed=order.seed,
        model_override=order.model,
        is_shuffled=order.is_shuffled,
        is_restarted=order.is_restarted,
        is_judged=scoring.is_judged(order.version.scorer.spec),
        labels=order.labels,
        is_reported=order.endpoint.is_remote,
        price=order.endpoint.price,
        priority=order.priority,
        created_by=user,
    )


def _deleted_case(version: SuiteVersionRecord) -> dict[str, str]:
    gone = DeletionRecord.objects.filter(suite_version=version).exclude(case_id="").first()
    return (
        {} if gone is None else {"suite": f"Case {gone.case_id} of {version} was deleted; push a version without it."}
    )


def hold_version(version_id: int, *, to_delete: bool = False) -> None:
    """Wait for who deletes a case of a suite version. With to_delete: also for who stores runs of it.

    Both hold it until their transaction ends.
    """
    call = "pg_advisory_xact_lock" if to_delete else "pg_advisory_xact_lock_shared"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {call}(%s, %s)", [VERSION, version_id % 2**31])


def announce(run: RunRecord, with_whom: str = "") -> None:
    """Note a new run's settings in its history, and notify its pool."""
    sampled = draws_of(run).words
    how = f"{run.profile} ({sampled})" if sampled else str(run.profile)
    how += ", in shuffled order" if run.is_shuffled else ""
    how += ", each on a fresh engine" if run.is_restarted else ""
    asked_for = f"{run.suite_version}, {counted(run.repeats.count(), 'repeat')}, {how} on {run.endpoint}{with_whom}"
    history.note(run.pk, "created", f"Asked for: {asked_for}.")
    dispatch.ring_after_commit(run)


def add_repeats(*, run_id: int, n: int, have: int | None = None) -> RunRecord:
    """Add n repeats to a run that is not cancelled; a finished run goes back to work.

    have: how many there were when they were asked for. Raises NotFound, InvalidInput, or Conflict where the run was
    cancelled or has failed, or has another number of repeats by now.
    """
    with transaction.atomic():
        run = locked(run_id)
        acts.require("add_repeats", run)
        asked_at, have = have, run.repeats.count()
        if asked_at not in (None, have):
            raise Conflict(f"Run {run.pk} has {counted(have, 'repeat')} by now, not {asked_at}; nothing was added.")
        if not 1 <= n <= MAX_REPEATS - have:
            raise InvalidInput("Repeats cannot be added.", fields={"n": f"Must be from 1 to {MAX_REPEATS - have}."})
        queue.refuse_beyond_limit(run.created_by, n * run.suite_version.n_cases)
        store_repeats(run, range(have + 1, have + n + 1))
        put_to_work(run, f"{counted(n, 'repeat')} added.")
    return run


def put_to_work(run: RunRecord, text: str, *, code: str = "repeats_added") -> None:
    """Queue a locked run again after adding work, note it, and notify its pool. code: of the note."""
    if run.is_terminal:
        run.status, run.finished_at = RunRecord.Status.QUEUED, None
        run.save(update_fields=["status", "finished_at"])
    history.note(run.pk, code, text)
    dispatch.ring_after_commit(run)


def cancel_run(*, run_id: int) -> RunRecord:
    """Stop a run: queued shards at once, running ones at their worker's next heartbeat.

    A run that has ended stays as it ended: Conflict, unless a worker has yet to score it again. That is cancelled then,
    and scores that are there stay. Cancelling twice is harmless.
    """
    with transaction.atomic():
        run = locked(run_id)
        is_open = acts.require("cancel", run)
        if run.is_terminal:
            if is_open:
                acts.open_scorings_of(run).delete()
                history.note(run_id, "scoring_cancelled", "Scoring again was cancelled.")
                changes.run_changed(run_id=run_id)
            return run
        if not run.is_cancel_wanted:
            run.is_cancel_wanted = True
            run.save(update_fields=["is_cancel_wanted"])
            history.note(run.pk, "cancel_wanted", "Cancelling was asked for.")
    # Not while the run's row is locked: a claim locks its shard first and then wants the run.
    Shard.objects.cancelled_in_the_queue().filter(repeat__run=run).update(status=Shard.Status.CANCELLED)
    _give_up_scorings(run)
    _cancel_judgings(run)
    waiting = run.repeats.filter(finished_at=None)
    stored = Shard.objects.filter(repeat__run=run).aggregate(n=Sum("n_done"))["n"] or 0
    if stored > SCORED_AT_ONCE:  # too many to score in a request: the next sweep does it
        waiting = waiting.exclude(shards__n_done__gt=0)
    for repeat_id in waiting.values_list("id", flat=True):
        rollup.finish_repeat(repeat_id=repeat_id)
    run.refresh_from_db()
    return run


def _give_up_scorings(run: RunRecord) -> None:
    scorings = acts.open_scorings_of(run)
    if run.source_id is None:
        scorings.delete()  # its repeats end without scores
        return
    given_up = list(scorings.values_list("pk", flat=True))  # of a log, whose repeats have ended
    scorings.update(status=ScoringRecord.Status.FAILED, error="The run was cancelled.")
    for scoring_id in given_up:
        rollup.give_up_scoring(scoring_id=scoring_id)


def _cancel_judgings(run: RunRecord) -> None:
    """Cancel the judge's run; where it has not begun, the run ends without it."""
    judgings = own_open_judgings(run)
    for judge_run in RunRecord.objects.filter(judging_of__in=judgings).exclude(status__in=RunRecord.TERMINAL):
        cancel_run(run_id=judge_run.pk)
    judgings.filter(judge_run=None).update(
        status=JudgingRecord.Status.FAILED, error="The run was cancelled.", finished_at=Now()
    )


def delete_run(*, run_id: int) -> None:
    """Delete a run with its responses and traces. Raises Conflict while it runs or is referenced."""
    with transaction.atomic():
        take_as_long_as_it_takes()
        run = locked(run_id)
        acts.require("delete", run)
        list(run.repeats.select_for_update().order_by("pk").values_list("pk"))  # waits for who scores them again
        # First, and without loading a row: a run may hold half a million. The rest goes with the run, by key.
        for judge_run in RunRecord.objects.filter(judging_of__run=run):
            delete_judge_run(judge_run)
        ResponseRecord.objects.filter(repeat__run=run).delete()
        ForcedAnswerRecord.objects.filter(scoring__run=run).delete()
        source = run.source
        run.delete()
        if source is not None and not source.runs.exists():
            source.delete()  # so that the log can be imported again


def delete_judge_run(run: RunRecord) -> None:
    """Delete a judge's run that has ended, with its cases. The scores that it gave stay."""
    version = run.suite_version
    ResponseRecord.objects.filter(repeat__run=run).delete()
    run.delete()
    cases = Case.objects.filter(suite_version=version)
    cases._raw_delete(cases.db)
    version.delete()


def locked(run_id: int) -> RunRecord:
    """Return the run, its row locked until the transaction ends. Raises NotFound."""
    return require_row(RunRecord.objects.select_for_update(no_key=True).filter(pk=run_id), f"There is no run {run_id}.")


def shard_size(n_cases: int, group_size: int | None) -> int:
    """Return the number of cases per shard, a multiple of the group size, so that groups are stable."""
    size = min(max(-(-n_cases // SHARDS_PER_REPEAT), SHARD_CASES_MIN), SHARD_CASES_MAX)
    if group_size is None:
        return size
    return -(-size // group_size) * group_size


def store_repeats(run: RunRecord, indexes: Iterable[int], cases: bytes | None = None) -> None:
    """Store repeats with their shards, which are claimed in the order in which they are stored.

    From here on a run that a release judges has the release's priority. cases: of targeted repeats, the packed
    selection of what they decode.
    """
    if run.priority != Priority.RELEASE and acts.gates_of(run).exists():
        run.priority = Priority.RELEASE
        run.save(update_fields=["priority"])
    lane = queue.lane_of(run)
    n_cases = run.suite_version.n_cases
    chosen = range(n_cases) if cases is None else np.flatnonzero(unpack_selection(cases, n_cases)).tolist()
    size = shard_size(len(chosen), parse_profile(run.profile.settings).group_size)
    slices = [chosen[at : at + size] for at in range(0, len(chosen), size)]
    repeats = RepeatRecord.objects.bulk_create(RepeatRecord(run=run, index=index, cases=cases) for index in indexes)
    Shard.objects.bulk_create(
        (
            Shard(repeat=repeat, lane=lane, first=part[0], last=part[-1], n_chosen=None if cases is None else len(part))
            for repeat in repeats
            for part in _in_order(run, repeat, slices)
        ),
        batch_size=2000,
    )


def _in_order(run: RunRecord, repeat: RepeatRecord, slices: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
    """Return a repeat's slices in claim order; shuffled runs shuffle them and the cases within."""
    if not run.is_shuffled:
        return slices
    return sorted(slices, key=lambda part: order_key(run.pk, repeat=repeat.index, case_index=part[0]))


def named_suite_version(slug: str, number: int | None) -> SuiteVersionRecord:
    """Return a suite's version, its newest where none is named. Raises NotFound."""
    suite = require_row(
        Suite.objects.filter(slug=slug, judged_suite=None),
        f"There is no suite {slug}; push it with `evalboard suite push`.",
    )
    versions = suite.versions.select_related("suite", "scorer")
    version = versions.order_by("-number").first() if number is None else versions.filter(number=number).first()
    if version is None:
        raise NotFound(f"Suite {slug} has no version {number}.")
    return version


def named_endpoint(slug: str) -> EndpointRecord:
    """Return the endpoint of a slug. Raises NotFound."""
    return require_row(
        EndpointRecord.objects.filter(slug=slug), f"There is no endpoint {slug}. The page Endpoints lists them."
    )


def newest_profile(slug: str) -> ProfileRecord:
    """Return the newest version of a profile. Raises NotFound."""
    return require_row(
        ProfileRecord.objects.filter(slug=slug).order_by("-version"),
        f"There is no profile {slug}; the settings page lists them.",
    )


def _seed_problems(seed: int | None, drawn: Draws, default: Draws) -> dict[str, str]:
    if seed is None:
        return {}
    if not 0 <= seed <= MAX_SEED:
        return {"seed": "Must be a whole number from 0 to 2⁶³ − 1."}
    if not drawn.has_call_seeds and seed != default.seed:
        return {"seed": "The profile decodes at temperature 0, where a seed changes nothing; leave it out."}
    return {}


def decoding_problems(target: EndpointRecord, decoding: ProfileRecord) -> dict[str, str]:
    """Return the problems, by field, of an endpoint and a profile that cannot decode together."""
    fields: dict[str, str] = {}
    batch_class = decoding.settings.get("batch_class")
    if (no := acts.refusal("run", target)) is not None:
        fields["endpoint"] = no.reason
    if batch_class == OBSERVED:
        fields["profile"] = "It was read from logs and lacks settings; choose a complete profile."
    if target.is_remote and batch_class in ("invariant", "fixed"):
        fields["profile"] = (
            f"It promises the batch class {batch_class}, but the batches of an external server are unknown. Choose a "
            "profile of the class alone or mixed."
        )
    return fields


def _prompt_problems(version: SuiteVersionRecord, target: EndpointRecord) -> dict[str, str]:
    """Return the problem of a suite whose images or completions an endpoint cannot take.

    Read are the first cases alone, which takes as long for any suite; a later one fails with the same words.
    """
    first = version.cases.filter(index__lt=CASES_READ).order_by("index")
    if not target.is_remote:
        has_image = Q(content__messages__contains=[{"content": [{"type": "image_url"}]}])
        case = first.filter(has_image).first()
        return {} if case is None else {"endpoint": f"Case {case.case_id} {NEEDS_EXTERNAL}."}
    if target.api == EndpointRecord.Api.COMPLETIONS:
        return {}
    case = first.filter(content__messages__0__role=COMPLETION).first()
    return {} if case is None else {"endpoint": f"Case {case.case_id}: {needs_completions(target.api)}"}


def label_problems(labels: Mapping[str, Any]) -> dict[str, str]:
    if len(labels) > MAX_LABELS:
        return {"labels": f"At most {MAX_LABELS} labels."}
    return {
        f"labels.{key}": "A label's name has at most 40 characters and its value is text of at most 200."
        for key, value in labels.items()
        if not 1 <= len(key) <= 40 or not isinstance(value, str) or len(value) > 200 or "\0" in key + value
    }


def _model_problems(model: Mapping[str, Any] | None, target: EndpointRecord) -> dict[str, str]:
    if model is None or target.is_remote:
        return {}
    names = [name.removeprefix("model_") for name in CHECKPOINT]
    unknown = set(model) - set(names)
    if unknown:
        return {f"model.{name}": "Unknown field." for name in sorted(unknown)}
    if not all(isinstance(model.get(name) or "", str) for name in names):
        return {"model": "Path, repo, revision and adapter are text."}
    if not any(model.values()):
        return {"model": "Name a path, a repository or an adapter, or leave the model out."}
    chosen = {name.removeprefix("model_"): value for name, value in target.checkpoint(model).items()}
    return model_problems(**chosen)
