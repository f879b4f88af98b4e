"""The loop of a worker: claim one row at a time, and renew its lease while the job works on it."""

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection

from evalboard import wings
from evalboard.core.errors import EvalboardError, LeaseLost
from runs.compare import work_on_comparison
from runs.judging import work_on_judgings
from runs.models import WorkerRecord
from runs.store import own_process
from runs.sweep import reconcile, release_dead_workers
from runs.work import Lease, beat, count_fenced, register_worker, report_scorers, stop_worker, work_on_strays
from worker.calls import EndpointClient, OpenClients
from worker.engines.base import Engine, EngineSpec
from worker.engines.openai import OpenAIEngine
from worker.heartbeat import AWAY, Heartbeat
from worker.http_scorer import PROBE_SECONDS
from worker.jobs import Job, Station, WorkInterrupted
from worker.probe import ProbeJob
from worker.replay import ReplayJob
from worker.scorers import find_scorers
from worker.scoring import ScoreJob
from worker.session import EngineSession
from worker.shard import ShardJob
from worker.trial import TrialJob

logger = logging.getLogger(__name__)

IDLE_SECONDS = 1.0
# In this order they are claimed: what comes before shards is short, and a person waits for it.
JOBS: tuple[Callable[[Station], Job], ...] = (
    *(TrialJob, ScoreJob, ReplayJob, ProbeJob),
    *wings.gather("worker.{}", "JOBS"),
    ShardJob,
)


class Runner:
    """One worker: at most one row of work and one engine at a time."""

    def __init__(
        self,
        *,
        pool: str,
        hardware: Mapping[str, Any],
        make_engine: Callable[[EngineSpec], Engine],
        make_client: Callable[..., EndpointClient] = OpenAIEngine,
        jobs: Sequence[Callable[[Station], Job]] = JOBS,
    ) -> None:
        host, place = socket.gethostname(), own_process.own_place()
        release_dead_workers(place=place, is_gone=own_process.is_gone)
        self.worker: WorkerRecord = register_worker(
            name=f"{host}-{os.getpid()}-{secrets.token_hex(2)}",
            host=host,
            pid=os.getpid(),
            place=place,
            process_started=own_process.started(os.getpid()),
            pool=pool,
            hardware={name: value for name, value in hardware.items() if name != "versions"},
            versions=hardware.get("versions", {}),
            scorers=[asdict(each) for each in find_scorers(wait_seconds=PROBE_SECONDS)],
        )
        self._session = EngineSession(worker=self.worker, hardware=hardware, make_engine=make_engine)
        calls = OpenClients(make_client, worker=self.worker)
        self._station = Station(worker=self.worker, hardware=hardware, session=self._session, calls=calls)
        self._jobs = [make_job(self._station) for make_job in jobs]
        self._beaten_at = self._reconciled_at = float("-inf")
        self._may_have_a_row = False  # the database went away, with the answer to a claim or in the middle of a job
        self._n_fenced = 0  # not yet told: the database may be out of reach when it happens
        self._turn = threading.Lock()

    def stop(self) -> None:
        """Stop soon and return current work to the queue. Callable from a signal handler."""
        self._station.is_stopping = True
        self._station.abort()

    @property
    def is_stopping(self) -> bool:
        return self._station.is_stopping

    def run_forever(self, *, look_seconds: float = IDLE_SECONDS) -> None:
        """Work until stopped, looking for work every `look_seconds`; a database that is away is waited for."""
        looked_at = float("-inf")
        while not self._station.is_stopping:
            close_old_connections()
            self._tend()
            if time.monotonic() - looked_at >= look_seconds:
                self.work(is_patient=False)
                looked_at = time.monotonic()
            time.sleep(IDLE_SECONDS)
        with self._turn:  # what another thread still does for this worker ends first
            self._leave()

    def work(self, *, is_patient: bool = True) -> None:
        """Claim and work until there is nothing left for this worker. Callable from any thread.

        One thread at a time: others wait, or return at once if not patient.
        """
        if not self._turn.acquire(blocking=is_patient):
            return
        try:
            while not self._station.is_stopping:
                has_run = not self._station.is_resting and self.claim_and_run()
                # A few seconds between two shards at the most.
                if not (work_on_judgings() or work_on_comparison() or work_on_strays() or has_run):
                    break
                self._tend()
        except DatabaseError as away:
            self._may_have_a_row = True
            _wait_for_database(away)
        finally:
            self._turn.release()

    def _tend(self) -> None:
        """Beat and sweep where that is due: short shards end before their lease's heartbeat beats."""
        now = time.monotonic()
        try:
            if now - self._beaten_at > settings.HEARTBEAT_SECONDS:
                self._beaten_at = now
                beat(worker=self.worker, note=None if self._station.is_picky else "")
            if now - self._reconciled_at > min(settings.RECONCILE_SECONDS, settings.LEASE_SECONDS / 3):
                self._reconciled_at = now
                reconcile()
                self._report_scorers()
        except DatabaseError as away:
            _wait_for_database(away)

    def _report_scorers(self) -> None:
        """Say which scorers of a team are here now, where they are others than before."""
        here = [asdict(each) for each in find_scorers()]
        if here != self.worker.scorers:
            report_scorers(worker=self.worker, scorers=here)

    def claim_and_run(self) -> bool:
        """Claim one row and work on it; False if there was none for this worker."""
        if self._n_fenced:
            count_fenced(worker=self.worker, n=self._n_fenced)
            self._n_fenced = 0
        if self._may_have_a_row:
            for job in self._jobs:
                self._claim_and_run(job, job.resume)
            self._may_have_a_row = False
        return any(self._claim_and_run(job, job.claim) for job in self._jobs)

    def _claim_and_run(self, job: Job, claim: Callable[[], Lease | None]) -> bool:
        claimed_at = time.monotonic()
        lease = claim()
        if lease is None:
            return False
        with Heartbeat(
            lease=lease, worker=self.worker, on_stop=self._station.abort, claimed_at=claimed_at, renew=job.renew
        ) as heartbeat:
            try:
                _work(job, lease, heartbeat)
            except LeaseLost as lost:
                logger.warning("%s", lost.detail)
                self._n_fenced += 1
            except AWAY:
                raise  # the database is waited for; the lease is then resumed, or ends by itself
            except Exception as fault:  # whatever it is, it must cost this row an attempt and not the worker
                logger.exception("Gave up %s", lease)
                self._session.discard()
                job.fail(lease, f"{type(fault).__name__}: {fault}")
        return True

    def _leave(self) -> None:
        try:
            self._station.calls.close()
            self._session.close()
            stop_worker(worker=self.worker)
        except (DatabaseError, EvalboardError) as problem:
            logger.warning("Left without saying so: %s", problem)


def _work(job: Job, lease: Lease, heartbeat: Heartbeat) -> None:
    """Work on a row until it ends, or release it if the worker is to stop. Raises LeaseLost."""
    try:
        job.work(lease, heartbeat)
    except WorkInterrupted:
        if heartbeat.is_lost:
            raise LeaseLost(f"The lease of {lease} was lost while it was worked on.") from None
        job.let_go(lease, "The worker was stopped.")


def _wait_for_database(away: DatabaseError) -> None:
    logger.warning("The database is away: %s", away)
    connection.close()
