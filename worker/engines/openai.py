"""Calls a server that others run, which speaks OpenAI's protocol: several calls in flight, each answer as it comes.

Nothing of the server is started or attested here. What it says of itself comes with each answer; what may be believed
of that is for others to judge.
"""

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from queue import Empty, SimpleQueue

from evalboard.core.errors import InvalidInput
from evalboard.core.trace import Failed
from runs.importers.json_files import parse_value
from runs.models import Endpoint
from runs.work.answered import Answered, CallOutcome
from worker.engines.base import DecodeRequest, EndpointRefused, EndpointRests
from worker.engines.named_secrets import Mask, read_headers
from worker.engines.openai_answer import ParameterRefused, Timing, failed, read_answer, read_body
from worker.engines.openai_request import Built, Dialect, NotCallable, build, learn
from worker.engines.openai_retries import (
    MAX_TRIES,
    TRIES_WITHIN_SECONDS,
    Circuit,
    backoff_seconds,
    rest_seconds,
)
from worker.engines.openai_wire import CallFailed, TryFailed, Wire

logger = logging.getLogger(__name__)

AHEAD = 4  # requests that wait beside those in flight, so that no thread waits for whoever stores the answers
LOOK_SECONDS = 10.0
VLLM_FINGERPRINT = "vllm-"


class _CalledOff(Exception):
    """Nobody waits for this call any more."""


class _IsVllm(Exception):
    """The server has turned out to be a vLLM, which is to be sent more: this answer is not what was meant."""


class OpenAIEngine:
    """Calls one server of others. Every method but `abort` belongs to one thread.

    `n_failures`: failed tries in a row, from the endpoint's own number on; whoever stores answers stores it.
    learns: a parameter that the server refuses by name is left out of the calls that follow; else such a call fails.
    randomness, sleep: for tests; `sleep` takes seconds in place of a wait that `abort` ends.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        response_seconds: float,
        concurrency: int,
        learns: bool = True,
        randomness: random.Random | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._response_seconds = response_seconds
        self._concurrency = max(concurrency, 1)
        self._learns = learns
        self._randomness = randomness or random.Random()  # noqa: S311  of waits, not of secrets
        self._sleep = sleep
        self._circuit = Circuit(endpoint.n_failures)
        self._dialect_lock = threading.Lock()
        self._dialect = Dialect()
        self._is_vllm = False
        self._not_before = 0.0  # by the monotonic clock: the server wants to be left alone until then
        self._wire: Wire | None = None
        self._mask = Mask()
        self._decoding: _Decoding | None = None

    @property
    def n_failures(self) -> int:
        """Failed tries in a row up to now."""
        return self._circuit.n_failures

    def open(self) -> None:
        """Read the secrets, check the address and see whether the server is a vLLM. Raises EndpointRefused."""
        headers, self._mask = read_headers(self._endpoint.auth, self._endpoint.headers)
        wire = Wire(self._endpoint.base_url, headers, n_connections=self._concurrency)
        try:
            wire.check()
            self._is_vllm = _is_vllm(wire)
        except BaseException:
            wire.close()
            raise
        self._wire = wire

    def decode(self, requests: Iterable[DecodeRequest]) -> Generator[CallOutcome, None, None]:
        """Yield each outcome as its call ends; after `abort` it ends early.

        Raises EndpointRefused or EndpointRests; what was yielded before stands, and what was not is still to be asked.
        """
        if self._wire is None:
            raise EndpointRefused("The endpoint was not opened.")
        self._wire.mend()
        decoding = self._decoding = _Decoding()
        threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="endpoint-call")
        waiting, n_pending, is_exhausted = iter(requests), 0, False
        try:
            while not decoding.is_over:
                # Where the endpoint has rested, one call alone goes first.
                window = 1 if self._circuit.is_open else self._concurrency + AHEAD
                while n_pending < window and not is_exhausted:
                    request = next(waiting, None)
                    is_exhausted = request is None
                    if request is not None:
                        threads.submit(self._work, decoding, request)
                        n_pending += 1
                if n_pending == 0:
                    return
                outcome = decoding.results.get()
                if outcome is None:  # aborted
                    return
                n_pending -= 1
                if isinstance(outcome, BaseException):
                    yield from decoding.rest()
                    raise outcome
                yield outcome
        finally:
            decoding.end()
            if n_pending:
                self._wire.cut()
            threads.shutdown(wait=True, cancel_futures=True)
            self._decoding = None

    def abort(self) -> None:
        """Make a decode that is under way end early. Callable from any thread, and from a signal handler."""
        decoding, wire = self._decoding, self._wire
        if decoding is not None and wire is not None:
            decoding.end()
            wire.cut()

    def stop(self) -> None:
        """Close every connection; harmless when it was never opened."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()

    def _work(self, decoding: "_Decoding", request: DecodeRequest) -> None:
        """One case, in a thread of its own."""
        if decoding.has_failed:
            return
        try:
            decoding.check()
            outcome: CallOutcome | BaseException = self._call(decoding, request)
        except _CalledOff:
            return
        except BaseException as problem:  # noqa: BLE001  whoever reads the results raises it
            outcome, decoding.has_failed = problem, True
        decoding.results.put(outcome)

    def _call(self, decoding: "_Decoding", request: DecodeRequest) -> CallOutcome:
        """Put a case to the server, again where that may help. Raises EndpointRefused, EndpointRests, _CalledOff."""
        began, n_tries = time.monotonic(), 0
        while True:
            self._wait_out(decoding, self._not_before - time.monotonic())
            begun, dialect = self._circuit.begin(), self._dialect
            n_tries += 1
            try:
                built = self._build(request, dialect)
                return self._try(request, built, n_tries)
            except NotCallable as problem:
                return failed(request.case_index, "call_refused", str(problem), self._mask)
            except ParameterRefused as refusal:
                self._circuit.succeed()
                if not self._learn(dialect, built, refusal.words):
                    return failed(request.case_index, "call_refused", str(refusal), self._mask)
                n_tries -= 1  # nothing was decoded, and what is sent next is another call
            except _IsVllm:
                n_tries -= 1
            except CallFailed as failure:
                decoding.check()
                self._count(failure, begun)
                return failed(request.case_index, failure.code, str(failure), self._mask)
            except TryFailed as failure:
                decoding.check()
                if not failure.is_limited:
                    self._circuit.fail(begun)
                    self._rest_if_due(failure)
                wait = max(backoff_seconds(n_tries, self._randomness), failure.seconds or 0.0)
                if failure.seconds is not None:
                    self._not_before = max(self._not_before, time.monotonic() + failure.seconds)
                if n_tries >= MAX_TRIES or time.monotonic() + wait - began > TRIES_WITHIN_SECONDS:
                    return self._give_up(request, failure, n_tries, begun)
                self._wait_out(decoding, wait)

    def _build(self, request: DecodeRequest, dialect: Dialect) -> Built:
        endpoint = self._endpoint
        return build(
            request,
            api=endpoint.api,
            model=endpoint.model_repo,
            extra_body=endpoint.extra_body,
            dialect=dialect,
            is_vllm=self._is_vllm,
        )

    def _try(self, request: DecodeRequest, built: Built, n_tries: int) -> Answered | Failed:
        """Send one call and read what comes. Raises what `Wire.post` and `read_body` do."""
        assert self._wire is not None  # noqa: S101  for the type checker: decode has seen to it
        content = json.dumps(built.body, separators=(",", ":"), allow_nan=False).encode()
        started_at = datetime.now(UTC)
        reply = self._wire.post(built.path, content, seconds=self._response_seconds)
        timing = Timing(started_at=started_at, ended_at=datetime.now(UTC), n_tries=n_tries)
        body = read_body(reply, self._mask)
        self._circuit.succeed()
        if str(body.get("system_fingerprint")).startswith(VLLM_FINGERPRINT):
            self._is_vllm = True  # behind a gateway, whose list of models does not say so
        if self._is_vllm and not built.is_vllm:
            raise _IsVllm
        return read_answer(
            request.case_index, reply, body, built, timing, base_url=self._endpoint.base_url, mask=self._mask
        )

    def _learn(self, dialect: Dialect, built: Built, words: str) -> bool:
        """Take up what a refusal says of the parameters; False where it says nothing of them."""
        with self._dialect_lock:
            learnt = learn(self._dialect, built, words)
            if learnt is not None and not self._learns:
                is_renamed = learnt.is_completion_limit and not self._dialect.is_completion_limit
                learnt = replace(learnt, refused=frozenset()) if is_renamed else None
            if learnt is not None:
                self._dialect = learnt
                logger.info("The endpoint %s does not take all parameters: %s", self._endpoint, learnt)
            # Another call may have learnt the same a moment ago.
            return learnt is not None or self._dialect != dialect

    def _count(self, failure: CallFailed, begun: int) -> None:
        """Count a call that ended badly, where the endpoint did not even answer in time."""
        if failure.code == "timeout":
            self._circuit.fail(begun)
            self._rest_if_due(failure)
        else:
            self._circuit.succeed()

    def _give_up(self, request: DecodeRequest, failure: TryFailed, n_tries: int, begun: int) -> Failed:
        """A call of which no try came through. Of limits, only the call as a whole counts as a failure."""
        if failure.is_limited:
            self._circuit.fail(begun)
            self._rest_if_due(failure)
        times = "Tried once" if n_tries == 1 else f"Tried {n_tries} times"
        return failed(request.case_index, failure.code, f"{times}. {failure}", self._mask)

    def _rest_if_due(self, failure: Exception) -> None:
        """Raise EndpointRests where too many tries in a row have failed."""
        n = self._circuit.n_failures
        if self._circuit.is_open:
            words = self._mask.text(f"{n} calls in a row failed; the last one: {failure}")
            raise EndpointRests(words, seconds=rest_seconds(n))

    def _wait_out(self, decoding: "_Decoding", seconds: float) -> None:
        """Wait, unless nobody waits for the call any more. Raises _CalledOff."""
        if seconds > 0 and self._sleep is not None:
            self._sleep(seconds)
        elif seconds > 0:
            decoding.over.wait(seconds)
        decoding.check()


class _Decoding:
    """One `decode` under way: its results, None where it was aborted, and whether it is over.

    has_failed: a call has ended all of them, and no other one is begun.
    """

    def __init__(self) -> None:
        self.results: SimpleQueue[CallOutcome | BaseException | None] = SimpleQueue()
        self.over = threading.Event()
        # A plain flag beside the Event: a signal handler may set it while this very thread holds the Event's lock.
        self.is_over = False
        self.has_failed = False

    def end(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        self.over.set()
        self.results.put(None)

    def check(self) -> None:
        """Raise _CalledOff where nobody waits any more."""
        if self.is_over:
            raise _CalledOff

    def rest(self) -> Iterator[CallOutcome]:
        """Yield the answers that have come beside a failure."""
        while True:
            try:
                outcome = self.results.get_nowait()
            except Empty:
                return
            if isinstance(outcome, Answered | Failed):
                yield outcome


def _is_vllm(wire: Wire) -> bool:
    """Whether the server's list of models says that vLLM serves them; behind a gateway it does not."""
    try:
        reply = wire.get("/models", seconds=LOOK_SECONDS)
        body = parse_value(reply.content, where="") if reply.status == 200 else None
    except (TryFailed, CallFailed, InvalidInput):
        return False
    listed = body.get("data") if isinstance(body, dict) else None
    models = [model for model in listed if isinstance(model, dict)] if isinstance(listed, list) else []
    return any(model.get("owned_by") == "vllm" for model in models)
