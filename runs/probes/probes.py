"""Probes: requested, claimed by one statement, recorded in rounds under a fence, ended by a finding.

A probe is claimed after replays and before any shard, and takes minutes at most. A probe of each worker
(`OF_EACH_WORKER`) waits for those able at its creation (`waits_for`), and is queued again between them.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.db.models.functions import Now

from evalboard import wings
from evalboard.contract.base import write_instant
from evalboard.contract.probe import ProbeEstimate
from evalboard.contract.probe_kinds import OF_EACH_WORKER, OF_EXTERNAL_SERVERS
from evalboard.core.errors import InvalidInput
from evalboard.core.probes import (
    BORDER,
    CANARY_CHANGES,
    MAX_EARLIER,
    ProbeExchange,
    ProbeResult,
    choose_sampling,
    complete_parameters,
    dump_call,
    judge_audit_probe,
    judge_batch_probe,
    judge_border_probe,
    judge_canary_probe,
    judge_capability_probe,
    judge_determinism_probe,
    judge_routing_probe,
    judge_seed_probe,
    judge_vendor_probe,
    parse_call,
)
from evalboard.core.profile import MAX_TESTED_BATCH, OBSERVED, count_wanted_seats, parse_profile
from evalboard.core.trace import combine_clocks
from evalboard.wording.probe import describe_finding
from runs import acts
from runs.catalogue import rotations
from runs.models import (
    BucketRecord,
    EndpointRecord,
    FingerprintRecord,
    ProbeRecord,
    ProfileRecord,
    SuiteVersionRecord,
    WorkerRecord,
)
from runs.pairs.pair_facts import find_names, read_stacks
from runs.probes.nodes import describe_nodes, name_incidents
from runs.probes.read import asked_cases, estimate_calls, probe_tokens
from runs.run import named_endpoint, named_suite_version, newest_profile
from runs.store import storable
from runs.webhooks import news
from runs.work import (
    RESTS_BEFORE_GIVING_UP,
    Lease,
    Requests,
    lease_end,
    lost,
    note_rest,
    refuse_if_nobody_can,
    requests,
    workers,
)

# A batch probe looks at what batching does, so requests must share steps.
# A border probe makes many calls, and their batching is part of what it measures.
DEFAULT_PROFILES = {ProbeRecord.Kind.BATCH: "fast", ProbeRecord.Kind.BORDER: "fast"}
NOT_AROUND = (ProbeRecord.Kind.VENDOR, ProbeRecord.Kind.BORDER)  # a card compares; each has prompts of its own
DEFAULT_PROFILE = "pinned"
EARLIER_CANARIES = 60  # more than a canary is compared with
INCIDENTS = ("differs", "stacks_differ")  # states of an audit that webhooks are told of
REMOTE_ROUTING_CALLS = 60  # if there is something between the worker and the backend


@dataclass(frozen=True, slots=True)
class ProbeCourse:
    """How a kind of probe goes that makes no calls of its own; a wing registers it.

    complete: returns all parameters, of those that an endpoint is given; raises NotFound and InvalidInput. begin:
    requests what the probe needs, in the transaction that stores it. go_on: called as often as a worker claims it.
    """

    complete: Callable[[EndpointRecord, Mapping[str, Any]], dict[str, Any]]
    begin: Callable[[ProbeRecord], None]
    go_on: Callable[..., None]


def create_probe(
    *, endpoint: str, kind: str, profile: str | None = None, parameters: Mapping[str, Any], user: Any = None
) -> ProbeRecord:
    """Ask for a check of an endpoint; a worker of its pool claims the row.

    Where the endpoint is a gateway with a bypass, the same is asked of the bypass, in a probe of its own whose
    `bypass_of` is this one. profile: None for the one that fits the kind. parameters: those that are not given have
    their defaults (`core.probes.parameters`); a suite is that of its newest version. Raises NotFound for names that
    do not exist, InvalidInput with fields, and ProfileRefused when every worker seen lately says that its hardware
    cannot honour the profile; for a verification, whose runs are asked for at once, what `create_run` raises.
    """
    target, decoding, complete = _complete(endpoint, kind, profile, parameters)
    course = _find_course(kind)
    if course is not None:
        complete = course.complete(target, complete)
    elif "suite" in complete:
        version = named_suite_version(complete["suite"], None)
        complete["suite_version"] = version.number
        _refuse_unknown_cases(version, complete.get("cases", ()))
    if fields := _problems(target, decoding, kind, complete):
        raise InvalidInput("The probe is not valid.", fields=fields)
    if kind in (ProbeRecord.Kind.BATCH, ProbeRecord.Kind.DETERMINISM) and "seats" not in parameters:
        complete["seats"] = _seats(decoding, target)
    if kind == ProbeRecord.Kind.ROUTING and target.is_remote and "calls" not in parameters:
        complete["calls"] = REMOTE_ROUTING_CALLS
    refuse_if_nobody_can(target, decoding)
    shared: dict[str, Any] = {"profile": decoding, "kind": kind, "parameters": complete, "created_by": user}
    with transaction.atomic():
        probe = _store(target, shared)
        if course is not None:
            course.begin(probe)
            return probe  # the reference says more than a bypass would
        if (around := _around(target, decoding, kind, complete)) is not None:
            _store(around, {**shared, "bypass_of": probe})
    return probe


def _around(
    target: EndpointRecord, decoding: ProfileRecord, kind: str, complete: Mapping[str, Any]
) -> EndpointRecord | None:
    """Return the bypass that gets the same probe, None where there is none."""
    around = target.bypass if kind not in NOT_AROUND else None
    return None if around is None or _problems(around, decoding, kind, complete) else around


def estimate_probe(
    *, endpoint: str, kind: str, profile: str | None = None, parameters: Mapping[str, Any]
) -> ProbeEstimate:
    """Return the calls, tokens and money that a probe and that of its bypass would take.

    It takes what `create_probe` takes.

    Raises what that raises for a probe that is not valid.
    """
    target, decoding, complete = _complete(endpoint, kind, profile, parameters)
    if "suite" in complete and kind != ProbeRecord.Kind.VERIFY:
        complete["suite_version"] = named_suite_version(complete["suite"], None).number
    if fields := _problems(target, decoding, kind, complete):
        raise InvalidInput("The probe is not valid.", fields=fields)
    if kind == ProbeRecord.Kind.ROUTING and target.is_remote and "calls" not in parameters:
        complete["calls"] = REMOTE_ROUTING_CALLS
    around = None if _find_course(kind) is not None else _around(target, decoding, kind, complete)
    wanted = [each for each in (target, around) if each is not None]
    return estimate_calls(
        [ProbeRecord(endpoint=each, profile=decoding, kind=kind, parameters=complete) for each in wanted]
    )


def _complete(
    endpoint: str, kind: str, profile: str | None, parameters: Mapping[str, Any]
) -> tuple[EndpointRecord, ProfileRecord, dict[str, Any]]:
    """Return the endpoint, the profile, and all parameters.

    A border probe without prompts watches those of the newest search of its endpoint; without one it searches.
    """
    target = named_endpoint(endpoint)
    complete = complete_parameters(kind, parameters)
    decoding = newest_profile(profile or DEFAULT_PROFILES.get(ProbeRecord.Kind(kind), DEFAULT_PROFILE))
    if kind == ProbeRecord.Kind.BORDER and "prompts" not in parameters:
        split = [] if complete["search"] else _split_prompts(target)
        if not split and not complete["search"]:
            _refuse_second_search(target)
        complete["search"] = not split
        complete["prompts"] = split or list(BORDER)
    return target, decoding, complete


def _split_prompts(endpoint: EndpointRecord) -> list[str]:
    """Return the prompts that the newest search of an endpoint found, [] without one."""
    searches = ProbeRecord.objects.filter(
        endpoint=endpoint, kind=ProbeRecord.Kind.BORDER, status=ProbeRecord.Status.FINISHED, parameters__search=True
    )
    newest = searches.filter(finding__state="found").order_by("-pk").first()
    if newest is None or newest.finding is None:
        return []
    return [newest.parameters["prompts"][index] for index in newest.finding["numbers"]["kept"]]


def _refuse_second_search(endpoint: EndpointRecord) -> None:
    """Raise InvalidInput where a search is at work, or found nothing.

    A schedule would pay for it each hour.
    """
    status = ProbeRecord.Status
    searches = ProbeRecord.objects.filter(endpoint=endpoint, kind=ProbeRecord.Kind.BORDER, parameters__search=True)
    newest = searches.order_by("-pk").first()
    if newest is None:
        return
    if newest.status in (status.QUEUED, status.RUNNING):
        words = f"Probe {newest.pk} searches for split prompts now. Start this one when it has ended."
    elif newest.finding is not None and newest.finding["state"] == "none_found":
        words = f"Probe {newest.pk} found too few split prompts. Set search to true, or give prompts of your own."
    else:
        return
    raise InvalidInput("The probe is not valid.", fields={"parameters": words})


def course_of(probe_id: int) -> ProbeCourse | None:
    """Return the course of a probe that makes no calls of its own, None of all others."""
    return _find_course(ProbeRecord.objects.values_list("kind", flat=True).get(pk=probe_id))


def _find_course(kind: str) -> ProbeCourse | None:
    """Raises InvalidInput where the wing of the kind is not there."""
    if kind != ProbeRecord.Kind.VERIFY:
        return None
    courses: dict[str, ProbeCourse] = dict(wings.gather("runs.{}", "PROBE_KINDS"))
    if kind not in courses:
        words = "It needs forced scoring, which this installation does not have."
        raise InvalidInput("The probe is not valid.", fields={"kind": words})
    return courses[kind]


def _store(target: EndpointRecord, shared: Mapping[str, Any]) -> ProbeRecord:
    """Queue a probe of an endpoint. Some kinds wait for each worker of the pool, unless others serve it."""
    is_for_each = shared["kind"] in OF_EACH_WORKER and not target.is_remote
    waits_for = list(workers.able(target.pool).values_list("pk", flat=True)) if is_for_each else []
    probe = ProbeRecord.objects.create(endpoint=target, waits_for=waits_for, price=target.price, **shared)
    requests.ring_after_commit(target.pool, n_workers=max(1, len(waits_for)))
    return probe


def claim_probe(*, worker: WorkerRecord, left_alone: frozenset[int] = frozenset()) -> Lease | None:
    """Claim the oldest claimable probe of the worker's pool, or None. left_alone: ids to skip."""
    mine = ProbeRecord.objects.filter(Q(waits_for=[]) | Q(waits_for__contains=worker.pk)).exclude(pk__in=left_alone)
    mine = mine.exclude(endpoint__rests_until__gt=Now())
    return PROBES.claim(mine, worker=worker)


def record_calls(*, lease: Lease, calls: Sequence[ProbeExchange]) -> None:
    """Store the answers of one round, which renews the lease. Raises LeaseLost.

    Called again with the same round of the same worker it stores nothing: a worker whose connection went away after the
    COMMIT sends its answers once more.
    """
    with PROBES.locked(lease=lease) as probe:
        # Unsent calls represent workers that are gone (`_strike_off`).
        rounds = {(call.round, call.worker) for call in map(parse_call, probe.answers) if call.was_sent}
        new = [call for call in calls if (call.round, call.worker) not in rounds]
        answered = {} if all(call.error for call in new) else {"n_rests": 0}
        PROBES.write(lease=lease, answers=[*probe.answers, *map(_stored, new)], lease_until=lease_end(), **answered)


def finish_probe(*, lease: Lease) -> None:
    """End the probe with its finding; a probe of each worker ends with the last one. Raises LeaseLost.

    A probe without any answer has failed. If a stack other than before gave most of the answers, that is a rotation.
    """
    probe = PROBES.held_row(lease).select_related("endpoint", "profile").first()
    if probe is None:
        raise lost(lease)
    if others := [worker for worker in probe.waits_for if worker != lease.worker_id]:
        with transaction.atomic():
            PROBES.write(lease=lease, waits_for=others)
            PROBES.let_go(PROBES.held_row(lease), "", may_fail=False)
        return
    # Without a lock: only this attempt could have changed the answers.
    ending = _end(probe)
    with transaction.atomic():
        PROBES.finish(lease=lease, **ending, waits_for=[])
        probe.buckets.set(_buckets(probe))
        probe.bucket = ending.get("bucket")
        rotations.note_rotation(shown_by=probe)
        if probe.kind == ProbeRecord.Kind.AUDIT and (ending.get("finding") or {}).get("state") in INCIDENTS:
            news.tell_of_incident(probe, ending["finding"])


def fail_probe(*, lease: Lease, reason: str) -> None:
    """End a probe that the endpoint takes no call of. Raises LeaseLost."""
    PROBES.finish(lease=lease, status=ProbeRecord.Status.FAILED, error=storable(reason))


def let_probe_rest(*, lease: Lease, reason: str, seconds: float, n_failures: int) -> None:
    """Return a probe to the queue while its endpoint is paused. Raises LeaseLost.

    n_failures: calls that failed in a row. The attempt does not count against the probe; after RESTS_BEFORE_GIVING_UP
    rests that brought no round of its answers it has failed.
    """
    with PROBES.locked(lease=lease) as probe:
        note_rest(endpoint_id=probe.endpoint_id, reason=reason, seconds=seconds, n_failures=n_failures)
        n_rests = probe.n_rests + 1
        if n_rests >= RESTS_BEFORE_GIVING_UP:
            words = f"Its endpoint rested {n_rests} times, and no round of calls was answered between. {reason}"
            PROBES.finish(lease=lease, status=ProbeRecord.Status.FAILED, error=storable(words), n_rests=n_rests)
            return
        waiting = {"status": ProbeRecord.Status.QUEUED, "owner": None, "lease_until": None, "error": storable(reason)}
        until = Now() + timedelta(seconds=seconds)
        PROBES.write(lease=lease, **waiting, next_at=until, n_rests=n_rests)


def go_on_without_the_gone() -> bool:
    """Stop waiting for workers that cannot take work. Return True if any were dropped."""
    waiting = ProbeRecord.objects.filter(status=ProbeRecord.Status.QUEUED).exclude(waits_for=[])
    return sum(map(_strike_off_gone, waiting.values_list("pk", flat=True))) > 0


def _seats(decoding: ProfileRecord, endpoint: EndpointRecord) -> int:
    """Return the largest batch that the profile may decode on a GPU, limited by what a self-test measures.

    For an external server that is the number of calls in flight.
    """
    if endpoint.is_remote:
        return min(endpoint.concurrency, MAX_TESTED_BATCH)
    wanted = count_wanted_seats(parse_profile(decoding.settings), {"kind": "cuda"})
    return min(wanted or MAX_TESTED_BATCH, MAX_TESTED_BATCH)


def _refuse_unknown_cases(version: SuiteVersionRecord, ids: Sequence[str]) -> None:
    """Raise InvalidInput if a suite version lacks one of these cases."""
    known = set(version.cases.filter(case_id__in=ids).values_list("case_id", flat=True))
    unknown = [case_id for case_id in ids if case_id not in known]
    if unknown:
        words = f"{version} has no case {unknown[0]}; its page lists the ids."
        raise InvalidInput("The probe is not valid.", fields={"parameters.cases": words})


def _problems(
    endpoint: EndpointRecord, decoding: ProfileRecord, kind: str, parameters: Mapping[str, Any]
) -> dict[str, str]:
    if (no := acts.refusal("probe", endpoint)) is not None:
        return {"endpoint": no.reason}
    if decoding.settings.get("batch_class") == OBSERVED:
        return {"profile": "It was read from logs and lacks settings; choose a complete profile."}
    if kind in OF_EXTERNAL_SERVERS and (no := acts.refusal("check", endpoint)) is not None:
        return {"kind": no.reason}
    if kind == ProbeRecord.Kind.VENDOR and endpoint.api != EndpointRecord.Api.CHAT:
        return {"kind": "It calls tools, and needs an endpoint with the API chat."}
    if kind == ProbeRecord.Kind.AUDIT and endpoint.is_remote:
        return {"kind": "It compares your own workers; use a canary for an external server."}
    if kind == ProbeRecord.Kind.DETERMINISM and endpoint.is_remote:
        return {"kind": "It certifies your own nodes, and this server is external; use a batch probe."}
    if kind == ProbeRecord.Kind.DETERMINISM and decoding.settings.get("batch_class") == "fixed":
        return {"profile": "It promises the same bits to the same group of cases alone; choose another one."}
    if kind == ProbeRecord.Kind.VERIFY:
        return {}
    longest = choose_sampling(kind, parameters, "")["max_tokens"]
    if endpoint.max_model_len is None or longest < endpoint.max_model_len:
        return {}
    words = f"Answers of {longest} tokens leave no room for a prompt in the endpoint's context of"
    return {"parameters.max_tokens": f"{words} {endpoint.max_model_len}."}


def _go_on(rows: QuerySet[ProbeRecord], reason: str) -> tuple[int, QuerySet[ProbeRecord]]:
    """Continue probes of each worker without their owners; return their number, and the other rows."""
    asks_each = list(rows.exclude(waits_for=[]).values_list("pk", flat=True))
    return sum(_go_on_without_owner(rows.filter(pk=probe), reason) for probe in asks_each), rows.filter(waits_for=[])


def _go_on_without_owner(one: QuerySet[ProbeRecord], reason: str) -> int:
    with transaction.atomic():
        probe = one.select_for_update(skip_locked=True).first()
        if probe is None or probe.owner_id is None:
            return 0
        _strike_off(probe, {probe.owner_id: reason})
        return PROBES.let_go(one, reason, may_fail=False)


def _strike_off_gone(probe_id: int) -> bool:
    queued = ProbeRecord.objects.filter(pk=probe_id, status=ProbeRecord.Status.QUEUED).select_related("endpoint")
    with transaction.atomic():
        probe = queued.select_for_update(skip_locked=True, of=("self",)).first()
        if probe is None:
            return False
        pool = probe.endpoint.pool
        rests = ExpressionWrapper(Q(rests_until__gt=Now()), output_field=BooleanField())
        gone = (
            WorkerRecord.objects.filter(pk__in=probe.waits_for).exclude(pk__in=workers.able(pool)).annotate(rests=rests)
        )
        if why := {worker.pk: _why_gone(worker, rests=bool(worker.rests)) for worker in gone}:
            _strike_off(probe, why)
            requests.ring_after_commit(pool)
        return bool(why)


def _why_gone(worker: WorkerRecord, *, rests: bool) -> str:
    if worker.stopped_at is not None:
        return "It has stopped."
    return (
        "It is paused because its engine failed too often."
        if rests
        else "It was not heard of for the length of a lease."
    )


def _strike_off(probe: ProbeRecord, why: Mapping[int, str]) -> None:
    """Drop these workers from a probe. Each is stored as a call that was never sent."""
    left_out = [ProbeExchange(prompt=0, group="ask", worker=worker, error=words) for worker, words in why.items()]
    probe.answers = [*probe.answers, *map(_stored, left_out)]
    probe.waits_for = [worker for worker in probe.waits_for if worker not in why]
    probe.save(update_fields=["answers", "waits_for"])


def _stored(call: ProbeExchange) -> dict[str, Any]:
    return {**dump_call(call), "text": storable(call.text), "error": storable(call.error)}


def _end(probe: ProbeRecord) -> dict[str, Any]:
    """Return the fields that end a probe: its finding, or failed if no engine answered."""
    calls = [parse_call(stored) for stored in probe.answers]
    if all(call.error for call in calls):
        return {"status": ProbeRecord.Status.FAILED, "error": calls[-1].error if calls else "No call was answered."}
    finding = _judge(probe, calls)
    numbers = dict(finding.numbers)
    if probe.kind in OF_EACH_WORKER:
        numbers["left_out"] = _left_out(calls)
    if probe.kind == ProbeRecord.Kind.DETERMINISM and finding.state != "incomplete":
        numbers |= describe_nodes(numbers, calls)
    if probe.kind == ProbeRecord.Kind.AUDIT and finding.state != "incomplete":
        numbers |= _describe_audit(probe, numbers)
    if probe.kind == ProbeRecord.Kind.CAPABILITY:
        numbers["seed_probe"] = _newest_seed_probe(probe)
    if probe.kind == ProbeRecord.Kind.ROUTING and finding.state != "incomplete" and not numbers.get("is_remote"):
        numbers["stacks"] = _name_stacks(probe, numbers)
    if (ahead := combine_clocks(call.clock_ahead for call in calls)) is not None:
        numbers["clock_ahead"] = ahead
    document = {
        "state": finding.state,
        "sentence": describe_finding(probe.kind, finding.state, numbers),
        "numbers": numbers,
    }
    return {"status": ProbeRecord.Status.FINISHED, "finding": document, "error": "", "bucket": _largest_bucket(calls)}


def _largest_bucket(calls: Sequence[ProbeExchange]) -> BucketRecord | None:
    """Return the bucket that gave most of the answers; None if that is an unnamed one."""
    gave = Counter(call.bucket for call in calls if not call.error)
    largest = min(gave, key=lambda bucket: (-gave[bucket], bucket or 0))
    return None if largest is None else BucketRecord.objects.select_related("fingerprint").get(pk=largest)


def _buckets(probe: ProbeRecord) -> set[int]:
    """Return the ids of the buckets that gave its answers; those that nothing names are none."""
    calls = map(parse_call, probe.answers)
    return {call.bucket for call in calls if call.bucket is not None and not call.error}


def _describe_audit(probe: ProbeRecord, numbers: Mapping[str, Any]) -> dict[str, Any]:
    before = _asked_before(probe).values_list("pk", flat=True).first()
    ids = {row[name] for row in numbers["incidents"] for name in ("token", "token_against")} - {None}
    named = name_incidents(numbers, [case.case_id for case in asked_cases(probe)], probe_tokens(probe.pk, sorted(ids)))
    return {**named, "earlier_probe": None if before is None else str(before)}


def _judge(probe: ProbeRecord, calls: Sequence[ProbeExchange]) -> ProbeResult:
    match ProbeRecord.Kind(probe.kind):
        case ProbeRecord.Kind.SEED:
            return judge_seed_probe(calls, random_seed=probe.parameters["random_seed"])
        case ProbeRecord.Kind.BATCH:
            return judge_batch_probe(calls)
        case ProbeRecord.Kind.ROUTING:
            return judge_routing_probe(calls, last_fingerprint=_last_fingerprint(probe))
        case ProbeRecord.Kind.CANARY:
            return judge_canary_probe(calls, _earlier(probe), random_seed=probe.parameters["random_seed"])
        case ProbeRecord.Kind.CAPABILITY:
            return judge_capability_probe(calls)
        case ProbeRecord.Kind.VENDOR:
            return judge_vendor_probe(calls, parameters=probe.parameters)
        case ProbeRecord.Kind.BORDER:
            return judge_border_probe(calls, _earlier_watches(probe), parameters=probe.parameters)
        case ProbeRecord.Kind.DETERMINISM:
            return judge_determinism_probe(calls, parameters=probe.parameters)
        case ProbeRecord.Kind.AUDIT:
            before = _asked_before(probe).first()
            return judge_audit_probe(calls, map(parse_call, before.answers if before is not None else ()))
        case ProbeRecord.Kind.VERIFY:
            raise ValueError("A verification is judged by what was scored, not by calls.")


def _left_out(calls: Sequence[ProbeExchange]) -> list[dict[str, str]]:
    why = {call.worker: call.error for call in calls if not call.was_sent and call.worker is not None}
    names = dict(WorkerRecord.objects.filter(pk__in=why).values_list("pk", "name"))
    return [{"worker": names[worker], "why": words} for worker, words in why.items() if worker in names]


def _last_fingerprint(probe: ProbeRecord) -> str | None:
    """Return the endpoint's last known stack, by the name that this probe's answers use."""
    now = rotations.serving_now(probe)
    fingerprint = None if now is None else FingerprintRecord.objects.get(pk=now.fingerprint_id)
    if fingerprint is None or not probe.endpoint.is_remote:
        return None if fingerprint is None else fingerprint.digest
    source: dict[str, str] = fingerprint.manifest.get("source", {})
    return source.get("backend") or source.get("system_fingerprint")


def _name_stacks(probe: ProbeRecord, numbers: Mapping[str, Any]) -> dict[str, str]:
    """Return what pages call the stacks of a routing probe, by digest."""
    find_names([(probe.endpoint_id, bucket) for bucket in _buckets(probe)])  # those without a name get one
    digests = {numbers["last_fingerprint"], *(row["fingerprint"] for row in numbers["fingerprints"])}
    return {digest: stack.title for digest, stack in read_stacks(probe.endpoint.slug, digests - {None}).items()}


def _newest_seed_probe(probe: ProbeRecord) -> dict[str, Any] | None:
    """The newest seed probe of the same endpoint, whose many calls say more than a capability's three."""
    newest = _ended_before(probe, ProbeRecord.Kind.SEED).values("pk", "finding__state", "finished_at").first()
    if newest is None or newest["finished_at"] is None:
        return None
    at = write_instant(newest["finished_at"])
    return {"id": str(newest["pk"]), "state": newest["finding__state"], "at": at}


def _ended_before(probe: ProbeRecord, kind: str) -> QuerySet[ProbeRecord]:
    """Return finished probes of one kind of the same endpoint before this one, newest first."""
    same = ProbeRecord.objects.filter(endpoint=probe.endpoint_id, kind=kind, status=ProbeRecord.Status.FINISHED)
    return same.filter(pk__lt=probe.pk).order_by("-pk")


def _asked_before(probe: ProbeRecord) -> QuerySet[ProbeRecord]:
    """Return those of them with the same profile and parameters."""
    return _ended_before(probe, probe.kind).filter(profile=probe.profile_id, parameters=probe.parameters)


def _earlier_watches(probe: ProbeRecord) -> list[dict[str, Any]]:
    """Return the numbers of earlier equal watches, oldest first, from the last detected change on."""
    newest_first: list[dict[str, Any]] = []
    for finding in _asked_before(probe).values_list("finding", flat=True)[:MAX_EARLIER]:
        if finding is None or "words" not in finding["numbers"]:
            continue
        newest_first.append(finding["numbers"])
        if finding["state"] == "changed":
            break
    return newest_first[::-1]


def _earlier(probe: ProbeRecord) -> list[list[ProbeExchange]]:
    """Return the answers of earlier equal canaries, oldest first, from the last detected change on.

    They begin with the last that found a change, for what was there before it is no longer there.
    """
    newest_first: list[list[ProbeExchange]] = []
    for answers, finding in _asked_before(probe).values_list("answers", "finding")[:EARLIER_CANARIES]:
        newest_first.append([parse_call(stored) for stored in answers])
        if finding is not None and finding["state"] in CANARY_CHANGES:
            break
    return newest_first[::-1]


PROBES = Requests(ProbeRecord, serving="", go_on=_go_on)
