"""Decode the cases of a shard on an engine, and store the results, in batches if it is fast."""

import time
from collections.abc import Iterable
from functools import partial
from itertools import groupby

from django.conf import settings

from evalboard.calling.calls import EngineFailure
from evalboard.core.trace import Failed
from runs.work import (
    CRASHES_BEFORE_ISOLATION,
    SHARDS,
    Beat,
    CaseToDecode,
    Lease,
    ShardWork,
    bind_bucket,
    claim_shard,
    count_engine_failure,
    fail_start,
    finish_shard,
    forget_engine_failures,
    mark_in_flight,
    others_work,
    record_pace,
    release_shard,
    renew_shard,
    shard_work,
)
from worker.heartbeat import Heartbeat
from worker.jobs import Station, describe_failure, make_request
from worker.remote_shard import RemoteShards
from worker.session import Opened
from worker.shard_steps import Recorder, end_if_cancelled

# After so many shards on one engine the lane that has waited longest goes first, whatever engine it needs.
WARM_CLAIMS = 8

Units = list[list[CaseToDecode]]


class ShardJob:
    """The shards of runs."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._session = station.session
        self._calls = RemoteShards(station)
        self._warm_for: int | None = None  # the run that was decoded last
        self._n_starts = 0  # of the session, up to the engine that decoded it
        self._n_warm = 0  # shards that this engine has had

    def claim(self) -> Lease | None:
        is_warm = self._session.is_open and self._session.n_starts == self._n_starts
        return claim_shard(
            worker=self._station.worker,
            left_alone=self._station.left_alone("run"),
            warm_for=self._warm_for if is_warm and self._n_warm % WARM_CLAIMS else None,
        )

    def resume(self) -> Lease | None:
        return SHARDS.resume(worker=self._station.worker)

    def renew(self, *, lease: Lease) -> Beat:
        return renew_shard(lease=lease)

    def let_go(self, lease: Lease, reason: str) -> None:
        release_shard(lease=lease, reason=reason, is_crash=False)

    def fail(self, lease: Lease, reason: str) -> None:
        release_shard(lease=lease, reason=reason, is_crash=True)

    def work(self, lease: Lease, heartbeat: Heartbeat) -> None:
        work = shard_work(lease.id)
        if work.serving.endpoint.is_remote:
            self._calls.work(lease, work, heartbeat)
            return
        refusal = self._station.find_refusal(work.serving)
        if refusal is not None:
            self._leave_alone(lease, work, refusal)
            return
        try:
            opened = self._open(lease, work)
        except EngineFailure as failure:
            self._session.discard()
            if not self._is_cancelled(lease, heartbeat):
                fail_start(lease=lease, reason=describe_failure(failure))
                self._count_engine_failure(work.run_id, failure)
            return
        if opened is not None:
            self._decode(lease, work, opened, heartbeat)

    def _open(self, lease: Lease, work: ShardWork) -> Opened | None:
        """Return the engine for this shard; None if its bucket is not the run's, which is then skipped."""
        opened = self._session.open_for(work)
        self._n_warm = 1 if self._session.n_starts > self._n_starts else self._n_warm + 1
        self._warm_for, self._n_starts = work.run_id, self._session.n_starts
        if bind_bucket(run_id=work.run_id, bucket=opened.process.bucket):
            return opened
        self._leave_alone(lease, work, "the run must stay on the serving stack that it began on.")
        return None

    def _decode(self, lease: Lease, work: ShardWork, opened: Opened, heartbeat: Heartbeat) -> None:
        units = _units(work.cases, opened.plan.group_size)
        began = time.monotonic()
        try:
            if work.n_crashes >= CRASHES_BEFORE_ISOLATION:
                if not self._decode_in_isolation(lease, work, units, heartbeat):
                    return
            else:
                self._decode_together(units, opened, heartbeat)
        except EngineFailure as failure:
            self._session.discard()
            if not self._is_cancelled(lease, heartbeat):
                self.fail(lease, failure.detail)
                self._count_engine_failure(work.run_id, failure)
            return
        if not self._is_cancelled(lease, heartbeat):
            heartbeat.persist(partial(finish_shard, lease=lease))
            seconds = time.monotonic() - began
            record_pace(worker=self._station.worker, n_responses=sum(map(len, units)), seconds=seconds)
            forget_engine_failures(worker=self._station.worker)

    def _is_cancelled(self, lease: Lease, heartbeat: Heartbeat) -> bool:
        return end_if_cancelled(self._station, lease, heartbeat)

    def _decode_together(self, units: Units, opened: Opened, heartbeat: Heartbeat) -> None:
        recorder = Recorder(heartbeat=heartbeat, process=opened.process)
        requests = [make_request(case, opened.plan.sampling) for unit in units for case in unit]
        try:
            for outcome in opened.engine.decode(requests):
                recorder.add(outcome)
                if self._station.must_end(heartbeat):
                    break  # where the abort came before the decode had begun
        finally:
            recorder.flush()

    def _decode_in_isolation(self, lease: Lease, work: ShardWork, units: Units, heartbeat: Heartbeat) -> bool:
        """One unit at a time, so that the case that kills the engine is known; the others still get theirs.

        False where the shard was given back: the engine that came after a crash is not the run's any more.
        """
        for unit in units:
            if self._station.must_end(heartbeat):
                break
            opened = self._open(lease, work)
            if opened is None:
                return False
            heartbeat.persist(partial(mark_in_flight, lease=lease, case_index=unit[0].index))
            try:
                self._decode_together([unit], opened, heartbeat)
            except EngineFailure as failure:
                self._session.discard()
                recorder = Recorder(heartbeat=heartbeat, process=None)
                for case in unit:
                    recorder.add(Failed(case.index, failure.code, describe_failure(failure)))
                recorder.flush()
        return True

    def _leave_alone(self, lease: Lease, work: ShardWork, why: str) -> None:
        self._station.leave_alone("run", work.run_id, why)
        self.let_go(lease, why)

    def _count_engine_failure(self, run_id: int, failure: EngineFailure) -> None:
        """Let other workers, if any, try this run now, and all runs after repeated failures."""
        worker = self._station.worker
        has_others = others_work(worker=worker)
        is_degraded = count_engine_failure(worker=worker, detail=failure.detail, rests=has_others)
        if has_others:
            self._station.skip("run", run_id)
        if has_others and is_degraded:
            self._station.rests_until = time.monotonic() + settings.REST_SECONDS


def _units(cases: Iterable[CaseToDecode], group_size: int | None) -> Units:
    """Return what must be decoded together: single cases, or whole groups with any missing case.

    A group keeps its composition even when it is decoded again after a crash.
    """
    size = group_size or 1
    groups = [list(members) for _, members in groupby(cases, key=lambda case: case.index // size)]
    return [group for group in groups if not all(case.is_done for case in group)]
