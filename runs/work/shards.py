"""How a shard is worked on, given back and ended; and what follows for its run."""

from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from evalboard.core.errors import LeaseLost
from runs.catalogue import rotations
from runs.models import BucketRecord, Event, RepeatRecord, RunRecord, Shard, WorkerRecord
from runs.store import history, storable, traces
from runs.work import dispatch, queue, rollup
from runs.work.claims import Beat, Claims, Lease, lease_end

CRASHES_BEFORE_ISOLATION = 2
CRASHES_BEFORE_FAILURE = 6
STARTS_BEFORE_FAILURE = 3

SHARDS = Claims(Shard, serving="repeat__run__")


def claim_shard(
    *, worker: WorkerRecord, left_alone: frozenset[int] = frozenset(), warm_for: int | None = None
) -> Lease | None:
    """Claim the shard of the worker's pool whose turn it is (`work.queue`), or None.

    `left_alone` are runs that this worker cannot serve; `warm_for` is the run that its engine was started for, where
    it would rather go on with that engine.
    """
    with transaction.atomic():
        chosen = queue.next_shard(
            pool=worker.pool, left_alone=left_alone, warm_for=warm_for, has_engine=worker.has_engine
        )
        queue.go_along_index()
        lease = SHARDS.claim_chosen(*chosen, worker=worker)
        if lease is not None:
            shard = Shard.objects.select_related("repeat__run").get(pk=lease.id)
            _mark_started(shard.repeat, worker, lease.attempt, shard)
            queue.take_turn(shard=shard)
    return lease


def renew_shard(*, lease: Lease) -> Beat:
    """Extend a valid lease, and return whether the run is to be cancelled."""
    is_held = SHARDS.renew(lease=lease).is_held
    wanted = RunRecord.objects.filter(repeats__shards=lease.id, is_cancel_wanted=True).exists()
    return Beat(is_held=is_held, is_cancel_wanted=wanted)


def mark_in_flight(*, lease: Lease, case_index: int) -> None:
    """Record the single case being decoded, to attribute a crash to it. Raises LeaseLost."""
    SHARDS.write(lease=lease, in_flight=case_index, lease_until=lease_end())


def bind_bucket(*, run_id: int, bucket: BucketRecord) -> bool:
    """Bind the run to the bucket that serves it; False if it is bound to another one."""
    with transaction.atomic():
        if RunRecord.objects.filter(pk=run_id, bucket=None).update(bucket=bucket):
            related = ("endpoint", "profile", "bucket__fingerprint")
            rotations.note_rotation(shown_by=RunRecord.objects.select_related(*related).get(pk=run_id))
    return RunRecord.objects.filter(pk=run_id, bucket=bucket).exists()


def finish_shard(*, lease: Lease) -> None:
    """End a shard, and whatever ends with it. Raises LeaseLost.

    One that has a case without a response has not ended: that counts as a crash of the engine that said so.
    """
    with SHARDS.locked(lease=lease, related=["repeat"]) as shard:
        if shard.n_done < shard.n_cases:
            left_out = f"The engine left out {shard.n_cases - shard.n_done} of {shard.n_cases} cases."
            release_shard(lease=lease, reason=left_out, is_crash=True)
            return
        traces.pack_shard(shard, run_id=shard.repeat.run_id)
        shard.status, shard.in_flight = Shard.Status.FINISHED, None
        shard.save(update_fields=["status", "in_flight"])
    rollup.finish_repeat(repeat_id=shard.repeat_id)


def release_shard(*, lease: Lease, reason: str, is_crash: bool) -> None:
    """Give a shard back to the queue; a crash counts towards running its cases one at a time.

    A shard that crashed too often, though its cases ran one at a time, has failed, and one whose run
    is to be cancelled is cancelled. A lease that is already lost is left as it is.
    """
    try:
        with SHARDS.locked(lease=lease, related=["repeat", "owner"]) as shard:
            _release(shard, reason, is_crash=is_crash)
    except LeaseLost:
        return
    if shard.status != Shard.Status.QUEUED:
        rollup.finish_repeat(repeat_id=shard.repeat_id)


def let_go(shard: Shard, *, reason: str, may_fail: bool) -> None:
    """Take a locked shard from its owner: cancel it with its run, fail it after crashes, or queue it.

    A queued shard's pool is notified.
    """
    run = RunRecord.objects.select_related("endpoint").get(repeats=shard.repeat_id)
    if run.is_cancel_wanted:
        shard.status = Shard.Status.CANCELLED
    elif may_fail and shard.n_crashes >= CRASHES_BEFORE_FAILURE:
        shard.status = Shard.Status.FAILED
    else:
        shard.status = Shard.Status.QUEUED
    shard.owner, shard.lease_until, shard.in_flight, shard.error = None, None, None, storable(reason)
    shard.next_at = Now()
    shard.save()
    if shard.status == Shard.Status.QUEUED:
        dispatch.ring_after_commit(run)


def cancel_shard(*, lease: Lease) -> None:
    """End a running shard because its run is being cancelled; stored responses stay."""
    SHARDS.held_row(lease).update(status=Shard.Status.CANCELLED, lease_until=None, in_flight=None)
    rollup.finish_repeat(repeat_id=Shard.objects.values_list("repeat", flat=True).get(pk=lease.id))


def fail_start(*, lease: Lease, reason: str) -> None:
    """Record that the engine did not start for this shard; after three failed starts the run has failed.

    Between them the whole run pauses: what keeps an engine from starting is often gone a little later, and the
    next start should be for the same shard, not for each of the others.
    """
    mine = SHARDS.held_row(lease)
    if mine.update(n_failed_starts=F("n_failed_starts") + 1) == 0:
        return
    row = mine.values_list("n_failed_starts", "repeat__run").first()
    if row is None:
        return
    n_failed, run_id = row
    if n_failed < STARTS_BEFORE_FAILURE:
        release_shard(lease=lease, reason=reason, is_crash=False)
        pause = timedelta(seconds=n_failed * settings.START_PAUSE_SECONDS)
        Shard.objects.claimable().filter(repeat__run=run_id).update(next_at=Now() + pause)
        return
    fail_run(run_id=run_id, code="engine_start_failed", reason=reason)


def fail_run(*, run_id: int, code: str, reason: str) -> None:
    """End a run that cannot succeed; stored responses stay. code: of the history line."""
    words = storable(reason)
    with transaction.atomic():
        # Shards before their run, in the order of those who record: the other way round both could wait for ever.
        Shard.objects.open().filter(repeat__run=run_id).update(
            status=Shard.Status.FAILED, error=words, lease_until=None, in_flight=None
        )
        RunRecord.objects.filter(pk=run_id).update(failure=words)
        history.note(run_id, code, words, level=Event.Level.ERROR)
    for repeat_id in RepeatRecord.objects.filter(run=run_id).values_list("id", flat=True):
        rollup.finish_repeat(repeat_id=repeat_id)


def _release(shard: Shard, reason: str, *, is_crash: bool) -> None:
    shard.n_crashes += int(is_crash)
    by, run_id = shard.owner.name if shard.owner else "unknown", shard.repeat.run_id
    let_go(shard, reason=reason, may_fail=is_crash)
    if is_crash:
        place = f"{_name(shard)}, attempt {shard.attempt} by {by}"
        history.note(run_id, "shard_released", reason, place=place, level=Event.Level.ERROR)
    else:  # a worker that cannot serve the run tries again every minute, for as long as the run waits
        history.note_once(run_id, "shard_released", f"given back by {by}: {reason}", place=_name(shard))


def _mark_started(repeat: RepeatRecord, worker: WorkerRecord, attempt: int, shard: Shard) -> None:
    run = repeat.run
    if repeat.status == RepeatRecord.Status.QUEUED:
        RepeatRecord.objects.filter(pk=repeat.pk, status=RepeatRecord.Status.QUEUED).update(
            status=RepeatRecord.Status.RUNNING
        )
    if run.status == RunRecord.Status.QUEUED:
        RunRecord.objects.filter(pk=run.pk, status=RunRecord.Status.QUEUED).update(status=RunRecord.Status.RUNNING)
    if run.started_at is None:
        RunRecord.objects.filter(pk=run.pk, started_at=None).update(started_at=Now())
    if shard.n_crashes:
        history.note(repeat.run_id, "attempt", f"attempt {attempt} begun by {worker.name}.", place=_name(shard))


def _name(shard: Shard) -> str:
    return f"Repeat {shard.repeat.index}, cases {shard.first}–{shard.last}"
