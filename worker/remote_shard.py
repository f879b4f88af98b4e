"""Work on a shard of an external endpoint: call its cases and store results as they come."""

import time
from contextlib import closing
from functools import partial

from evalboard.calling.calls import Answered, DecodeRequest, EndpointRefused, EndpointRests, KeyUnreadable
from evalboard.core.profile import decide_logprobs, parse_profile
from evalboard.core.trace import Failed
from runs.catalogue import honours_logprobs, read_newest_check
from runs.served import LiveServing
from runs.work import (
    RESTS_BEFORE_GIVING_UP,
    Lease,
    ShardWork,
    end_rest,
    fail_refused,
    finish_shard,
    has_answer,
    record_outcomes,
    record_pace,
    rest_endpoint,
    wait_for_endpoint,
)
from worker.heartbeat import Heartbeat
from worker.jobs import Station, make_request
from worker.shard_steps import Recorder, end_if_cancelled


class RemoteShards:
    """Works on shards that need no engine: the one that is warm stays so."""

    def __init__(self, station: Station) -> None:
        self._station = station
        self._serving: LiveServing | None = None

    def work(self, lease: Lease, work: ShardWork, heartbeat: Heartbeat) -> None:
        """Call the remaining cases of a shard and end it, or end its run if refused. Raises LeaseLost."""
        if wait_for_endpoint(lease=lease):
            return
        requests = _requests(work)
        began = time.monotonic()
        try:
            is_answered = self._call(work, requests, heartbeat)
        except EndpointRefused as refusal:
            if not end_if_cancelled(self._station, lease, heartbeat):
                fail = partial(fail_refused, lease=lease, reason=refusal.detail)
                if isinstance(refusal, KeyUnreadable):  # the run says what to do
                    fail = partial(fail_refused, lease=lease, reason=refusal.cause, code="key_unreadable")
                heartbeat.persist(fail)
            return
        except EndpointRests as rest:
            if not end_if_cancelled(self._station, lease, heartbeat):
                self._rest(lease, work, requests, rest, heartbeat)
            return
        if not end_if_cancelled(self._station, lease, heartbeat):
            heartbeat.persist(partial(finish_shard, lease=lease))
            if is_answered:
                end_rest(endpoint_id=work.serving.endpoint.pk)
            record_pace(worker=self._station.worker, n_responses=len(requests), seconds=time.monotonic() - began)

    def _rest(
        self, lease: Lease, work: ShardWork, requests: list[DecodeRequest], rest: EndpointRests, heartbeat: Heartbeat
    ) -> None:
        """Return the shard until its endpoint's pause ends; or end it if pauses gave no answer for hours."""
        step = partial(rest_endpoint, reason=rest.detail, seconds=rest.seconds, n_failures=rest.n_failures)
        if heartbeat.persist(partial(step, lease=lease)):
            return
        words = f"The endpoint rested {RESTS_BEFORE_GIVING_UP} times and answered no call between. {rest.detail}"
        missing = [Failed(request.case_index, rest.code, words) for request in requests]
        # Those that were answered keep what they have.
        heartbeat.persist(partial(record_outcomes, lease=lease, process=None, outcomes=missing))
        heartbeat.persist(partial(finish_shard, lease=lease))

    def _call(self, work: ShardWork, requests: list[DecodeRequest], heartbeat: Heartbeat) -> bool:
        """Store what each call came to; whether any was answered. Raises EndpointRefused or EndpointRests."""
        calls, endpoint = self._station.calls, work.serving.endpoint
        is_alone = parse_profile(work.serving.profile_settings).batch_class == "alone"
        serving = self._serving_of(work.run_id)
        recorder = Recorder(heartbeat=heartbeat, serving=serving)
        checked = read_newest_check(endpoint.pk).items()
        refused = [name for name, check in checked if check.state == "refused"]
        client = calls.open_for(endpoint, is_alone=is_alone, refused=refused)
        is_answered = False
        try:
            with closing(client.decode(requests, is_answered=has_answer(run_id=work.run_id))) as outcomes:
                for outcome in outcomes:
                    recorder.add(outcome)
                    is_answered = is_answered or isinstance(outcome, Answered)
                    if self._station.must_end(heartbeat):
                        break  # where the abort came before the calls had begun
        except (EndpointRefused, EndpointRests) as problem:
            if problem.code == "call_refused":
                calls.discard(client)  # the next one reads the key again
            raise
        finally:
            recorder.flush()
            serving.close()
        return is_answered

    def _serving_of(self, run_id: int) -> LiveServing:
        if self._serving is None or self._serving.run_id != run_id:
            self._serving = LiveServing(worker=self._station.worker, run_id=run_id)
        return self._serving


def _requests(work: ShardWork) -> list[DecodeRequest]:
    serving = work.serving
    sampling = parse_profile(serving.profile_settings).sampling
    # By the check before the run, so that all its repeats ask for the same.
    are_honoured = honours_logprobs(serving.endpoint.pk, before=work.run_created_at)
    sampling = decide_logprobs(sampling, are_honoured=are_honoured)
    complete = {**sampling, "max_tokens": serving.max_tokens, "stop": list(serving.stop)}
    requests = [make_request(case, complete) for case in work.cases if not case.is_done]
    # After each rest another case goes first: one that makes the server fail must not stand before the others.
    at = work.n_rests % max(len(requests), 1)
    return requests[at:] + requests[:at]
