"""Make the calls of a probe on an engine, round by round, and store each round's answers."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np

from evalboard.calling.calls import DecodeRequest, EngineFailure
from evalboard.contract.probe_kinds import EXACT, ProbeKind
from evalboard.core.probes import ProbeExchange, choose_sampling
from evalboard.core.trace import Decoded, Outcome, TokenTrace
from runs.models import EngineProcess
from runs.probes import (
    PROBES,
    ProbeWork,
    claim_probe,
    finish_probe,
    go_on_verifying,
    makes_no_calls,
    probe_work,
    record_calls,
)
from runs.work import Lease, others_work
from worker.heartbeat import Heartbeat
from worker.jobs import RequestedJob, Station, describe_failure
from worker.remote_probe import RemoteProbes
from worker.session import Opened

LEFT_OUT = "engine_error: The engine left the call out."


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
        if makes_no_calls(lease.id):
            heartbeat.persist(partial(go_on_verifying, lease=lease))
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
        requests = [_request(place, call, work, opened) for place, call in enumerate(calls)]
        outcomes = {outcome.case_index: outcome for outcome in opened.engine.decode(requests)}
        return [
            replace(
                _with_answer(call, outcomes.get(place), work.kind),
                worker=self._station.worker.pk,
                **_served_by(opened.process),
            )
            for place, call in enumerate(calls)
        ]


def _request(place: int, call: ProbeExchange, work: ProbeWork, opened: Opened) -> DecodeRequest:
    # A probe reads whole responses: what a model thinks is part of what it was asked for.
    sampling = {**opened.plan.sampling, **choose_sampling(work.kind, work.parameters, call.group)}
    sampling.pop("reasoning_tags", None)
    if call.seed is not None:
        sampling["seed"] = call.seed
    return DecodeRequest(case_index=place, messages=work.prompts[call.prompt], sampling=sampling)


def _with_answer(call: ProbeExchange, outcome: Outcome | None, kind: str) -> ProbeExchange:
    if outcome is None:
        return replace(call, error=LEFT_OUT)
    if not isinstance(outcome, Decoded):
        return replace(call, error=f"{outcome.code}: {outcome.detail}")
    return replace(
        call,
        token_ids=tuple(outcome.trace.token_ids.tolist()),
        text=outcome.text,
        finish_reason=outcome.finish_reason,
        top=_top(outcome.trace),
        batch_max=outcome.batch_max,
        trace_digest=outcome.trace.digest.hex() if kind in EXACT else "",
        **(_evidence(outcome.trace) if kind == ProbeKind.AUDIT else {}),
    )


def _evidence(trace: TokenTrace) -> dict[str, Any]:
    """Return the evidence that an incident may need.

    JSON has only finite numbers: the smallest float replaces others.
    """
    least = float(np.finfo(np.float32).min)
    logprobs = np.nan_to_num(trace.logprobs, nan=least, neginf=least, posinf=0.0)
    return {"logprobs": tuple(logprobs.tolist()), "at": datetime.now(UTC).isoformat(timespec="milliseconds")}


def _top(trace: TokenTrace) -> tuple[tuple[int, float], ...]:
    """The alternatives of the first position whose logprob is a number; JSON has no others."""
    first = trace.alternatives(0) if len(trace) else []
    return tuple((each.token_id, each.logprob) for each in first if math.isfinite(each.logprob))


def _served_by(process: EngineProcess) -> dict[str, Any]:
    bucket = process.bucket
    return {"engine_process": process.pk, "bucket": bucket.pk, "fingerprint": bucket.fingerprint.digest}
