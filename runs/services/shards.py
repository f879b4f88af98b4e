"""How work survives: one statement claims a shard, and the attempt number fences every later write."""

from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from runs.models import Bucket, Event, Repeat, Run, Shard, Worker
from runs.services import doorbell, history, rollup, rotations, traces
from runs.services.leases import Lease, fenced, held, lease_span
from runs.services.storable import storable

CRASHES_BEFORE_ISOLATION = 2
CRASHES_BEFORE_FAILURE = 6
STARTS_BEFORE_FAILURE = 3

CLAIM = """
UPDATE runs_shard
   SET status = 'running', owner_id = %(worker)s, attempt = attempt + 1, in_flight = NULL,
       lease_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
 WHERE id = (
       SELECT shard.id
         FROM runs_shard shard
         JOIN runs_repeat repeat ON repeat.id = shard.repeat_id
         JOIN runs_run run ON run.id = repeat.run_id
         JOIN runs_endpoint endpoint ON endpoint.id = run.endpoint_id
        WHERE shard.status = 'queued' AND shard.next_at <= clock_timestamp()
          AND endpoint.pool = %(pool)s AND NOT run.is_cancel_wanted
          AND run.status IN ('queued', 'running') AND NOT run.id = ANY(%(left_alone)s)
        ORDER BY shard.id
        LIMIT 1
          FOR UPDATE OF shard SKIP LOCKED)
RETURNING id, attempt
"""


def claim_shard(*, worker: Worker, left_alone: frozenset[int] = frozenset()) -> Lease | None:
    """Claim the oldest claimable shard of the worker's pool, or None.

    `left_alone` are runs that this worker cannot serve.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                CLAIM,
                {
                    "worker": worker.pk,
                    "lease_seconds": lease_span().total_seconds(),
                    "pool": worker.pool,
                    "left_alone": sorted(left_alone),
                },
            )
            row = cursor.fetchone()
        if row is None:
            return None
        shard = Shard.objects.select_related("repeat__run").get(pk=row[0])
        _mark_started(shard.repeat, worker, row[1], shard)
    return Lease(
        shard_id=shard.pk,
        attempt=row[1],
        worker_id=worker.pk,
        run_id=shard.repeat.run_id,
        repeat_id=shard.repeat_id,
    )


def bind_bucket(*, lease: Lease, bucket: Bucket) -> bool:
    """Bind the run to the bucket that serves it; False if it is bound to another one."""
    with transaction.atomic():
        if Run.objects.filter(pk=lease.run_id, bucket=None).update(bucket=bucket):
            related = ("endpoint", "profile", "bucket__fingerprint")
            rotations.note_rotation(run=Run.objects.select_related(*related).get(pk=lease.run_id))
    return Run.objects.filter(pk=lease.run_id, bucket=bucket).exists()


def finish_shard(*, lease: Lease) -> None:
    """End a shard, and whatever ends with it. Raises LeaseLost.

    One that has a case without a response has not ended: that counts as a crash of the engine that said so.
    """
    with transaction.atomic():
        shard = fenced(lease)
        if shard.n_done < shard.n_cases:
            left_out = f"The engine left out {shard.n_cases - shard.n_done} of {shard.n_cases} cases."
            release_shard(lease=lease, reason=left_out, is_crash=True)
            return
        traces.pack_shard(shard, run_id=lease.run_id)
        shard.status, shard.in_flight = Shard.Status.FINISHED, None
        shard.save(update_fields=["status", "in_flight"])
    rollup.finish_repeat(repeat_id=lease.repeat_id)


def release_shard(*, lease: Lease, reason: str, is_crash: bool) -> None:
    """Give a shard back to the queue; a crash counts towards running its cases one at a time.

    A shard that crashed too often, though its cases ran one at a time, has failed, and one whose run
    is to be cancelled is cancelled. A lease that is already lost is left as it is.
    """
    with transaction.atomic():
        shard = held(lease).select_for_update().first()
        if shard is None:
            return
        shard.n_crashes += int(is_crash)
        by = shard.owner.name if shard.owner else "unknown"
        let_go(shard, run_id=lease.run_id, reason=reason, may_fail=is_crash)
        if is_crash:
            text = f"{_name(shard)}, attempt {lease.attempt} by {by}: {reason}"
            history.note(lease.run_id, "shard_released", text, level=Event.Level.ERROR)
        else:  # a worker that cannot serve the run tries again every minute, for as long as the run waits
            history.note_once(lease.run_id, "shard_released", f"{_name(shard)}: given back by {by}: {reason}")
    if shard.status != Shard.Status.QUEUED:
        rollup.finish_repeat(repeat_id=lease.repeat_id)


def let_go(shard: Shard, *, run_id: int, reason: str, may_fail: bool) -> None:
    """Take a locked shard from its owner: cancelled with its run, failed after too many crashes, else queued.

    Of a queued one its pool is told.
    """
    run = Run.objects.select_related("endpoint").get(pk=run_id)
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
        doorbell.ring_after_commit(run)


def cancel_shard(*, lease: Lease) -> None:
    """End a running shard because its run is being cancelled; what it has recorded stays."""
    held(lease).update(status=Shard.Status.CANCELLED, lease_until=None, in_flight=None)
    rollup.finish_repeat(repeat_id=lease.repeat_id)


def fail_start(*, lease: Lease, reason: str) -> None:
    """The engine did not start for this shard; after three failed starts the run has failed.

    Between them the whole run pauses: what keeps an engine from starting is often gone a little later, and the
    next start should be for the same shard, not for each of the others.
    """
    if held(lease).update(n_failed_starts=F("n_failed_starts") + 1) == 0:
        return
    n_failed = held(lease).values_list("n_failed_starts", flat=True).first()
    if n_failed is not None and n_failed < STARTS_BEFORE_FAILURE:
        release_shard(lease=lease, reason=reason, is_crash=False)
        pause = timedelta(seconds=n_failed * settings.START_PAUSE_SECONDS)
        Shard.objects.claimable().filter(repeat__run=lease.run_id).update(next_at=Now() + pause)
        return
    words = storable(reason)
    with transaction.atomic():
        # Shards before their run, in the order of those who record: the other way round both could wait for ever.
        Shard.objects.open().filter(repeat__run=lease.run_id).update(
            status=Shard.Status.FAILED, error=words, lease_until=None, in_flight=None
        )
        Run.objects.filter(pk=lease.run_id).update(failure=words)
        history.note(lease.run_id, "engine_start_failed", words, level=Event.Level.ERROR)
    for repeat_id in Repeat.objects.filter(run=lease.run_id).values_list("id", flat=True):
        rollup.finish_repeat(repeat_id=repeat_id)


def _mark_started(repeat: Repeat, worker: Worker, attempt: int, shard: Shard) -> None:
    run = repeat.run
    if repeat.status == Repeat.Status.QUEUED:
        Repeat.objects.filter(pk=repeat.pk, status=Repeat.Status.QUEUED).update(status=Repeat.Status.RUNNING)
    if run.status == Run.Status.QUEUED:
        Run.objects.filter(pk=run.pk, status=Run.Status.QUEUED).update(status=Run.Status.RUNNING)
    if run.started_at is None:
        Run.objects.filter(pk=run.pk, started_at=None).update(started_at=Now())
    if shard.n_crashes:
        history.note(repeat.run_id, "attempt", f"{_name(shard)}: attempt {attempt} begun by {worker.name}.")


def _name(shard: Shard) -> str:
    return f"Repeat {shard.repeat.index}, cases {shard.first}–{shard.last}"
