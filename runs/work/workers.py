"""Workers, their nodes' self-tests and their engine processes: identity, heartbeats, attestation."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from evalboard.core.errors import ProfileRefused
from evalboard.core.profile import (
    NO_ENGINE,
    attest_pins,
    check_self_test,
    digest_adapter,
    digest_model,
    digest_node,
    find_profile_refusal,
    find_size_refusal,
    identify_manifest,
    is_batch_invariant,
    parse_profile,
)
from runs.models import (
    BucketRecord,
    EndpointRecord,
    EngineProcess,
    Event,
    FingerprintRecord,
    Model,
    ProfileRecord,
    ResponseRecord,
    SelfTestRecord,
    VocabularyRecord,
    WorkerRecord,
)
from runs.store import database_now, history, storable
from runs.work.claims import lease_span

FAILURES_BEFORE_DEGRADED = 3
MAX_NOTE = 500  # characters
MAX_MODEL_NAME = 200


def register_worker(
    *,
    name: str,
    host: str,
    pid: int,
    pool: str,
    hardware: Mapping[str, Any],
    versions: Mapping[str, Any],
    scorers: Sequence[Mapping[str, Any]] = (),
    place: str = "",
    process_started: int | None = None,
) -> WorkerRecord:
    """Say that a worker has started, together with what its node's newest self-test found.

    `place` and `process_started` are what runs.own_process says; without them only its lease tells that it is gone.
    """
    return WorkerRecord.objects.create(
        name=name,
        host=host,
        pid=pid,
        place=place,
        process_started=process_started,
        pool=pool,
        hardware=hardware,
        versions=versions,
        scorers=list(scorers),
        self_test=self_test_of(host=host, node_digest=digest_node(hardware, versions)),
        seen_at=Now(),
    )


def report_scorers(*, worker: WorkerRecord, scorers: Sequence[Mapping[str, Any]]) -> None:
    """Record the teams' own scorers that a worker has now; they were others when it started."""
    worker.scorers = list(scorers)
    worker.save(update_fields=["scorers"])


def beat(*, worker: WorkerRecord, note: str | None = None) -> None:
    """Record that the worker is alive. note: what it does."""
    changes: dict[str, Any] = {"seen_at": Now(), "stopped_at": None}  # it may have been taken for gone
    if note is not None:
        changes |= _noted(note)
    WorkerRecord.objects.filter(pk=worker.pk).update(**changes)


def leave_alone(*, worker: WorkerRecord, noun: str, key: int, why: str) -> None:
    """Record that the live worker leaves a run, probe or scoring (noun) to other workers, and why."""
    left = {"noun": noun, "id": key, "why": storable(why[:MAX_NOTE])}
    WorkerRecord.objects.filter(pk=worker.pk).update(seen_at=Now(), stopped_at=None, note="", left_alone=left)


def _noted(text: str) -> dict[str, Any]:
    return {"note": text[:MAX_NOTE], "left_alone": None}


def others_work(*, worker: WorkerRecord) -> bool:
    """Return whether another live worker of the pool could take what this one cannot."""
    return able(worker.pool).exclude(pk=worker.pk).exists()


def living_workers() -> QuerySet[WorkerRecord]:
    """Select the workers that were heard of within a lease and have not stopped."""
    return WorkerRecord.objects.filter(stopped_at=None, seen_at__gt=Now() - lease_span())


def able(pool: str, *, needs_engine: bool = True) -> QuerySet[WorkerRecord]:
    """Select the workers of a pool that can take work: heard of within a lease, not stopped, not resting.

    needs_engine: those without an engine, which serve external endpoints only, are left out.
    """
    living = living_workers().filter(pool=pool)
    resting_or_not_able = Q(rests_until__gt=Now()) | (
        Q(hardware__contains={"kind": NO_ENGINE}) if needs_engine else Q()
    )
    return living.exclude(resting_or_not_able)


def refuse_if_nobody_can(endpoint: EndpointRecord, decoding: ProfileRecord) -> None:
    """Raise ProfileRefused if all recently seen workers of the pool lack its GPUs or refuse the profile."""
    if endpoint.is_remote:
        return  # a call needs no hardware
    settings_of_profile = parse_profile(decoding.settings)
    alive = living_workers().filter(pool=endpoint.pool)
    sizes = endpoint.sizes
    if gap := find_size_refusal(alive.values_list("hardware", flat=True), sizes, pool=endpoint.pool):
        raise ProfileRefused(gap)
    refusals = [
        find_profile_refusal(
            settings_of_profile,
            worker.hardware,
            host=worker.host,
            self_test_result=worker.self_test.result if worker.self_test else None,
            sizes=sizes,
        )
        for worker in alive.select_related("self_test")
    ]
    if refusals and all(refusals):
        raise ProfileRefused(f"No worker can honour the profile {decoding.slug}. {refusals[0]}")


def count_engine_failure(*, worker: WorkerRecord, detail: str, rests: bool) -> bool:
    """Count a failure in a row. Return True from the third on; with `rests` the worker then pauses."""
    mine = WorkerRecord.objects.filter(pk=worker.pk)
    mine.update(n_engine_failures=F("n_engine_failures") + 1)
    n_failures = mine.values_list("n_engine_failures", flat=True).get()
    if n_failures < FAILURES_BEFORE_DEGRADED:
        return False
    what = f"Its engine failed {n_failures} times in a row, last: {detail}"
    changes = _noted(what)
    if rests:
        changes["rests_until"] = Now() + timedelta(seconds=settings.REST_SECONDS)
    mine.update(**changes)
    return True


def record_pace(*, worker: WorkerRecord, n_responses: int, seconds: float) -> None:
    """Record how fast the worker decoded its last shard, unless that took no time."""
    if n_responses and seconds > 0:
        WorkerRecord.objects.filter(pk=worker.pk).update(pace=n_responses / seconds)


def forget_engine_failures(*, worker: WorkerRecord) -> None:
    """Forget failures, as a shard was finished: whatever failed before is over."""
    failing = WorkerRecord.objects.filter(pk=worker.pk, n_engine_failures__gt=0)
    failing.update(n_engine_failures=0, rests_until=None, **_noted(""))


def count_fenced(*, worker: WorkerRecord, n: int = 1) -> None:
    """Count writes of this worker that were refused because another attempt has its shard, or may have it."""
    WorkerRecord.objects.filter(pk=worker.pk).update(n_fenced=F("n_fenced") + n)


def stop_worker(*, worker: WorkerRecord) -> None:
    WorkerRecord.objects.filter(pk=worker.pk).update(stopped_at=Now(), seen_at=Now(), **_noted(""))


def open_engine_process(
    *,
    worker: WorkerRecord,
    manifest: Mapping[str, Any],
    wanted_pins: Mapping[str, Any],
    batch_class: str,
    line: str,
    model_name: str,
    start_seconds: float,
) -> EngineProcess:
    """Record an engine's start: its manifest, its bucket, and each pin as held or broken."""
    identity = identify_manifest(manifest)
    files = manifest["model"]["files"]
    digest = digest_model(files)
    with transaction.atomic():
        if digest_adapter(files) and Model.objects.filter(name=model_name, line=line).exclude(digest=digest).exists():
            model_name += f" ({digest[:8]})"  # many trainers call every adapter "final"
        model, _ = Model.objects.get_or_create(
            digest=digest,
            defaults={
                "name": model_name[-MAX_MODEL_NAME:],
                "line": line,
                "files": files,
                "template_digest": manifest["model"]["template_digest"],
            },
        )
        print_, _ = FingerprintRecord.objects.get_or_create(
            digest=identity.digest, defaults={"label": identity.label, "manifest": identity.manifest}
        )
        bucket, _ = BucketRecord.objects.get_or_create(model=model, fingerprint=print_, batch_class=batch_class)
        return EngineProcess.objects.create(
            worker=worker,
            bucket=bucket,
            vocabulary=VocabularyRecord.objects.filter(digest=manifest["model"]["tokenizer_digest"]).first(),
            manifest=_with_self_test(manifest, worker),
            pins=attest_pins(wanted_pins, manifest["engine"]),
            start_seconds=start_seconds,
        )


def store_vocabulary(*, process: EngineProcess, digest: str, n_tokens: int, data: bytes) -> None:
    """Keep a tokenizer's vocabulary the first time it is seen."""
    vocabulary, _ = VocabularyRecord.objects.get_or_create(digest=digest, defaults={"n_tokens": n_tokens, "data": data})
    process.vocabulary = vocabulary
    process.save(update_fields=["vocabulary"])


def record_self_check(*, process: EngineProcess, digest: str) -> bool:
    """Record a self-check; where its bits changed, mark the responses since the last good one.

    The first check of a process is what later ones are held against. Returns whether it was the same.
    """
    with transaction.atomic():
        locked = EngineProcess.objects.select_for_update().get(pk=process.pk)
        checks: list[dict[str, Any]] = locked.self_checks
        same = not checks or digest == checks[0]["digest"]
        if not same:
            last_good = max(check["at"] for check in checks if check["same"])
            _mark_unvouched(locked, datetime.fromisoformat(last_good))
        locked.self_checks = [*checks, {"at": database_now().isoformat(), "digest": digest, "same": same}]
        locked.save(update_fields=["self_checks"])
    return same


def close_engine_process(*, process: EngineProcess, last_words: str) -> None:
    """Record an engine's end with the end of its stderr, which explains a crash."""
    EngineProcess.objects.filter(pk=process.pk).update(stopped_at=Now(), last_words=storable(last_words))


def record_self_test(
    *, host: str, hardware: Mapping[str, Any], versions: Mapping[str, Any], result: Mapping[str, Any]
) -> SelfTestRecord:
    """Keep a self-test; workers of this node that are at work take it over from the one they had.

    `hardware` and `versions` as a worker reports them. Raises InvalidInput where the result is not whole.
    """
    check_self_test(result)
    digest = digest_node(hardware, versions)
    with transaction.atomic():
        test = SelfTestRecord.objects.create(
            host=host, node_digest=digest, result=result, is_invariant=is_batch_invariant(result)
        )
        worker_ids = [
            worker.pk
            for worker in WorkerRecord.objects.filter(host=host, stopped_at=None)
            if digest_node(worker.hardware, worker.versions) == digest
        ]
        WorkerRecord.objects.filter(pk__in=worker_ids).update(self_test=test)
    return test


def self_test_of(*, host: str, node_digest: str) -> SelfTestRecord | None:
    """Return the newest self-test of this host with its present hardware and versions."""
    return SelfTestRecord.objects.filter(host=host, node_digest=node_digest).order_by("-id").first()


def _with_self_test(manifest: Mapping[str, Any], worker: WorkerRecord) -> dict[str, Any]:
    """The manifest with the node's self-test in its host part, which no fingerprint covers."""
    test = SelfTestRecord.objects.filter(
        workers=worker
    ).first()  # newer, perhaps, than what the worker had at its start
    known = test and {"id": test.pk, "at": test.created_at.isoformat(), "is_invariant": test.is_invariant}
    return {**manifest, "host": {**manifest["host"], "self_test": known}}


def _mark_unvouched(process: EngineProcess, since: datetime) -> None:
    doubtful = ResponseRecord.objects.filter(engine_process=process, recorded_at__gt=since, is_vouched=True)
    run_ids: set[int] = set(doubtful.values_list("repeat__run", flat=True))
    doubtful.update(is_vouched=False)
    for run_id in run_ids:
        text = "The engine's self-check no longer gives the same bits; responses since the last good one are marked."
        history.note(run_id, "self_check_failed", text, level=Event.Level.ERROR)
