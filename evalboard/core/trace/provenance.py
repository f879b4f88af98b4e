"""The result for one case: a decoded response, or why there is none."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from evalboard.core.trace.trace import TokenTrace

# Why a response is missing. None of these is a wrong answer: a missing response has no score.
ERROR_CODES = {
    "prompt_empty": "The prompt says nothing.",
    "prompt_too_long": "The prompt does not fit the model's context.",
    "template_error": "The model's chat template refused the messages.",
    "engine_error": "The engine failed on this case.",
    "out_of_memory": "The engine ran out of memory on this case.",
    "timeout": "The engine did not answer in time.",
    "worker_crash": "The worker died with this case in flight, three times.",
    "call_failed": "No call to the endpoint came through, though it was tried again.",
    "prompt_filtered": "The provider's filter refused this prompt.",
    "call_refused": "The endpoint refused this request.",
    "not_json": "The endpoint answered with something that is no JSON.",
    "cut_short": "The endpoint's answer ended in the middle.",
    "too_large": "The endpoint's answer was longer than 32 MiB.",
    "no_answer": "The endpoint's answer holds no text and no reason why it ended.",
    "source_error": "The tool whose log was imported recorded an error here.",
    "not_rebuilt": "The answer's tokens cannot be made again of what is stored, so they cannot be scored.",
    "not_in_log": "The imported log has no response of this case.",
}


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds of a response's stages by the engine's own clock; None if it gave none."""

    queued_seconds: float | None
    prefill_seconds: float | None
    decode_seconds: float | None


@dataclass(frozen=True, slots=True)
class Decoded:
    """One response as an engine returned it.

    text is the answer. reasoning is what the model thought before it, without its tags, and n_reasoning_tokens how many
    of the trace's tokens that took, tags included; None where nothing is apart.
    finish_reason is "stop" or "length" for an answer; batch_min and batch_max are the smallest and
    largest number of requests that shared a step with it; n_cached_tokens counts prompt tokens that
    were read from a prefix cache.
    """

    case_index: int
    text: str
    finish_reason: str
    trace: TokenTrace
    n_prompt_tokens: int
    prompt_digest: bytes
    seed_sent: int | None
    request_id: str
    n_cached_tokens: int | None
    n_preemptions: int | None
    batch_min: int | None
    batch_max: int | None
    timings: Timings
    reasoning: str | None = None
    n_reasoning_tokens: int | None = None


def is_truncated(*, text: str, reasoning: str | None, is_cut: bool) -> bool | None:
    """Tell whether a response was cut during thinking, so that it has no answer.

    None if thinking is not stored separately.
    """
    return None if reasoning is None else is_cut and not text.strip()


@dataclass(frozen=True, slots=True)
class Forced:
    """A given answer, scored by an engine in one pass: nothing was decoded.

    place: which of those that were wanted. trace: the given tokens as the chosen ones, with the engine's own top k
    beside them, and the prompt that they followed. batch_min, batch_max, n_cached_tokens: as of a decoded response.
    """

    place: int
    trace: TokenTrace
    n_cached_tokens: int | None
    batch_min: int | None
    batch_max: int | None


@dataclass(frozen=True, slots=True)
class Failed:
    """No response came: one of ERROR_CODES, with the engine's own words."""

    case_index: int
    code: str
    detail: str


Outcome = Decoded | Failed


# Seconds by which the server's clock is ahead of ours: at least, and at most.
ClockAhead = tuple[float, float]


def measure_clock(date: str, began: datetime, ended: datetime) -> ClockAhead | None:
    """Return the offset that one answer shows; None if it has no readable Date.

    The server wrote `date` between `began` and `ended`, at some time within the second that it names.
    """
    try:
        at = parsedate_to_datetime(date)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    low, high = (at - ended).total_seconds(), (at - began).total_seconds() + 1
    return round(low, 3), round(high, 3)


def combine_clocks(seen: Iterable[ClockAhead | None]) -> ClockAhead | None:
    """Return the intersection of several offsets, narrower than each; None if there are none.

    Where no one distance fits all, as of several servers or of a clock that was set, the first is above the second.
    """
    known = [each for each in seen if each is not None]
    return (max(low for low, _ in known), min(high for _, high in known)) if known else None
