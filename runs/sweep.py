"""Repair what crashed processes left behind. Safe to run anywhere, at any time, twice."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Now

from evalboard import wings
from evalboard.core.profile import parse_profile
from evalboard.core.trace import Failed
from runs.audit import cut_trail, seal_trail
from runs.baselines import references_to_compare, unattended_rotations
from runs.compare import comparisons
from runs.imports import end_lost_readings
from runs.judging import advance_judging, due_judgings
from runs.models import Event, RepeatRecord, RunRecord, Shard, WorkerRecord
from runs.probes import PROBES, probes
from runs.release import verdicts
from runs.replays import REPLAYS
from runs.retention import apply_rules
from runs.run import idempotency
from runs.schedules import due_schedules, endpoints_without_check, schedule_check, start_due
from runs.store import history, may_decide
from runs.suites import TRIALS, run_reference_sets
from runs.work import CRASHES_BEFORE_ISOLATION, SCORINGS, SHARDS, dispatch, failed_scorings, let_go, responses, rollup
from runs.work.requests import Requests

logger = logging.getLogger(__name__)

RING_AGAIN = timedelta(seconds=30)
WAIT_BEFORE_SAYING_SO = timedelta(minutes=10)
REQUESTS: tuple[Requests[Any], ...] = (REPLAYS, PROBES, TRIALS, SCORINGS, *wings.gather("runs.{}", "REQUESTS"))
NEXT: dict[str, str] = {
    Shard.Status.QUEUED: "Back in the queue.",
    Shard.Status.CANCELLED: "Cancelled with its run.",
    Shard.Status.FAILED: "It was lost too often, and has failed.",
}


def reconcile() -> int:
    """Take expired leases back, end what has ended, report what waits. Return the number of shards.

    One bad row never stops the sweep: it is logged, and the others go on.
    """
    n_taken_back = _take_all_back(SHARDS.expired(), "its worker was not heard of for the length of a lease")
    for requests in REQUESTS:
        _guarded(requests.take_back_expired)
    _guarded(probes.go_on_without_the_gone)
    Shard.objects.cancelled_in_the_queue().update(status=Shard.Status.CANCELLED)
    for scoring_id in failed_scorings():
        _guarded(_give_up_scoring, scoring_id)
    for repeat_id in _repeats_to_finish():
        _guarded(_finish_repeat, repeat_id)
    if may_decide():
        _act_for_people()
    _stop_silent_workers()
    _ring_again()
    _say_what_waits()
    return n_taken_back


def _act_for_people() -> None:
    """Judge runs, decide releases and start what people planned, where this process may."""
    for judging_id in due_judgings():
        _guarded(advance_judging, judging_id)
    for release_id in verdicts.undecided():
        _guarded(_decide, release_id)
    for endpoint_id in endpoints_without_check():
        _guarded(schedule_check, endpoint_id)
    for schedule_id in due_schedules():
        _guarded(start_due, schedule_id)
    for open_work, advance in wings.gather("runs.{}", "SWEPT"):
        for work_id in open_work():
            _guarded(advance, work_id)
    for rotation_id in unattended_rotations():
        _guarded(run_reference_sets, rotation_id)
    for earlier, later in references_to_compare():
        _guarded(_compare, earlier, later)
    idempotency.forget_old_keys()
    end_lost_readings()
    _guarded(_follow_retention)
    _guarded(seal_trail)
    _guarded(cut_trail)


def release_dead_workers(*, place: str, is_gone: Callable[[int, int], bool]) -> int:
    """Return the shards of workers whose process is gone. is_gone: takes pid and start.

    Only a process of the same place can know that (runs.own_process); where the place is not known, and for workers of
    others, the lease decides.
    """
    here = WorkerRecord.objects.filter(stopped_at=None, place=place).exclude(place="")
    known = here.values_list("pk", "pid", "process_started")
    worker_ids = [worker_id for worker_id, pid, started in known if started is not None and is_gone(pid, started)]
    n_taken_back = _take_all_back(SHARDS.owned_by(worker_ids), "its worker's process is gone")
    for requests in REQUESTS:
        _guarded(requests.take_back_from, worker_ids)
    WorkerRecord.objects.filter(pk__in=worker_ids).update(stopped_at=Now())
    return n_taken_back


def _take_all_back(lost: QuerySet[Shard], why: str) -> int:
    return sum(_guarded(_take_back, lost, shard_id, why) for shard_id in list(lost.values_list("id", flat=True)))


def _take_back(lost: QuerySet[Shard], shard_id: int, why: str) -> bool:
    """Return one shard to the queue if, once locked, it is still lost: a late heartbeat may have saved it."""
    with transaction.atomic():
        shard = lost.filter(pk=shard_id).select_for_update(skip_locked=True, of=("self",)).first()
        if shard is None:
            return False
        repeat = RepeatRecord.objects.select_related("run__profile").get(pk=shard.repeat_id)
        is_blamed = _blame(shard, repeat)
        name = shard.owner.name if shard.owner else "unknown"
        shard.n_crashes += 1
        let_go(shard, reason=f"Worker lost: {why}.", may_fail=not is_blamed)
        place = f"Repeat {repeat.index}, cases {shard.first}–{shard.last}, attempt {shard.attempt}"
        text = f"worker {name} lost, {why}. {NEXT[shard.status]}"
        history.note(repeat.run_id, "worker_lost", text, place=place, level=Event.Level.WARNING)
    if shard.status != Shard.Status.QUEUED:
        rollup.finish_repeat(repeat_id=repeat.pk)
    return True


def _blame(shard: Shard, repeat: RepeatRecord) -> bool:
    """Record the cases in flight as the cause of a crash, if they were decoded one at a time."""
    if shard.in_flight is None or shard.n_crashes < CRASHES_BEFORE_ISOLATION:
        return False
    size = parse_profile(repeat.run.profile.settings).group_size or 1
    for index in range(shard.in_flight, min(shard.in_flight + size, shard.last + 1)):
        failed = Failed(index, "worker_crash", "The worker died with this case in flight, alone.")
        responses.record_crash(shard=shard, failed=failed)
    return True


def _repeats_to_finish() -> list[int]:
    """Repeats whose shards have all ended, but whose last worker died before it could say so."""
    open_shards = Q(shards__status__in=(Shard.Status.QUEUED, Shard.Status.RUNNING))
    waiting = RepeatRecord.objects.filter(
        finished_at=None, run__status__in=(RunRecord.Status.QUEUED, RunRecord.Status.RUNNING)
    )
    return list(
        waiting.exclude(pk__in=RepeatRecord.objects.filter(open_shards).values("pk")).values_list("pk", flat=True)
    )


def _give_up_scoring(scoring_id: int) -> bool:
    rollup.give_up_scoring(scoring_id=scoring_id)
    return True


def _finish_repeat(repeat_id: int) -> bool:
    """End a repeat, or report on its run's page why that failed; the next sweep tries again."""
    try:
        return rollup.finish_repeat(repeat_id=repeat_id)
    except Exception as fault:
        repeat = RepeatRecord.objects.get(pk=repeat_id)
        text = f"Repeat {repeat.index} cannot be scored and ended: {type(fault).__name__}: {fault}. It is tried again."
        history.note_once(repeat.run_id, "not_ended", text, level=Event.Level.ERROR)
        raise


def _follow_retention() -> bool:
    return apply_rules() > 0


def _decide(release_id: int) -> bool:
    verdicts.decide_release(release_id=release_id)
    return True


def _compare(earlier: int, later: int) -> bool:
    """Compare a reference set's run after a rotation with the one before, for the rotation's row."""
    comparisons.compare(baseline=earlier, candidate=later)
    return True


def _stop_silent_workers() -> None:
    """A worker that was silent for ten leases is taken off the list of the living."""
    long_ago = Now() - timedelta(seconds=10 * settings.LEASE_SECONDS)
    WorkerRecord.objects.filter(stopped_at=None, seen_at__lt=long_ago).update(stopped_at=F("seen_at"))


def _ring_again() -> None:
    """Ring again for claimable work that was not claimed: the ring was lost, or no worker heard it."""
    waiting = Shard.objects.claimable().filter(next_at__lt=Now() - RING_AGAIN)
    for pool, n_shards in waiting.values_list("repeat__run__endpoint__pool").annotate(n=Count("pk")).order_by():
        dispatch.ring_or_log(pool, n_shards=n_shards)


def _say_what_waits() -> None:
    """Note once on a run that no worker has worked on for ten minutes, although its pool is idle."""
    lately = Now() - WAIT_BEFORE_SAYING_SO
    open_runs = RunRecord.objects.filter(
        status__in=(RunRecord.Status.QUEUED, RunRecord.Status.RUNNING), is_cancel_wanted=False
    )
    # A finished shard keeps its last lease: between two shards of a run none is running.
    at_work = Shard.objects.filter(
        repeat__run__in=open_runs, repeat__run__endpoint__pool=OuterRef("endpoint__pool"), lease_until__gt=lately
    )
    # Workers that leave a run alone claim it and let it go again and again.
    noted = Event.objects.filter(run=OuterRef("pk"), at__gt=lately).exclude(code__in=("attempt", "shard_released"))
    for run in open_runs.exclude(Exists(at_work)).exclude(Exists(noted)).select_related("endpoint"):
        text = f"No worker of pool {run.endpoint.pool} matches this run; it waits. The workers page says why."
        history.note_once(run.pk, "no_matching_worker", text, level=Event.Level.WARNING)


def _guarded(step: Callable[..., bool], *arguments: Any) -> bool:
    try:
        return step(*arguments)
    except Exception:  # whatever is wrong with one row, the others go on
        logger.exception("The sweep left %s alone", arguments or step)
        return False
