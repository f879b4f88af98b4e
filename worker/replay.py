"""Decodes one case of a run again, variant by variant, and holds each answer against the run's."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evalboard.core import profile, replay_result
from evalboard.core import replay as replays
from evalboard.core.profile import ProfileSettings
from evalboard.core.provenance import Decoded, Outcome
from evalboard.core.replay_result import Result
from evalboard.core.trace import Trace
from runs import services
from runs.models import EngineProcess, Worker
from runs.selectors.replay import ReplayWork, cases_to_decode, n_prompt_tokens, replay_work, vocabulary_of
from runs.selectors.self_test import self_test_result
from runs.selectors.work import CaseToDecode
from worker.engines.base import DecodeRequest, EngineFailure
from worker.heartbeat import Heartbeat
from worker.session import EngineSession, Opened

Earlier = list[tuple[Mapping[str, Any], Trace]]


@dataclass(frozen=True, slots=True)
class Batch:
    """What is decoded together; `place` is the request that counts, `neighbours` are the others' case indexes."""

    requests: Sequence[DecodeRequest]
    place: int
    neighbours: list[int]


class Replayer:
    """Works on replays with the engine session of its worker, of which each variant may start another engine."""

    def __init__(self, *, worker: Worker, hardware: Mapping[str, Any], session: EngineSession) -> None:
        self._worker = worker
        self._hardware = hardware
        self._session = session

    def serve(self, lease: services.ReplayLease, heartbeat: Heartbeat, is_stopping: Callable[[], bool]) -> str:
        """Decode what is left of a replay, or give it back; why this worker leaves its run alone, or "".

        Raises LeaseLost.
        """
        work = replay_work(lease.replay_id)
        decoding = profile.parse(work.shard.serving.profile_settings)
        refusal = profile.refusal(
            decoding,
            self._hardware,
            host=self._worker.host,
            self_test_result=self_test_result(self._worker.pk),
        )
        if refusal is not None:
            services.refuse_replay(lease=lease, reason=refusal)
            return refusal
        services.beat(worker=self._worker, note=f"Replays case {work.case_id} of run {lease.run_id}.")

        def must_end() -> bool:
            return is_stopping() or heartbeat.must_stop

        earlier: Earlier = replay_result.traces(work.results, work.response_trace)
        for variant in work.variants[len(work.results) :]:
            result, trace = self._tried(work, decoding, variant, earlier, must_end)
            if is_stopping() and not heartbeat.is_lost:  # so the result may be that of an engine called off
                services.release_replay(lease=lease, reason="The worker was stopped.", may_fail=False)
                return ""
            heartbeat.persist(partial(services.record_result, lease=lease, result=result))
            earlier += [] if trace is None else [(variant, trace)]
        heartbeat.persist(partial(services.finish_replay, lease=lease))
        services.beat(worker=self._worker, note="")
        return ""

    def _tried(
        self,
        work: ReplayWork,
        decoding: ProfileSettings,
        variant: Mapping[str, Any],
        earlier: Earlier,
        must_end: Callable[[], bool],
    ) -> tuple[Result, Trace | None]:
        """One variant's result, and the trace for the comparisons of later ones. An engine that fails is a result.

        It is tried once more, afresh, where that can help: the warm engine may have died since its last answer.
        """
        began = time.monotonic()
        if "batch_size" in variant:
            decoding = profile.at_batch_size(decoding, variant["batch_size"])
        try:
            tried = self._decoded(work, decoding, variant, earlier)
        except EngineFailure as failure:
            self._session.discard()
            if failure.code == "out_of_memory" or must_end():
                tried = _failed(work, variant, failure)
            else:
                tried = self._tried_again(work, decoding, variant, earlier)
        result, trace = tried
        return {**result, "seconds": round(time.monotonic() - began, 3)}, trace

    def _tried_again(
        self, work: ReplayWork, decoding: ProfileSettings, variant: Mapping[str, Any], earlier: Earlier
    ) -> tuple[Result, Trace | None]:
        try:
            return self._decoded(work, decoding, variant, earlier)
        except EngineFailure as failure:
            self._session.discard()
            return _failed(work, variant, failure)

    def _decoded(
        self, work: ReplayWork, decoding: ProfileSettings, variant: Mapping[str, Any], earlier: Earlier
    ) -> tuple[Result, Trace | None]:
        """Raises EngineFailure."""
        opened = self._session.open_apart(work.shard.serving, decoding=decoding, dtype=variant.get("dtype"))
        batch = _batch(work, variant, opened)
        outcome = _decode(batch, opened)
        result, trace = _result(work, variant, outcome, earlier, opened.process)
        return {**result, **_beside(work, opened.process, outcome, batch.neighbours)}, trace


def _batch(work: ReplayWork, variant: Mapping[str, Any], opened: Opened) -> Batch:
    """The case with those that share its steps: as in the run, or as many of the suite's other cases as are wanted."""
    if "batch_size" not in variant:
        return _as_in_the_run(work, opened)
    neighbours = replays.neighbours(
        work.case_index,
        n_cases=work.n_cases,
        batch_size=variant["batch_size"],
        shift=variant.get("neighbours", 0),
    )
    case, *others = cases_to_decode(work.repeat_id, [work.case_index, *neighbours])
    # An answer that ended would make the batch smaller: neighbours go on until the one that counts has ended.
    endless = {**opened.plan.sampling, "ignore_eos": True, "min_tokens": 0, "stop": []}
    requests = [_request(0, case, opened.plan.sampling)]
    requests += [_request(place, other, endless) for place, other in enumerate(others, start=1)]
    return Batch(requests, 0, neighbours)


def _as_in_the_run(work: ReplayWork, opened: Opened) -> Batch:
    """Under `alone` nobody, under `fixed` the case's group, under the other classes its shard, in the run's order."""
    size = opened.plan.group_size
    together = [
        case
        for case in work.shard.cases
        if case.index == work.case_index
        or (opened.plan.batch_class != "alone" and (size is None or case.index // size == work.case_index // size))
    ]
    requests = [_request(case.index, case, opened.plan.sampling) for case in together]
    return Batch(requests, work.case_index, [case.index for case in together if case.index != work.case_index])


def _request(place: int, case: CaseToDecode, sampling: Mapping[str, Any]) -> DecodeRequest:
    own = {**sampling, "seed": case.seed}
    return DecodeRequest(case_index=place, messages=case.messages, tools=case.tools, sampling=own)


def _decode(batch: Batch, opened: Opened) -> Outcome | None:
    """The wanted answer, None where the engine gave none; the neighbours' are called off once it is there."""
    for outcome in opened.engine.decode(batch.requests):
        if outcome.case_index == batch.place:
            return outcome
    return None


def _result(
    work: ReplayWork,
    variant: Mapping[str, Any],
    outcome: Outcome | None,
    earlier: Earlier,
    process: EngineProcess,
) -> tuple[Result, Trace | None]:
    if outcome is None:
        return replay_result.failed(variant, code="engine_error", detail="The engine left the case out."), None
    if not isinstance(outcome, Decoded):
        return replay_result.failed(variant, code=outcome.code, detail=outcome.detail), None
    words = vocabulary_of(process)

    def draw(ids: Sequence[int]) -> list[str]:
        return [f"⟨token {token}⟩" for token in ids] if words is None else words.draw(ids)

    result = replay_result.decoded(variant, outcome, response=work.response_trace, earlier=earlier, draw=draw)
    return result, outcome.trace


def _failed(work: ReplayWork, variant: Mapping[str, Any], failure: EngineFailure) -> tuple[Result, None]:
    """The result of a variant whose engine failed, with the last line of what the engine itself said."""
    words = "\n".join([failure.detail, *failure.last_words.splitlines()[-1:]])
    return replay_result.failed(variant, code=failure.code, detail=words) | _beside(work, None, None, []), None


def _beside(work: ReplayWork, process: EngineProcess | None, outcome: Outcome | None, neighbours: list[int]) -> Result:
    return {
        **_served_by(process, work),
        "same_prompt": _same_prompt(outcome, work),
        "neighbours": neighbours,
        "n_neighbour_prompt_tokens": n_prompt_tokens(work.shard.run_id, neighbours),
    }


def _served_by(process: EngineProcess | None, work: ReplayWork) -> Result:
    """Who decoded it, beside who gave the run's response; None where that is not known."""
    bucket, response = process and process.bucket, work.response
    return {
        "engine_process": process and str(process.pk),
        "bucket": bucket and str(bucket.pk),
        "fingerprint": bucket and bucket.fingerprint.digest,
        "same_bucket": _same(bucket and bucket.pk, response and response.bucket_id),
        "same_fingerprint": _same(bucket and bucket.fingerprint_id, response and response.fingerprint_id),
        "same_model": _same(bucket and bucket.model_id, response and response.model_id),
    }


def _same_prompt(outcome: Outcome | None, work: ReplayWork) -> bool | None:
    ours = outcome.prompt_digest if isinstance(outcome, Decoded) else None
    return _same(ours, work.response and work.response.prompt_digest)


def _same(ours: Any, theirs: Any) -> bool | None:
    return None if ours is None or theirs is None else bool(ours == theirs)
