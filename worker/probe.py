"""Make the calls of a probe on an engine, round by round, and store each round's answers."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from evalboard.calling.calls import EngineFailure
from evalboard.core.probes import ProbeExchange
from runs.models import EngineProcess
from runs.probes import (
    PROBES,
    ProbeWork,
    claim_probe,
    course_of,
    finish_probe,
    probe_work,
    record_calls,
)
from runs.work import Lease, others_work
from worker.engines.probe_calls import make_request, with_answer
from worker.heartbeat import Heartbeat
from worker.jobs import RequestedJob, Station, describe_failure
from worker.remote_probe import RemoteProbes


class ProbeJob(RequestedJob):
    """Probes, round by round."""

    requests = PROBES

    def __init__(self, station: Station) -> None:
        super().__init__(station)
        self._remote = RemoteProbes(station)

    def claim(self) -> Lease | None:
        return claim_probe(worker=self._station.worker, left_alone=self._station.left_alone("probe"))

    def work(self, lease: Lease, heartbeat: Heartbeat) -> None:
        """Make the remaining calls of a probe, or leave it to other workers."""
        if (course := course_of(lease.id)) is not None:
            heartbeat.persist(partial(course.go_on, lease=lease))
            return
        work = probe_work(lease.id, worker_id=self._station.worker.pk)
        if work.serving.endpoint.is_remote:
            self._remote.work(lease, work, heartbeat)
            return
        refusal = self._station.find_refusal(work.serving)
        if refusal is not None:
            PROBES.refuse(lease=lease, reason=refusal)
            self._station.leave_alone("probe", lease.id, refusal)
            return
        self._station.note(f"Probes endpoint {work.serving.endpoint.slug} ({work.kind}).")
        try:
            for calls in work.rounds:
                answers = self._answered(work, calls, heartbeat)
                self._station.check(heartbeat)
                heartbeat.persist(partial(record_calls, lease=lease, calls=answers))
        except EngineFailure as failure:
            self.fail(lease, describe_failure(failure))
            if others_work(worker=self._station.worker):
                self._station.leave_alone("probe", lease.id, failure.detail)
            return
        heartbeat.persist(partial(finish_probe, lease=lease))
        self._station.note("")

    def _answered(self, work: ProbeWork, calls: Sequence[ProbeExchange], heartbeat: Heartbeat) -> list[ProbeExchange]:
        """Return one round's answers, retried once on a new engine if the warm one has failed.

        Raises EngineFailure, or Interrupted if the work must end.
        """
        try:
            return self._decoded(work, calls)
        except EngineFailure:
            self._session.discard()
            self._station.check(heartbeat)
        try:
            return self._decoded(work, calls)
        except EngineFailure:
            self._session.discard()
            self._station.check(heartbeat)
            raise

    def _decoded(self, work: ProbeWork, calls: Sequence[ProbeExchange]) -> list[ProbeExchange]:
        """Raises EngineFailure."""
        opened = self._session.open_apart(work.serving)
        requests = [
            make_request(place, call, work.prompts, kind=work.kind, parameters=work.parameters, plan=opened.plan)
            for place, call in enumerate(calls)
        ]
        outcomes = {outcome.case_index: outcome for outcome in opened.engine.decode(requests)}
        return [
            replace(
                with_answer(call, outcomes.get(place), work.kind),
                worker=self._station.worker.pk,
                **_served_by(opened.process),
            )
            for place, call in enumerate(calls)
        ]


def _served_by(process: EngineProcess) -> dict[str, Any]:
    bucket = process.bucket
    return {"engine_process": process.pk, "bucket": bucket.pk, "fingerprint": bucket.fingerprint.digest}
