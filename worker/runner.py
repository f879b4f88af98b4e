"""Claims shards, replays and probes, drives an engine through a shard's cases, records what comes back."""

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection

from evalboard.core import profile
from evalboard.core.errors import EvalboardError, LeaseLost
from evalboard.core.provenance import Failed
from runs import own_process, services
from runs.models import Worker
from runs.selectors.self_test import self_test_result
from runs.selectors.work import CaseToDecode, ShardWork, shard_work
from runs.services.shards import CRASHES_BEFORE_ISOLATION
from worker.engines.base import DecodeRequest, Engine, EngineFailure, EngineSpec
from worker.heartbeat import AWAY, Heartbeat
from worker.left_alone import LeftAlone
from worker.probe import Prober
from worker.recorder import Recorder
from worker.replay import Replayer
from worker.session import EngineSession, Opened

logger = logging.getLogger(__name__)

IDLE_SECONDS = 1.0
LAST_LINES_KEPT = 20
AnyLease = TypeVar("AnyLease", services.Lease, services.ReplayLease, services.ProbeLease)


class Runner:
    """One worker: at most one shard and one engine at a time."""

    def __init__(self, *, pool: str, hardware: Mapping[str, Any], make_engine: Callable[[EngineSpec], Engine]) -> None:
        host, place = socket.gethostname(), own_process.own_place()
        services.release_dead_workers(place=place, is_gone=own_process.is_gone)
        self.worker: Worker = services.register_worker(
            name=f"{host}-{os.getpid()}-{secrets.token_hex(2)}",
            host=host,
            pid=os.getpid(),
            place=place,
            process_started=own_process.started(os.getpid()),
            pool=pool,
            hardware={name: value for name, value in hardware.items() if name != "versions"},
            versions=hardware.get("versions", {}),
        )
        self._hardware = hardware
        self._session = EngineSession(worker=self.worker, hardware=hardware, make_engine=make_engine)
        self._replayer = Replayer(worker=self.worker, hardware=hardware, session=self._session)
        self._prober = Prober(worker=self.worker, hardware=hardware, session=self._session)
        self._runs_left_alone, self._probes_left_alone = LeftAlone(), LeftAlone()
        self._rests_until = self._beaten_at = self._reconciled_at = float("-inf")
        self._n_fenced = 0  # not yet told: the database may be out of reach when it happens
        self._turn = threading.Lock()
        self._is_stopping = False  # no Event: a signal handler sets it, and may not wait for an Event's lock

    def stop(self) -> None:
        """Stop soon: the shard under way goes back to the queue. Callable from a signal handler."""
        self._is_stopping = True
        self._session.abort()

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping

    def run_forever(self, *, look_seconds: float = IDLE_SECONDS) -> None:
        """Work until stopped, looking for work every `look_seconds`; a database that is away is waited for."""
        looked_at = float("-inf")
        while not self._is_stopping:
            close_old_connections()
            self._tend()
            if time.monotonic() - looked_at >= look_seconds:
                self.work(is_patient=False)
                looked_at = time.monotonic()
            time.sleep(IDLE_SECONDS)
        with self._turn:  # what another thread still does for this worker ends first
            self._leave()

    def work(self, *, is_patient: bool = True) -> None:
        """Claim and run shards until there are none for this worker; read for comparisons. Callable from any thread.

        One thread at a time: another one waits for its turn, or lets it be where it is not patient.
        """
        if not self._turn.acquire(blocking=is_patient):
            return
        try:
            while not self._is_stopping:
                has_run = not self._is_resting and self.claim_and_run()
                if not (services.work_on_comparison() or has_run):  # a few seconds between two shards at the most
                    break
                self._tend()
        except DatabaseError as away:
            _wait_for_database(away)
        finally:
            self._turn.release()

    @property
    def _is_resting(self) -> bool:
        return time.monotonic() < self._rests_until

    @property
    def _has_a_reason_to_tell(self) -> bool:
        """Whether its note says why it does not work on what waits."""
        return self._is_resting or bool(self._runs_left_alone.now() or self._probes_left_alone.now())

    def _tend(self) -> None:
        """Beat and sweep where that is due: short shards end before their lease's heartbeat beats."""
        now = time.monotonic()
        try:
            if now - self._beaten_at > settings.HEARTBEAT_SECONDS:
                self._beaten_at = now
                services.beat(worker=self.worker, note=None if self._has_a_reason_to_tell else "")
            if now - self._reconciled_at > min(settings.RECONCILE_SECONDS, settings.LEASE_SECONDS / 3):
                self._reconciled_at = now
                services.reconcile()
        except DatabaseError as away:
            _wait_for_database(away)

    def claim_and_run(self) -> bool:
        """Claim one thing and work on it; False if there was none for this worker.

        Replays and probes come before shards: they are short, and a person waits for them.
        """
        if self._n_fenced:
            services.count_fenced(worker=self.worker, n=self._n_fenced)
            self._n_fenced = 0
        return self._claim_replay() or self._claim_probe() or self._claim_shard()

    def _claim_replay(self) -> bool:
        asked_at = time.monotonic()
        lease = services.claim_replay(worker=self.worker, left_alone=self._runs_left_alone.now())
        if lease is None:
            return False
        give_up = partial(services.release_replay, lease=lease, may_fail=True)
        self._hold(lease, asked_at, renew=services.renew_replay, serve=self._replay, give_up=give_up)
        return True

    def _claim_probe(self) -> bool:
        asked_at = time.monotonic()
        lease = services.claim_probe(worker=self.worker, left_alone=self._probes_left_alone.now())
        if lease is None:
            return False
        give_up = partial(services.release_probe, lease=lease, may_fail=True)
        self._hold(lease, asked_at, renew=services.renew_probe, serve=self._probe, give_up=give_up)
        return True

    def _claim_shard(self) -> bool:
        asked_at = time.monotonic()
        lease = services.claim_shard(worker=self.worker, left_alone=self._runs_left_alone.now())
        if lease is None:
            return False
        give_up = partial(services.release_shard, lease=lease, is_crash=True)
        self._hold(lease, asked_at, renew=services.renew_lease, serve=self._serve, give_up=give_up)
        return True

    def _hold(
        self,
        lease: AnyLease,
        asked_at: float,
        *,
        renew: Callable[..., services.Beat],
        serve: Callable[[AnyLease, Heartbeat], None],
        give_up: Callable[..., None],
    ) -> None:
        """Serve what was claimed while its lease is renewed; whatever goes wrong, it is given up and the worker lives.

        asked_at: the monotonic time before the claim.
        """
        with Heartbeat(
            lease=lease, worker=self.worker, on_stop=self._session.abort, asked_at=asked_at, renew=renew
        ) as heartbeat:
            try:
                serve(lease, heartbeat)
            except LeaseLost as gone:
                logger.warning("%s", gone.detail)
                self._n_fenced += 1
            except AWAY:
                raise  # run_forever waits for the database; the lease ends by itself
            except Exception as fault:  # whatever it is, it must cost this one an attempt and not the worker
                logger.exception("Gave up %s", lease)
                self._session.discard()
                give_up(reason=f"{type(fault).__name__}: {fault}")

    def _replay(self, lease: services.ReplayLease, heartbeat: Heartbeat) -> None:
        if refusal := self._replayer.serve(lease, heartbeat, lambda: self._is_stopping):
            self._note_left_alone(lease.run_id, refusal)

    def _probe(self, lease: services.ProbeLease, heartbeat: Heartbeat) -> None:
        try:
            why = self._prober.serve(lease, heartbeat, lambda: self._is_stopping)
        except EngineFailure as failure:
            services.release_probe(lease=lease, reason=_words(failure), may_fail=True)
            why = failure.detail if services.others_work(worker=self.worker) else ""
        if why:
            self._probes_left_alone.add(lease.probe_id)
            services.beat(worker=self.worker, note=f"Leaves probe {lease.probe_id} alone: {why}")

    def _serve(self, lease: services.Lease, heartbeat: Heartbeat) -> None:
        work = shard_work(lease.shard_id)
        refusal = profile.refusal(
            profile.parse(work.serving.profile_settings),
            self._hardware,
            host=self.worker.host,
            self_test_result=self_test_result(self.worker.pk),
        )
        if refusal is not None:
            self._leave_alone(lease, refusal)
            return
        try:
            opened = self._open(lease, work)
        except EngineFailure as failure:
            self._session.discard()
            if not self._end_early(lease, heartbeat):
                services.fail_start(lease=lease, reason=_words(failure))
                self._count_engine_failure(lease.run_id, failure)
            return
        if opened is not None:
            self._decode(lease, work, opened, heartbeat)

    def _open(self, lease: services.Lease, work: ShardWork) -> Opened | None:
        """The engine for this shard; None where its bucket is not the run's, which is then left alone."""
        opened = self._session.open_for(work)
        if services.bind_bucket(lease=lease, bucket=opened.process.bucket):
            return opened
        self._leave_alone(lease, "it keeps to another serving stack than this worker's.")
        return None

    def _decode(self, lease: services.Lease, work: ShardWork, opened: Opened, heartbeat: Heartbeat) -> None:
        units = _units(work.cases, opened.plan.group_size)
        try:
            if work.n_crashes >= CRASHES_BEFORE_ISOLATION:
                if not self._decode_in_isolation(lease, work, units, heartbeat):
                    return
            else:
                self._decode_together(units, opened, heartbeat)
        except EngineFailure as failure:
            self._session.discard()
            if not self._end_early(lease, heartbeat):
                services.release_shard(lease=lease, reason=failure.detail, is_crash=True)
                self._count_engine_failure(lease.run_id, failure)
            return
        if not self._end_early(lease, heartbeat):
            heartbeat.persist(partial(services.finish_shard, lease=lease))
            services.forget_engine_failures(worker=self.worker)

    def _end_early(self, lease: services.Lease, heartbeat: Heartbeat) -> bool:
        """Let the shard go where the work was stopped from outside; False if it was not."""
        if heartbeat.is_lost:
            self._n_fenced += 1
            return True
        if heartbeat.is_cancel_wanted:
            services.cancel_shard(lease=lease)
            return True
        if self._is_stopping:
            services.release_shard(lease=lease, reason="The worker was stopped.", is_crash=False)
            return True
        return False

    def _decode_together(self, units: list[list[CaseToDecode]], opened: Opened, heartbeat: Heartbeat) -> None:
        recorder = Recorder(heartbeat=heartbeat, process=opened.process)
        requests = [_request(case, opened) for unit in units for case in unit]
        try:
            for outcome in opened.engine.decode(requests):
                recorder.add(outcome)
                if heartbeat.must_stop or self._is_stopping:
                    break  # where the abort came before the decode had begun
        finally:
            recorder.flush()

    def _decode_in_isolation(
        self, lease: services.Lease, work: ShardWork, units: list[list[CaseToDecode]], heartbeat: Heartbeat
    ) -> bool:
        """One unit at a time, so that the case that kills the engine is known; the others still get theirs.

        False where the shard was given back: the engine that came after a crash is not the run's any more.
        """
        for unit in units:
            if heartbeat.must_stop or self._is_stopping:
                break
            opened = self._open(lease, work)
            if opened is None:
                return False
            heartbeat.persist(partial(services.mark_in_flight, lease=lease, case_index=unit[0].index))
            try:
                self._decode_together([unit], opened, heartbeat)
            except EngineFailure as failure:
                self._session.discard()
                recorder = Recorder(heartbeat=heartbeat, process=None)
                for case in unit:
                    recorder.add(Failed(case.index, failure.code, _words(failure)))
                recorder.flush()
        return True

    def _leave_alone(self, lease: services.Lease, why: str) -> None:
        self._note_left_alone(lease.run_id, why)
        services.release_shard(lease=lease, reason=why, is_crash=False)

    def _note_left_alone(self, run_id: int, why: str) -> None:
        self._runs_left_alone.add(run_id)
        services.beat(worker=self.worker, note=f"Leaves run {run_id} alone: {why}")

    def _count_engine_failure(self, run_id: int, failure: EngineFailure) -> None:
        """Let others try where there are others: this run at once, and every run after failures in a row."""
        has_others = services.others_work(worker=self.worker)
        is_degraded = services.count_engine_failure(worker=self.worker, detail=failure.detail, rests=has_others)
        if has_others:
            self._runs_left_alone.add(run_id)
        if has_others and is_degraded:
            self._rests_until = time.monotonic() + settings.REST_SECONDS

    def _leave(self) -> None:
        try:
            self._session.close()
            services.stop_worker(worker=self.worker)
        except (DatabaseError, EvalboardError) as problem:
            logger.warning("Left without saying so: %s", problem)


def _wait_for_database(away: DatabaseError) -> None:
    logger.warning("The database is away: %s", away)
    connection.close()


def _units(cases: Iterable[CaseToDecode], group_size: int | None) -> list[list[CaseToDecode]]:
    """What must be decoded together: single cases, or whole groups wherever one case of a group is missing.

    A group keeps its composition even when it is decoded again after a crash.
    """
    size = group_size or 1
    groups = [list(members) for _, members in groupby(cases, key=lambda case: case.index // size)]
    return [group for group in groups if not all(case.is_done for case in group)]


def _words(failure: EngineFailure) -> str:
    """What happened, and the end of what the engine itself said."""
    own = "\n".join(failure.last_words.splitlines()[-LAST_LINES_KEPT:])
    return f"{failure.detail}\n{own}".strip()


def _request(case: CaseToDecode, opened: Opened) -> DecodeRequest:
    sampling = {**opened.plan.sampling, "seed": case.seed}
    return DecodeRequest(case_index=case.index, messages=case.messages, tools=case.tools, sampling=sampling)
