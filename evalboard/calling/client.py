"""Call an external server by OpenAI's protocol: several calls in flight, each answer as it comes.

Nothing of the server is started or attested here. Its self-reported facts come with each answer; other modules decide
what they prove.
"""

import json
import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from evalboard.calling.answer import (
    CallRefused,
    ParameterRefused,
    Timing,
    failed,
    lists_vllm,
    read_answer,
    read_body,
)
from evalboard.calling.calls import (
    Answered,
    CallOutcome,
    Clock,
    DecodeRequest,
    EndpointRefused,
    EndpointRests,
    FailedCall,
    SharedLimits,
)
from evalboard.calling.decoding import CalledOff, CaseCall, Decoding, Doubtful
from evalboard.calling.mask import Mask
from evalboard.calling.request import NEVER_LEFT_OUT, Built, Dialect, NotCallable, build, learn
from evalboard.calling.retries import (
    LONGEST_REST_SECONDS,
    LONGEST_WAIT_SECONDS,
    MAX_TRIES,
    TRIES_WITHIN_SECONDS,
    Circuit,
    backoff_seconds,
    rest_seconds,
)
from evalboard.calling.wire import CallFailed, TryFailed, Wire
from evalboard.core.trace import Failed
from evalboard.importers.backends import flags

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

AHEAD = 4  # waiting requests besides those in flight, so that threads need not wait for storing
LOOK_FOR_SLOT_SECONDS = 0.1
VLLM_FINGERPRINT = "vllm-"
LITELLM = "x-litellm-version"  # a header that every answer of it has


class _IsVllm(Exception):
    """The server turned out to be a vLLM, which accepts more fields: the call is repeated."""


class _ServesFromCache(Exception):
    """The server turned out to be a LiteLLM, whose cache must be disabled: the call is repeated."""


class MachineClock:
    """This machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def machine_ahead(self) -> float | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledServer:
    """A server and how it is called: an endpoint's own fields (docs/endpoints.md), from any source.

    hosts: those that may be called, as `endpoint_host_problem` takes them. name: for logs.
    """

    base_url: str
    model: str
    hosts: Collection[str]
    api: str = "chat"
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


class ApiClient:
    """Calls one external server. Every method but `abort` belongs to one thread.

    read_headers: returns the headers of every call, and a mask for the secrets in them; called when it is opened.
    n_failures: failed tries in a row up to now, for the caller to store.
    learns: a parameter that the server refuses by name is left out of later calls; else such a call fails.
    refused: such parameters that are known already.
    first_byte_seconds: within which an answer must begin; None: as long as the whole may take. longest_rest_seconds: of
    a pause that the server did not ask for. limits: shared by all workers.
    randomness, sleep: for tests; `sleep` takes seconds in place of a wait that `abort` ends.
    """

    def __init__(
        self,
        server: CalledServer,
        read_headers: Callable[[], tuple[dict[str, str], Mask]],
        *,
        n_failures: int = 0,
        response_seconds: float,
        concurrency: int,
        first_byte_seconds: float | None = None,
        longest_rest_seconds: float = LONGEST_REST_SECONDS,
        learns: bool = True,
        refused: Collection[str] = (),
        limits: SharedLimits | None = None,
        clock: Clock | None = None,
        randomness: random.Random | None = None,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._server, self._read_headers = server, read_headers
        self._response_seconds = response_seconds
        self._first_byte_seconds = first_byte_seconds
        self._concurrency = max(concurrency, 1)
        self._learns, self._longest_rest = learns, longest_rest_seconds
        self._limits = limits
        self._clock = clock or MachineClock()
        self._randomness = randomness or random.Random()  # noqa: S311  of waits, not of secrets
        self._sleep = sleep
        self._circuit = Circuit(n_failures)
        self._dialect_lock = threading.Lock()
        self._dialect = Dialect(frozenset(refused) - NEVER_LEFT_OUT)
        self._is_vllm = False
        self._not_before = 0.0  # by the monotonic clock: the server wants to be left alone until then
        self._good: DecodeRequest | None = None  # was answered
        self._is_answered = False
        self._wire: Wire | None = None
        self._mask = Mask()
        self._decoding: Decoding | None = None

    @property
    def n_failures(self) -> int:
        """Failed tries in a row up to now."""
        return self._circuit.n_failures

    def open(self) -> None:
        """Read the secrets, check the address and see whether the server is a vLLM. Raises EndpointRefused."""
        headers, self._mask = self._read_headers()
        server = self._server
        wire = Wire(server.base_url, headers, n_connections=self._concurrency, hosts=server.hosts)
        try:
            wire.check()
            self._is_vllm = lists_vllm(wire)
        except BaseException:
            wire.close()
            raise
        self._wire = wire

    def decode(
        self, requests: Iterable[DecodeRequest], *, is_answered: bool = False
    ) -> Generator[CallOutcome, None, None]:
        """Yield each outcome as its call ends; after `abort` it ends early.

        is_answered: what these requests belong to has answers already. Then, and after the first answer, a refusal by
        401, 402, 403 or 404 is a failed call like others: one case's own, or the endpoint's where it refuses all.

        A call that failed is made again after all others. If it fails again, a call that was answered before is
        repeated: the failure is the case's own only if that is answered. Raises EndpointRefused or EndpointRests; what
        was yielded before stands, and what was not is still to be asked.
        """
        if self._wire is None:
            raise EndpointRefused("The endpoint was not opened.")
        self._wire.mend()
        self._is_answered = is_answered
        decoding = self._decoding = Decoding()
        threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix="endpoint-call")
        waiting, n_pending, is_exhausted = iter(requests), 0, False
        doubtful: list[DecodeRequest] = []
        in_flight: dict[int, DecodeRequest] = {}  # and not yet ended
        try:
            while not decoding.is_over:
                if is_exhausted and n_pending == 0 and doubtful:
                    waiting, doubtful, is_exhausted = iter(doubtful), [], False
                # Where the endpoint has rested, one call alone goes first.
                window = 1 if self._circuit.is_open else self._concurrency + AHEAD
                while n_pending < window and not is_exhausted:
                    request = next(waiting, None)
                    is_exhausted = request is None
                    if request is not None:
                        in_flight[request.case_index] = request
                        threads.submit(self._work, decoding, request)
                        n_pending += 1
                if n_pending == 0:
                    return
                outcome = decoding.wait()
                if outcome is None:  # aborted
                    return
                n_pending -= 1
                if isinstance(outcome, BaseException):
                    yield from decoding.rest()
                    raise outcome
                if isinstance(outcome, Doubtful):
                    doubtful.append(outcome.request)
                    decoding.asked_again.add(outcome.request.case_index)
                else:
                    ended = in_flight.pop(outcome.case_index)
                    self._good = ended if isinstance(outcome, Answered) else self._good
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
        if self._limits is not None:
            self._limits.close()

    def _work(self, decoding: Decoding, request: DecodeRequest) -> None:
        """Work on one case, in a separate thread."""
        if decoding.has_failed:
            return
        try:
            decoding.check()
            outcome: CallOutcome | Doubtful | BaseException = self._call(decoding, request)
        except CalledOff:
            return
        except BaseException as problem:  # noqa: BLE001  the reader of the results raises it
            outcome, decoding.has_failed = problem, True
        decoding.results.put(outcome)

    def _call(self, decoding: Decoding, request: DecodeRequest) -> CallOutcome | Doubtful:
        """Call for a case, with retries. Raises EndpointRefused, EndpointRests, CalledOff."""
        began, call = time.monotonic(), CaseCall(request)
        while True:
            self._wait_out(decoding, self._not_before - time.monotonic())
            begun, dialect = self._circuit.begin(), self._dialect
            try:
                call.built = self._build(request, dialect)
            except NotCallable as problem:
                return Failed(request.case_index, "call_refused", str(problem))
            call.n_tries, call.n_answers = call.n_tries + 1, self._circuit.n_answers
            try:
                with self._slot(decoding):
                    return self._try(call, call.built)
            except ParameterRefused as refusal:
                self._circuit.succeed()
                if not self._learn(dialect, call.built, refusal.words):
                    return self._failed(call, "call_refused", str(refusal))
                call.n_tries -= 1  # nothing was decoded, and what is sent next is another call
            except (_IsVllm, _ServesFromCache):
                call.n_tries -= 1
            except CallRefused as refusal:
                if self._learn(dialect, call.built, refusal.words):
                    call.n_tries -= 1
                    continue
                if not self._learns and learn(Dialect(), call.built, refusal.words):
                    self._circuit.succeed()
                    return self._failed(call, refusal.code, refusal.detail)
                if not self._is_answered:
                    raise
                decoding.check()
                return self._give_up(decoding, call, refusal, begun, counts=True)
            except CallFailed as failure:
                decoding.check()
                if failure.code != "timeout":  # the endpoint did answer
                    self._circuit.succeed()
                    return self._failed(call, failure.code, str(failure))
                return self._give_up(decoding, call, failure, begun, counts=True)
            except TryFailed as failure:
                decoding.check()
                if not failure.is_limited:
                    self._count(decoding, call, failure, begun)
                elif failure.seconds:
                    call.n_waits += 1
                self._rest_as_wished(failure)
                wait = max(backoff_seconds(call.n_tries, self._randomness), failure.seconds or 0.0)
                if failure.seconds is not None:
                    self._pause(failure.seconds)
                if call.n_tries - call.n_waits >= MAX_TRIES or time.monotonic() + wait - began > TRIES_WITHIN_SECONDS:
                    return self._give_up(decoding, call, failure, begun, counts=failure.is_limited)
                self._wait_out(decoding, wait)

    @contextmanager
    def _slot(self, decoding: Decoding) -> Iterator[None]:
        """Have room for one call among those of all workers, as soon as there is some. Raises CalledOff."""
        limits = self._limits
        if limits is None:
            yield
            return
        self._wait_out(decoding, self._ask(decoding, limits.turn))
        while (slot := self._ask(decoding, partial(limits.take, seconds=self._response_seconds))) is None:
            self._wait_out(decoding, LOOK_FOR_SLOT_SECONDS * self._randomness.uniform(0.5, 1.5))
        try:
            yield
        finally:
            limits.give_back(slot)

    def _ask(self, decoding: Decoding, question: Callable[[], Result]) -> Result:
        """Query the limits until they are available. Raises CalledOff.

        The heartbeat knows when to stop.
        """
        away = () if self._limits is None else self._limits.away
        while True:
            try:
                return question()
            except away as problem:
                logger.warning("The limits cannot be asked, trying again: %s", problem)
                self._wait_out(decoding, 1.0)

    def _pause(self, seconds: float) -> None:
        """Pause this endpoint's calls of all workers."""
        self._not_before = max(self._not_before, time.monotonic() + seconds)
        if self._limits is not None:
            with suppress(*self._limits.away):  # then the others learn it by themselves
                self._limits.pause(seconds)

    def _build(self, request: DecodeRequest, dialect: Dialect) -> Built:
        server = self._server
        return build(
            request,
            api=server.api,
            model=server.model,
            extra_body=server.extra_body,
            dialect=dialect,
            is_vllm=self._is_vllm,
        )

    def _try(self, call: CaseCall, built: Built) -> Answered | FailedCall:
        """Send one call and read what comes. Raises what `Wire.post` and `read_body` do."""
        assert self._wire is not None  # noqa: S101  for the type checker: decode has seen to it
        content = json.dumps(built.body, separators=(",", ":"), allow_nan=False).encode()
        call.started_at, call.reply = self._clock.now(), None
        try:
            reply = self._wire.post(
                built.path, content, seconds=self._response_seconds, first_byte_seconds=self._first_byte_seconds
            )
        except (TryFailed, CallFailed) as failure:
            call.reply = failure.reply
            raise
        call.reply = reply
        timing = self._time(call)
        body = read_body(reply, self._mask, now=timing.ended_at)
        self._circuit.succeed()
        if str(body.get("system_fingerprint")).startswith(VLLM_FINGERPRINT):
            self._is_vllm = True  # behind a gateway, whose list of models does not say so
        if self._is_vllm and not built.is_vllm:
            raise _IsVllm
        is_news = LITELLM in reply.headers and not built.is_uncached and self._learn_of_cache()
        if is_news and "cached" in flags(reply.headers, body):
            raise _ServesFromCache
        outcome = read_answer(
            call.request.case_index, reply, body, built, timing, base_url=self._server.base_url, mask=self._mask
        )
        self._is_answered = self._is_answered or isinstance(outcome, Answered)
        return outcome

    def _learn_of_cache(self) -> bool:
        """Have the calls that follow say that no cache may answer; False where the server refuses to hear it."""
        with self._dialect_lock:
            self._dialect = replace(self._dialect, is_litellm=True)
            return "cache" not in self._dialect.refused

    def _failed(self, call: CaseCall, code: str, words: str) -> FailedCall:
        """Return a call's failure, with what is known of its last try."""
        assert call.built is not None  # noqa: S101  for the type checker: it was sent
        index, timing = call.request.case_index, self._time(call)
        return failed(index, code, words, self._mask, built=call.built, timing=timing, reply=call.reply)

    def _time(self, call: CaseCall) -> Timing:
        """Say when a call's last try began, and that it ends now."""
        ended_at = self._clock.now()
        began = min(call.started_at or ended_at, ended_at)  # the clock may have been set between
        return Timing(
            started_at=began, ended_at=ended_at, n_tries=call.n_tries, worker_ahead=self._clock.machine_ahead()
        )

    def _learn(self, dialect: Dialect, built: Built, words: str) -> bool:
        """Learn from a refusal which parameters to leave out; False if it names none."""
        with self._dialect_lock:
            learnt = learn(self._dialect, built, words)
            if learnt is not None and not self._learns:
                # Under which name an answer's limit goes, it learns all the same.
                learnt = None if learnt.refused != self._dialect.refused else learnt
            if learnt is not None:
                self._dialect = learnt
                logger.info("The endpoint %s does not take all parameters: %s", self._server.name, learnt)
            # Another call may have learnt the same a moment ago.
            return learnt is not None or self._dialect != dialect

    def _give_up(
        self,
        decoding: Decoding,
        call: CaseCall,
        failure: TryFailed | CallFailed | CallRefused,
        begun: int,
        *,
        counts: bool,
    ) -> FailedCall | Doubtful:
        """Return a call of which every try failed: as the case's failure, or as doubtful.

        A failure that may pass is never the case's own the first time. counts: as one failed try. Raises EndpointRests
        where the case failed twice and the endpoint does not answer a call that it answered before.
        """
        if counts:
            self._count(decoding, call, failure, begun)
        times = f"{_times(call.n_tries)} " if isinstance(failure, TryFailed) else ""
        outcome = self._failed(call, failure.code, f"{times}{failure}")
        is_again = call.request.case_index in decoding.asked_again
        is_own = self._is_own(call)
        may_be_own = is_again or (is_own and isinstance(failure, CallFailed))
        if may_be_own and (self._answers_others(decoding) or (is_own and self._good is None)):
            return outcome
        if is_again:
            raise self._rests(failure) from None  # whose words may hold a secret
        return Doubtful(call.request)

    def _rests(self, failure: TryFailed | CallFailed | CallRefused, *, seconds: float | None = None) -> EndpointRests:
        """Return why the endpoint is paused, for `seconds` or as long as its failures require."""
        n = self._circuit.n_failures
        wish = "" if seconds is None else f"It asks to be left alone for {seconds:,.0f} seconds. "
        code = failure.code if isinstance(failure, CallRefused) else "call_failed"
        words = self._mask.text(f"{wish}{failure}")
        return EndpointRests(
            words, seconds=seconds or min(rest_seconds(n), self._longest_rest), n_failures=n, code=code
        )

    def _count(
        self, decoding: Decoding, call: CaseCall, failure: TryFailed | CallFailed | CallRefused, begun: int
    ) -> None:
        """Count a failed try, unless only its case fails. Raises EndpointRests after too many."""
        if call.request.case_index in decoding.asked_again and self._is_own(call):
            return
        self._circuit.fail(begun)
        if self._circuit.is_open and not self._answers_others(decoding):
            raise self._rests(failure) from None  # whose words may hold a secret

    def _answers_others(self, decoding: Decoding) -> bool:
        """Return whether the endpoint repeats an earlier answer: then the cases fail, not it."""
        good = self._good
        if good is None:
            return False
        self._wait_out(decoding, self._not_before - time.monotonic())
        try:
            with self._slot(decoding):
                self._try(CaseCall(good, n_tries=1), self._build(good, self._dialect))
        except (TryFailed, CallFailed, CallRefused):
            decoding.check()
            return False
        except (ParameterRefused, _IsVllm, _ServesFromCache):
            self._circuit.succeed()
        return True

    def _is_own(self, call: CaseCall) -> bool:
        """Return whether the endpoint has answered other calls since this call's last try began."""
        return self._circuit.n_answers > call.n_answers

    def _rest_as_wished(self, failure: TryFailed) -> None:
        """Raise EndpointRests if the server requests a longer pause than a call may wait."""
        if failure.seconds is not None and failure.seconds > LONGEST_WAIT_SECONDS:
            raise self._rests(failure, seconds=failure.seconds) from None  # whose words may hold a secret

    def _wait_out(self, decoding: Decoding, seconds: float) -> None:
        """Wait, unless the call is called off. Raises CalledOff."""
        if seconds > 0 and self._sleep is not None:
            self._sleep(seconds)
        elif seconds > 0:
            decoding.over.wait(seconds)
        decoding.check()


def _times(n_tries: int) -> str:
    return "Tried once." if n_tries == 1 else f"Tried {n_tries} times."
