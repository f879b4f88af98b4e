"""One call of a probe, and what a probe finds."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from evalboard.core.trace import ClockAhead


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeExchange:
    """A request that a probe sent, and its answer.

    prompt: index into the probe's prompts. group: what the call is for, "same", "different" or "greedy" (seed),
    "copy" or "load" (batch, determinism), "ask" (routing, canary, audit), a capability's own (`capability_calls`).
    round: calls of one round were decoded together. top: the alternatives of the first position, (token, logprob in
    nats); a token is its id, or its text where the server gives no ids. worker, engine_process, bucket: ids of the
    records. error: the engine's words where no answer came; such a call has no tokens.

    trace_digest: of every token and logprob, in hexadecimal digits; "" of a kind that looks at texts alone.
    logprobs: of the chosen tokens, in nats, float32 as they were; at: when the answer was there, ISO 8601 in UTC. Both
    of an audit alone.

    Of a server of others (is_remote) there is no engine process, and no bucket where nothing names who answered.
    backend: what names who answered, "" where nothing does. n_tokens, n_prompt_tokens: by the server's own count, of
    which n_reasoning_tokens are thinking and n_cached_tokens came from a cache.
    left_out: settings that were not sent. marks: why it is no clean sample, of "cached", "fallback" and "retried".
    clock_ahead: what its Date says of its clock. tool_calls: name and arguments, as they came; model: the one that the
    answer names; seconds: from the request to the end of the answer. These three of a vendor probe alone.
    """

    prompt: int
    group: str
    round: int = 0
    seed: int | None = None
    token_ids: tuple[int, ...] = ()
    text: str = ""
    finish_reason: str = ""
    top: tuple[tuple[int | str, float], ...] = ()
    batch_max: int | None = None
    worker: int | None = None
    engine_process: int | None = None
    bucket: int | None = None
    fingerprint: str = ""
    error: str = ""
    trace_digest: str = ""
    logprobs: tuple[float, ...] = ()
    at: str = ""
    is_remote: bool = False
    backend: str = ""
    system_fingerprint: str = ""
    n_tokens: int | None = None
    n_prompt_tokens: int | None = None
    n_reasoning_tokens: int | None = None
    n_cached_tokens: int | None = None
    left_out: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    clock_ahead: ClockAhead | None = None
    tool_calls: tuple[tuple[str, str], ...] = ()
    model: str = ""
    seconds: float | None = None

    @property
    def was_sent(self) -> bool:
        """Return whether the call was sent; it was not if its worker was gone before its turn."""
        return self.is_remote or self.engine_process is not None

    @property
    def served_by(self) -> int | str | None:
        """Return who answered as far as known: the external server's backend, else the bucket."""
        return self.backend or self.bucket


# Stored where there is something to store: most kinds look at texts alone.
OPTIONAL_FIELDS = ("trace_digest", "logprobs", "at", "tool_calls", "model", "seconds")
# Only calls to external servers have them.
REMOTE_FIELDS = (
    "is_remote",
    "backend",
    "system_fingerprint",
    "n_tokens",
    "n_prompt_tokens",
    "n_reasoning_tokens",
    "n_cached_tokens",
    "left_out",
    "marks",
    "clock_ahead",
)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The state of a probe, by its kind, and every figure behind it, ready for JSON.

    `evalboard.wording.probe` says it in a sentence.
    """

    state: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


def dump_call(call: ProbeExchange) -> dict[str, Any]:
    """Return a call as a probe's `answers` store it."""
    fields = asdict(call)
    empty = [name for name in OPTIONAL_FIELDS if not fields[name]]
    for name in (*empty, *(() if call.is_remote else REMOTE_FIELDS)):
        del fields[name]
    return fields


def parse_call(stored: Mapping[str, Any]) -> ProbeExchange:
    """Read what `dump_call` wrote."""
    top = tuple((token if isinstance(token, str) else int(token), float(logprob)) for token, logprob in stored["top"])
    lists = {name: tuple(stored.get(name, ())) for name in ("token_ids", "logprobs", "left_out", "marks")}
    lists["tool_calls"] = tuple((name, arguments) for name, arguments in stored.get("tool_calls", ()))
    ahead = stored.get("clock_ahead")
    return ProbeExchange(**{**stored, **lists, "top": top, "clock_ahead": (ahead[0], ahead[1]) if ahead else None})
