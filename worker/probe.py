"""Asks an endpoint what a probe has planned, round by round, and stores each round's answers as they are there."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from evalboard.core import probe_parameters, profile
from evalboard.core.probe_call import Call
from evalboard.core.provenance import Decoded, Outcome
from evalboard.core.trace import Trace
from runs import services
from runs.models import EngineProcess, Worker
from runs.selectors.probe import ProbeWork, probe_work
from runs.selectors.self_test import self_test_result
from worker.engines.base import DecodeRequest, EngineFailure
from worker.heartbeat import Heartbeat
from worker.session import EngineSession, Opened

LEFT_OUT = "engine_error: The engine left the call out."


class Prober:
    """Works on probes with the engine session of its worker."""

    def __init__(self, *, worker: Worker, hardware: Mapping[str, Any], session: EngineSession) -> None:
        self._worker = worker
        self._hardware = hardware
        self._session = session

    def serve(self, lease: services.ProbeLease, heartbeat: Heartbeat, is_stopping: Callable[[], bool]) -> str:
        """Ask what is left of a probe, or give it back; why this worker leaves it alone, or "".

        Raises LeaseLost, and EngineFailure where a fresh engine did not answer either.
        """
        work = probe_work(lease.probe_id, worker_id=self._worker.pk)
        refusal = profile.refusal(
            profile.parse(work.serving.profile_settings),
            self._hardware,
            host=self._worker.host,
            self_test_result=self_test_result(self._worker.pk),
        )
        if refusal is not None:
            services.refuse_probe(lease=lease, reason=refusal)
            return refusal
        services.beat(worker=self._worker, note=f"Probes endpoint {work.serving.endpoint.slug} ({work.kind}).")

        def must_end() -> bool:
            return is_stopping() or heartbeat.must_stop

        for calls in work.rounds:
            answered = self._answered(work, calls, must_end)
            if is_stopping() and not heartbeat.is_lost:  # so answers may be missing because the engine was called off
                services.release_probe(lease=lease, reason="The worker was stopped.", may_fail=False)
                return ""
            heartbeat.persist(partial(services.record_calls, lease=lease, calls=answered))
        heartbeat.persist(partial(services.finish_probe, lease=lease))
        services.beat(worker=self._worker, note="")
        return ""

    def _answered(self, work: ProbeWork, calls: Sequence[Call], must_end: Callable[[], bool]) -> list[Call]:
        """One round's answers; asked once more, afresh, where the engine fails: the warm one may have died before.

        Raises EngineFailure, or where the work must end answers that are not whole.
        """
        try:
            return self._decoded(work, calls)
        except EngineFailure:
            self._session.discard()
            if must_end():
                return []
        try:
            return self._decoded(work, calls)
        except EngineFailure:
            self._session.discard()
            if must_end():
                return []
            raise

    def _decoded(self, work: ProbeWork, calls: Sequence[Call]) -> list[Call]:
        """Raises EngineFailure."""
        opened = self._session.open_apart(work.serving)
        requests = [_request(place, call, work, opened) for place, call in enumerate(calls)]
        outcomes = {outcome.case_index: outcome for outcome in opened.engine.decode(requests)}
        return [
            replace(_with_answer(call, outcomes.get(place)), worker=self._worker.pk, **_served_by(opened.process))
            for place, call in enumerate(calls)
        ]


def _request(place: int, call: Call, work: ProbeWork, opened: Opened) -> DecodeRequest:
    sampling = {**opened.plan.sampling, **probe_parameters.sampling(work.kind, work.parameters, call.group)}
    if call.seed is not None:
        sampling["seed"] = call.seed
    return DecodeRequest(case_index=place, messages=work.prompts[call.prompt], sampling=sampling)


def _with_answer(call: Call, outcome: Outcome | None) -> Call:
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
    )


def _top(trace: Trace) -> tuple[tuple[int, float], ...]:
    """The alternatives of the first position whose logprob is a number; JSON has no others."""
    first = trace.alternatives(0) if len(trace) else []
    return tuple((each.token_id, each.logprob) for each in first if math.isfinite(each.logprob))


def _served_by(process: EngineProcess) -> dict[str, Any]:
    bucket = process.bucket
    return {"engine_process": process.pk, "bucket": bucket.pk, "fingerprint": bucket.fingerprint.digest}
