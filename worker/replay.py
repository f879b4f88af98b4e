"""Decode a case of a run again in several variants and compare the answers; or decode one request."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from evalboard.calling.calls import DecodeRequest, EngineFailure
from evalboard.core.compare import (
    ReplayResult,
    list_neighbours,
    list_result_traces,
    make_decoded_result,
    make_failed_result,
)
from evalboard.core.profile import ProfileSettings, parse_profile, set_batch_size
from evalboard.core.trace import Decoded, Outcome, TokenTrace
from runs.models import EngineProcess
from runs.replays import (
    REPLAYS,
    CaseWork,
    ReplayWork,
    cases_to_decode,
    claim_replay,
    count_prompt_tokens,
    finish_replay,
    load_vocabulary,
    record_result,
    replay_work,
)
from runs.work import Lease
from worker.heartbeat import Heartbeat
from worker.jobs import RequestedJob, make_request
from worker.session import Opened

Earlier = list[tuple[Mapping[str, Any], TokenTrace]]


@dataclass(frozen=True, slots=True)
class Batch:
    """What is decoded together. place: the request that counts; neighbours: the others' case indexes."""

    requests: Sequence[DecodeRequest]
    place: int
    neighbours: list[int]

    @property
    def wanted(self) -> DecodeRequest:
        return next(request for request in self.requests if request.case_index == self.place)


class ReplayJob(RequestedJob):
    """Replays; each variant of one may start another engine."""

    requests = REPLAYS

    def claim(self) -> Lease | None:
        return claim_replay(
            worker=self._station.worker,
            left_alone=self._station.left_alone("run"),
            left_replays=self._station.left_alone("replay"),
        )

    def work(self, lease: Lease, heartbeat: Heartbeat) -> None:
        """Decode the remaining variants of a replay, or leave it to other workers."""
        work = replay_work(lease.id)
        refusal = self._station.find_refusal(work.serving)
        if refusal is not None:
            REPLAYS.refuse(lease=lease, reason=refusal)
            if work.is_production or work.run_id is None:
                self._station.leave_alone("replay", lease.id, refusal)
            else:
                self._station.leave_alone("run", work.run_id, refusal)
            return
        self._station.note(f"Replays {work.title}.")
        earlier: Earlier = list_result_traces(work.results, work.response_trace)
        for variant in work.variants[len(work.results) :]:
            result, trace = self._tried(work, variant, earlier, heartbeat)
            self._station.check(heartbeat)
            heartbeat.persist(partial(record_result, lease=lease, result=result))
            earlier += [] if trace is None else [(variant, trace)]
        heartbeat.persist(partial(finish_replay, lease=lease))
        self._station.note("")

    def _tried(
        self, work: ReplayWork, variant: Mapping[str, Any], earlier: Earlier, heartbeat: Heartbeat
    ) -> tuple[ReplayResult, TokenTrace | None]:
        """Return a variant's result, and its trace to compare later ones with. A failure is a result.

        It is tried again on a new engine if that can help: the warm engine may have died since its last answer.
        """
        began = time.monotonic()
        decoding = parse_profile(work.serving.profile_settings)
        if "batch_size" in variant:
            decoding = set_batch_size(decoding, variant["batch_size"])
        try:
            tried = self._decoded(work, decoding, variant, earlier)
        except EngineFailure as failure:
            self._session.discard()
            if failure.code == "out_of_memory" or self._station.must_end(heartbeat):
                tried = _failed(work, variant, failure)
            else:
                tried = self._tried_again(work, decoding, variant, earlier)
        result, trace = tried
        return {**result, "seconds": round(time.monotonic() - began, 3)}, trace

    def _tried_again(
        self, work: ReplayWork, decoding: ProfileSettings, variant: Mapping[str, Any], earlier: Earlier
    ) -> tuple[ReplayResult, TokenTrace | None]:
        try:
            return self._decoded(work, decoding, variant, earlier)
        except EngineFailure as failure:
            self._session.discard()
            return _failed(work, variant, failure)

    def _decoded(
        self, work: ReplayWork, decoding: ProfileSettings, variant: Mapping[str, Any], earlier: Earlier
    ) -> tuple[ReplayResult, TokenTrace | None]:
        """Raises EngineFailure."""
        opened = self._session.open_apart(work.serving, decoding=decoding, dtype=variant.get("dtype"))
        batch = _batch(work, variant, opened)
        outcome = _decode(batch, opened)
        result, trace = _result(work, variant, outcome, earlier, opened.process)
        beside = _beside(work, opened.process, outcome, batch.neighbours)
        return {**result, **beside, "sampling": dict(batch.wanted.sampling)}, trace


def _batch(work: ReplayWork, variant: Mapping[str, Any], opened: Opened) -> Batch:
    """Return the case and what shares its steps: as in the run, or as many other cases as wanted.

    The neighbours of a production request are unknown, so it is decoded without any.
    """
    if work.case is None:
        assert work.chat is not None  # noqa: S101  for the type checker: it has a case or a request
        # The whole answer is shown, whatever the model thought in it.
        sampling = {name: value for name, value in opened.plan.sampling.items() if name != "reasoning_tags"}
        chat = DecodeRequest(case_index=0, messages=work.chat.messages, tools=work.chat.tools, sampling=sampling)
        return Batch([chat], 0, [])
    if "batch_size" not in variant:
        return _as_in_the_run(work.case, opened)
    neighbours = list_neighbours(
        work.case.index,
        n_cases=work.case.n_cases,
        batch_size=variant["batch_size"],
        shift=variant.get("neighbours", 0),
    )
    case, *others = cases_to_decode(work.replay_id, [work.case.index, *neighbours])
    # An answer that ended would make the batch smaller: neighbours go on until the one that counts has ended.
    endless = {**opened.plan.sampling, "ignore_eos": True, "min_tokens": 0, "stop": []}
    requests = [make_request(case, opened.plan.sampling, place=0)]
    requests += [make_request(other, endless, place=place) for place, other in enumerate(others, start=1)]
    return Batch(requests, 0, neighbours)


def _as_in_the_run(work: CaseWork, opened: Opened) -> Batch:
    """Return the case with its neighbours in the run: none, its fixed group, or its shard."""
    size = opened.plan.group_size
    together = [
        case
        for case in work.shard.cases
        if case.index == work.index
        or (opened.plan.batch_class != "alone" and (size is None or case.index // size == work.index // size))
    ]
    requests = [make_request(case, opened.plan.sampling) for case in together]
    return Batch(requests, work.index, [case.index for case in together if case.index != work.index])


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
) -> tuple[ReplayResult, TokenTrace | None]:
    if outcome is None:
        return make_failed_result(variant, code="engine_error", detail="The engine left the case out."), None
    if not isinstance(outcome, Decoded):
        return make_failed_result(variant, code=outcome.code, detail=outcome.detail), None
    words = load_vocabulary(process)

    def draw(ids: Sequence[int]) -> list[str]:
        return [f"⟨token {token}⟩" for token in ids] if words is None else words.draw(ids)

    result = make_decoded_result(variant, outcome, response=work.response_trace, earlier=earlier, draw=draw)
    return result, outcome.trace


def _failed(work: ReplayWork, variant: Mapping[str, Any], failure: EngineFailure) -> tuple[ReplayResult, None]:
    """Return the result of a variant whose engine failed, with the last line of the engine's output."""
    words = "\n".join([failure.detail, *failure.last_words.splitlines()[-1:]])
    return make_failed_result(variant, code=failure.code, detail=words) | _beside(work, None, None, []), None


def _beside(
    work: ReplayWork, process: EngineProcess | None, outcome: Outcome | None, neighbours: list[int]
) -> ReplayResult:
    return {
        **_served_by(process, work),
        "same_prompt": _same_prompt(outcome, work),
        "neighbours": neighbours,
        "n_neighbour_prompt_tokens": None if work.run_id is None else count_prompt_tokens(work.run_id, neighbours),
    }


def _served_by(process: EngineProcess | None, work: ReplayWork) -> ReplayResult:
    """Return who decoded it, compared with who gave the run's response; None if unknown."""
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
