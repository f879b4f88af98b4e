"""A call for one case: its answer, its facts, and the ways in which a server fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from evalboard.contract.call import CallFacts
from evalboard.core.trace import Failed, Outcome
from evalboard.importers.records import LoggedResponse


@dataclass(frozen=True, slots=True)
class DecodeRequest:
    """One case to decode. `sampling` is complete: max_tokens and stop included.

    `prompt_token_ids` stands in for the messages where the exact prompt is already known.
    """

    case_index: int
    messages: Sequence[Mapping[str, Any]]
    sampling: Mapping[str, Any]
    tools: list[Any] | None = None
    prompt_token_ids: list[int] | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """The last try of a call as it went over the wire, without secrets.

    sent: the body of the request. headers: of the answer, names in small letters. body: the JSON object that came, {}
    where none did.
    """

    sent: Mapping[str, Any]
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer in the form of logged ones, so that one reader serves both.

    Its `case_id` is empty and its `repeat` 1: the caller knows both.
    """

    case_index: int
    response: LoggedResponse
    call: CallFacts
    exchange: Exchange | None = None


@dataclass(frozen=True, slots=True)
class FailedCall(Failed):
    """A failure of a call that was made, with how the last try of it went."""

    call: CallFacts
    exchange: Exchange | None = None


CallOutcome = Answered | Outcome


class EngineFailure(Exception):
    """The engine is gone. `code` is one of core.trace.provenance.ERROR_CODES.

    `last_words` is the end of its stderr; `in_flight` the case indexes it was decoding.
    """

    def __init__(self, code: str, detail: str, *, last_words: str = "", in_flight: tuple[int, ...] = ()) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.last_words = last_words
        self.in_flight = in_flight


class EndpointRefused(EngineFailure):
    """An external server accepts no call of this run: retries of other cases are useless too."""

    def __init__(self, detail: str) -> None:
        super().__init__("call_refused", detail)


class KeyUnreadable(EndpointRefused):
    """A key of the endpoint cannot be read, so no call was made. cause: without the advice behind it."""

    def __init__(self, cause: str, advice: str = "") -> None:
        super().__init__(cause + advice)
        self.cause = cause


class EndpointRests(EngineFailure):
    """An external server failed too often in a row, or requested a pause of `seconds`.

    code: `call_refused` if it refused calls after it had answered some, as with an expired key. n_failures: failed
    tries in a row.
    """

    def __init__(self, detail: str, *, seconds: float, n_failures: int, code: str = "call_failed") -> None:
        super().__init__(code, detail)
        self.seconds = seconds
        self.n_failures = n_failures


class Clock(Protocol):
    """The clock for the times of calls."""

    def now(self) -> datetime:
        """Return the time."""

    def machine_ahead(self) -> float | None:
        """Return by how many seconds this machine's wall clock is ahead of it; None where that is not known."""


class SharedLimits(Protocol):
    """The limits of all callers of one server together. Thread-safe.

    away: what it raises while it is unavailable; a moment later it may be available.
    """

    away: tuple[type[Exception], ...]

    def turn(self) -> float:
        """Return in how many seconds a call may begin."""

    def pause(self, seconds: float) -> None:
        """Pause all calls for so long."""

    def take(self, *, seconds: float) -> int | None:
        """Return a slot for a call that takes at most so long; None where all are taken."""

    def give_back(self, *slots: int) -> None:
        """Free slots."""

    def close(self) -> None:
        """Release its resources."""
