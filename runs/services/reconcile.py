"""What puts things right that nobody is left to put right. Safe to run anywhere, at any time, twice."""

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from evalboard.core.provenance import Failed
from runs.models import Event, Repeat, Run, Shard, Worker
from runs.services import history, responses, rollup
from runs.services.shards import CRASHES_BEFORE_ISOLATION

logger = logging.getLogger(__name__)

WAIT_BEFORE_SAYING_SO = timedelta(minutes=10)


def reconcile() -> int:
    """Take back expired leases, end what has ended, say what waits; how many shards were taken back.

    One bad row never stops the sweep: it is logged, and the others go on.
    """
    n_taken_back = 0
    for shard_id in list(Shard.objects.expired().values_list("id", flat=True)):
        n_taken_back += _guarded(_take_back, shard_id, "its worker was not heard of for the length of a lease")
    for repeat_id in _repeats_to_finish():
        _guarded(_finish_repeat, repeat_id)
    _stop_silent_workers()
    _say_what_waits()
    return n_taken_back


def release_dead_workers(*, host: str, alive_pids: Iterable[int]) -> int:
    """Take back at once the shards of this host's workers whose process is gone.

    Only the host itself can know that; others wait for the lease to end.
    """
    gone = Worker.objects.filter(host=host, stopped_at=None).exclude(pid__in=list(alive_pids))
    shard_ids = list(Shard.objects.filter(owner__in=gone, status=Shard.Status.RUNNING).values_list("id", flat=True))
    n_taken_back = sum(_guarded(_take_back, shard_id, "its worker's process is gone") for shard_id in shard_ids)
    gone.update(stopped_at=Now())
    return n_taken_back


def _take_back(shard_id: int, why: str) -> bool:
    with transaction.atomic():
        shard = Shard.objects.select_for_update(skip_locked=True, of=("self",)).filter(pk=shard_id).first()
        if shard is None or shard.status != Shard.Status.RUNNING:
            return False
        repeat = Repeat.objects.select_related("run").get(pk=shard.repeat_id)
        _blame(shard, repeat)
        text = f"Repeat {repeat.index}, cases {shard.first}–{shard.last}: worker lost, {why}. Back in the queue."
        history.note(repeat.run, "worker_lost", text, level=Event.Level.WARNING)
        cancelled = repeat.run.is_cancel_wanted
        shard.status = Shard.Status.CANCELLED if cancelled else Shard.Status.QUEUED
        shard.owner, shard.lease_until, shard.in_flight = None, None, None
        shard.n_crashes += 1
        shard.error = f"Worker lost: {why}."
        shard.save()
    if cancelled:
        rollup.finish_repeat(repeat_id=repeat.pk)
    return True


def _blame(shard: Shard, repeat: Repeat) -> None:
    """The case that was being decoded alone when the worker died is the one that kills it."""
    if shard.in_flight is None or shard.n_crashes < CRASHES_BEFORE_ISOLATION:
        return
    failed = Failed(shard.in_flight, "worker_crash", "The worker died with this case in flight, alone.")
    responses.record_crash(shard=shard, run_id=repeat.run_id, failed=failed)


def _repeats_to_finish() -> list[int]:
    """Repeats whose shards have all ended, but whose last worker died before it could say so."""
    open_shards = Q(shards__status__in=(Shard.Status.QUEUED, Shard.Status.RUNNING))
    waiting = Repeat.objects.filter(finished_at=None, run__status__in=(Run.Status.QUEUED, Run.Status.RUNNING))
    return list(waiting.exclude(pk__in=Repeat.objects.filter(open_shards).values("pk")).values_list("pk", flat=True))


def _finish_repeat(repeat_id: int) -> bool:
    return rollup.finish_repeat(repeat_id=repeat_id)


def _stop_silent_workers() -> None:
    """A worker that was silent for ten leases is taken off the list of the living."""
    long_ago = Now() - timedelta(seconds=10 * settings.LEASE_SECONDS)
    Worker.objects.filter(stopped_at=None, seen_at__lt=long_ago).update(stopped_at=F("seen_at"))


def _say_what_waits() -> None:
    """A run at which nobody has worked for ten minutes says so, once."""
    open_runs = Run.objects.filter(status__in=(Run.Status.QUEUED, Run.Status.RUNNING), is_cancel_wanted=False)
    idle = open_runs.exclude(repeats__shards__status=Shard.Status.RUNNING).exclude(
        events__at__gt=Now() - WAIT_BEFORE_SAYING_SO
    )
    for run in idle.select_related("endpoint"):
        text = f"No worker of pool {run.endpoint.pool} matches this run; it waits. The workers page says why."
        history.note_once(run, "no_matching_worker", text, level=Event.Level.WARNING)


def _guarded(step: Callable[..., bool], *arguments: Any) -> bool:
    try:
        return step(*arguments)
    except Exception:  # whatever is wrong with one row, the others go on
        logger.exception("The sweep left %s alone", arguments)
        return False
