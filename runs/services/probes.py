"""Probes: asked for, claimed by one statement, recorded round by round behind the attempt's fence, ended by a finding.

A probe is claimed after the replays and before any shard, and takes minutes at the most. A routing probe asks each
worker of the pool that is able when it is created (`waits_for`): between two of them it is in the queue again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now

from evalboard.core import batch_probe, canary_probe, probe_call, probe_parameters, routing_probe, seed_probe
from evalboard.core import profile as profiles
from evalboard.core.errors import InvalidInput, ProfileRefused
from evalboard.core.probe_call import Call, Finding
from evalboard.core.profile import OBSERVED
from evalboard.core.self_test import LARGEST_BATCH
from runs.models import Endpoint, Probe, Profile, Run, Worker
from runs.services import claims, workers
from runs.services.leases import Beat, lease_span
from runs.services.runs import named_endpoint, named_suite_version, newest_profile, refuse_if_nobody_can
from runs.services.storable import storable

# A batch probe looks at what batching does, so requests must share steps.
DEFAULT_PROFILES = {Probe.Kind.BATCH: "fast"}
DEFAULT_PROFILE = "pinned"
EARLIER_CANARIES = 60  # more than a canary is held against

CLAIM = """
UPDATE runs_probe
   SET status = 'running', owner_id = %(worker)s, attempt = attempt + 1,
       lease_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
 WHERE id = (
       SELECT probe.id
         FROM runs_probe probe
         JOIN runs_endpoint endpoint ON endpoint.id = probe.endpoint_id
        WHERE probe.status = 'queued' AND probe.next_at <= clock_timestamp()
          AND endpoint.pool = %(pool)s AND NOT probe.id = ANY(%(left_alone)s)
          AND (probe.waits_for = '[]' OR probe.waits_for @> to_jsonb(%(worker)s))
        ORDER BY probe.id
        LIMIT 1
          FOR UPDATE OF probe SKIP LOCKED)
RETURNING id, attempt
"""
PROBES = claims.Claims(Probe, pool="endpoint__pool")


@dataclass(frozen=True, slots=True)
class ProbeLease:
    """The right to work on a probe: it holds as long as no other attempt took it."""

    probe_id: int
    attempt: int
    worker_id: int

    @property
    def key(self) -> int:
        return self.probe_id

    def __str__(self) -> str:
        return f"probe {self.probe_id}"


def create_probe(
    *, endpoint: str, kind: str, profile: str | None = None, parameters: Mapping[str, Any], user: Any = None
) -> Probe:
    """Ask for a check of an endpoint; a worker of its pool finds the row.

    profile: None for the one that fits the kind. parameters: those that are not given have their defaults
    (`core.probe_parameters`); a suite is that of its newest version. Raises NotFound for names that do not exist,
    InvalidInput with fields, and ProfileRefused when every worker seen lately says that its hardware cannot honour
    the profile.
    """
    target = named_endpoint(endpoint)
    complete = probe_parameters.complete(kind, parameters)
    decoding = newest_profile(profile or DEFAULT_PROFILES.get(Probe.Kind(kind), DEFAULT_PROFILE))
    if "suite" in complete:
        complete["suite_version"] = named_suite_version(complete["suite"], None).number
    if fields := _problems(target, decoding, kind, complete):
        raise InvalidInput("The probe is not valid.", fields=fields)
    if kind == Probe.Kind.BATCH and "seats" not in parameters:
        complete["seats"] = _seats(decoding)
    refuse_if_nobody_can(target, decoding)
    is_for_each = kind == Probe.Kind.ROUTING
    with transaction.atomic():
        probe = Probe.objects.create(
            endpoint=target,
            profile=decoding,
            kind=kind,
            parameters=complete,
            waits_for=list(workers.able(target.pool).values_list("pk", flat=True)) if is_for_each else [],
            created_by=user,
        )
        claims.ring_after_commit(target.pool, n_workers=max(1, len(probe.waits_for)))
    return probe


def claim_probe(*, worker: Worker, left_alone: frozenset[int] = frozenset()) -> ProbeLease | None:
    """Claim the oldest claimable probe of the worker's pool, or None. `left_alone` are probes it cannot serve."""
    row = claims.claim(CLAIM, worker=worker, left_alone=sorted(left_alone))
    return None if row is None else ProbeLease(row[0], row[1], worker.pk)


def renew_probe(*, lease: ProbeLease) -> Beat:
    """Extend a lease that is still held. A probe is not cancelled."""
    return PROBES.renew(lease)


def record_calls(*, lease: ProbeLease, calls: Sequence[Call]) -> None:
    """Store the answers of one round, after those before it; that renews the lease. Raises LeaseLost."""
    with transaction.atomic():
        probe = PROBES.fenced(lease)
        probe.answers = [*probe.answers, *map(_stored, calls)]
        probe.lease_until = Now() + lease_span()
        probe.save(update_fields=["answers", "lease_until"])


def finish_probe(*, lease: ProbeLease) -> None:
    """End the probe with what it found; a routing probe only with its last worker. Raises LeaseLost.

    One without any answer has failed.
    """
    probe = PROBES.held(lease).select_related("endpoint").first()
    if probe is None:
        raise claims.lost(lease)
    if others := [worker for worker in probe.waits_for if worker != lease.worker_id]:
        with transaction.atomic():
            if PROBES.held(lease).update(waits_for=others) != 1:
                raise claims.lost(lease)
            PROBES.let_go(PROBES.held(lease), "", may_fail=False)
        return
    # While nobody's row is locked: only this attempt could have changed the answers.
    changes = _end(probe)
    if PROBES.held(lease).update(**changes, waits_for=[], lease_until=None, finished_at=Now()) != 1:
        raise claims.lost(lease)


def refuse_probe(*, lease: ProbeLease, reason: str) -> None:
    """Leave a probe to others, because this worker cannot honour the profile; where nobody can, it has failed."""
    probe = PROBES.held(lease).select_related("endpoint", "profile").first()
    if probe is None:
        return
    try:
        refuse_if_nobody_can(probe.endpoint, probe.profile)
    except ProfileRefused as refused:
        PROBES.fail(PROBES.held(lease), refused.detail)
    else:
        _let_go(PROBES.held(lease), reason, may_fail=False)


def release_probe(*, lease: ProbeLease, reason: str, may_fail: bool) -> None:
    """Give a probe back to the queue with the answers it has; nothing where the lease is lost.

    may_fail: the attempt ended badly. After `claims.MOST_ATTEMPTS` the probe has failed; a routing probe goes on
    without this worker.
    """
    if may_fail:
        _let_go(PROBES.held(lease), reason, may_fail=True)
    else:
        PROBES.let_go(PROBES.held(lease), reason, may_fail=False)


def take_back_expired() -> bool:
    """Take back the probes whose lease has ended by the database's clock; whether there were any."""
    return _let_go(PROBES.expired(), claims.SILENT, may_fail=True) > 0


def take_back_from(worker_ids: Collection[int]) -> bool:
    """Take back the probes of workers whose process is gone; whether there were any."""
    return _let_go(PROBES.owned_by(worker_ids), claims.GONE, may_fail=True) > 0


def go_on_without_the_gone() -> bool:
    """Let routing probes wait no longer for workers that can take no work; whether there were any such."""
    waiting = Probe.objects.filter(status=Probe.Status.QUEUED).exclude(waits_for=[])
    return sum(map(_strike_off_gone, waiting.values_list("pk", flat=True))) > 0


def _seats(decoding: Profile) -> int:
    """The largest batch that the profile may decode, as far as a self-test measures; a GPU's, which is the larger."""
    asked = profiles.seats_asked(profiles.parse(decoding.settings), {"kind": "cuda"})
    return min(asked or LARGEST_BATCH, LARGEST_BATCH)


def _problems(endpoint: Endpoint, decoding: Profile, kind: str, parameters: Mapping[str, Any]) -> dict[str, str]:
    if endpoint.engine == Endpoint.Engine.IMPORTED:
        return {"endpoint": "It stands for what answered according to logs, and nothing here decodes it."}
    if decoding.settings.get("batch_class") == OBSERVED:
        return {"profile": "It says what logs were sampled with, as far as they tell; choose one that says everything."}
    longest = probe_parameters.sampling(kind, parameters, "")["max_tokens"]
    if longest < endpoint.max_model_len:
        return {}
    words = f"Answers of {longest} tokens leave no room for a prompt in the endpoint's context of"
    return {"parameters.max_tokens": f"{words} {endpoint.max_model_len}."}


def _let_go(mine: QuerySet[Probe], reason: str, *, may_fail: bool) -> int:
    """Take running probes from their owners; one that asks each worker goes on without its owner."""
    asks_each = list(mine.exclude(waits_for=[]).values_list("pk", flat=True))
    n = sum(_go_on_without_owner(mine.filter(pk=probe), reason) for probe in asks_each)
    return n + PROBES.let_go(mine.filter(waits_for=[]), reason, may_fail=may_fail)


def _go_on_without_owner(one: QuerySet[Probe], reason: str) -> int:
    with transaction.atomic():
        probe = one.select_for_update(skip_locked=True).first()
        if probe is None or probe.owner_id is None:
            return 0
        _strike_off(probe, {probe.owner_id: reason})
        return PROBES.let_go(one, reason, may_fail=False)


def _strike_off_gone(probe_id: int) -> bool:
    queued = Probe.objects.filter(pk=probe_id, status=Probe.Status.QUEUED).select_related("endpoint")
    with transaction.atomic():
        probe = queued.select_for_update(skip_locked=True, of=("self",)).first()
        if probe is None:
            return False
        pool = probe.endpoint.pool
        rests = ExpressionWrapper(Q(rests_until__gt=Now()), output_field=BooleanField())
        gone = Worker.objects.filter(pk__in=probe.waits_for).exclude(pk__in=workers.able(pool)).annotate(rests=rests)
        if why := {worker.pk: _why_gone(worker, rests=bool(worker.rests)) for worker in gone}:
            _strike_off(probe, why)
            claims.ring_after_commit(pool)
        return bool(why)


def _why_gone(worker: Worker, *, rests: bool) -> str:
    if worker.stopped_at is not None:
        return "It has stopped."
    return "It rests, for its engine failed too often." if rests else "It was not heard of for the length of a lease."


def _strike_off(probe: Probe, why: Mapping[int, str]) -> None:
    """Wait for these workers no longer. Among the answers each stands as a call that no engine has seen."""
    left_out = [Call(prompt=0, group="ask", worker=worker, error=words) for worker, words in why.items()]
    probe.answers = [*probe.answers, *map(_stored, left_out)]
    probe.waits_for = [worker for worker in probe.waits_for if worker not in why]
    probe.save(update_fields=["answers", "waits_for"])


def _stored(call: Call) -> dict[str, Any]:
    return {**probe_call.to_json(call), "text": storable(call.text), "error": storable(call.error)}


def _end(probe: Probe) -> dict[str, Any]:
    """How a probe ends, by field: with its finding, or as failed where no engine gave an answer."""
    calls = [probe_call.from_json(stored) for stored in probe.answers]
    if all(call.error for call in calls):
        return {"status": Probe.Status.FAILED, "error": calls[-1].error if calls else "No call was answered."}
    finding = _find(probe, calls)
    numbers = dict(finding.numbers)
    if probe.kind == Probe.Kind.ROUTING:
        numbers["left_out"] = _left_out(calls)
    found = {"state": finding.state, "sentence": finding.sentence, "numbers": numbers}
    return {"status": Probe.Status.FINISHED, "finding": found, "error": ""}


def _find(probe: Probe, calls: Sequence[Call]) -> Finding:
    if probe.kind == Probe.Kind.SEED:
        return seed_probe.find(calls, random_seed=probe.parameters["random_seed"])
    if probe.kind == Probe.Kind.BATCH:
        return batch_probe.find(calls)
    if probe.kind == Probe.Kind.ROUTING:
        return routing_probe.find(calls, last_fingerprint=_last_fingerprint(probe))
    return canary_probe.find(calls, _earlier(probe), random_seed=probe.parameters["random_seed"])


def _left_out(calls: Sequence[Call]) -> list[dict[str, str]]:
    why = {call.worker: call.error for call in calls if call.engine_process is None and call.worker is not None}
    names = dict(Worker.objects.filter(pk__in=why).values_list("pk", "name"))
    return [{"worker": names[worker], "why": words} for worker, words in why.items() if worker in names]


def _last_fingerprint(probe: Probe) -> str | None:
    """The one that the endpoint's last run was bound to; under this profile, for its settings are part of it."""
    runs = Run.objects.filter(endpoint=probe.endpoint_id, profile=probe.profile_id, bucket__isnull=False)
    return runs.order_by("-pk").values_list("bucket__fingerprint__digest", flat=True).first()


def _earlier(probe: Probe) -> list[list[Call]]:
    """The answers of the canaries before this one, oldest first: of the same endpoint, asked the same in every way.

    They begin with the last that found a change, for what was there before it is no longer there.
    """
    same = Probe.objects.filter(
        endpoint=probe.endpoint_id,
        profile=probe.profile_id,
        kind=probe.kind,
        parameters=probe.parameters,
        status=Probe.Status.FINISHED,
        pk__lt=probe.pk,
    )
    found: list[list[Call]] = []
    for answers, finding in same.order_by("-pk").values_list("answers", "finding")[:EARLIER_CANARIES]:
        found.append([probe_call.from_json(stored) for stored in answers])
        if finding is not None and finding["state"] in canary_probe.CHANGES:
            break
    return found[::-1]
