"""One call of a probe, and what a probe finds."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeCall:
    """A request that a probe sent, and its answer.

    prompt: index into the probe's prompts. group: what the call is for, "same", "different" or "greedy" (seed),
    "copy" or "load" (batch), "ask" (routing, canary). round: calls of one round were decoded together. top: the
    alternatives of the first position, (token id, logprob in nats). worker, engine_process, bucket: ids of the
    records. error: the engine's words where no answer came; such a call has no tokens.
    """

    prompt: int
    group: str
    round: int = 0
    seed: int | None = None
    token_ids: tuple[int, ...] = ()
    text: str = ""
    finish_reason: str = ""
    top: tuple[tuple[int, float], ...] = ()
    batch_max: int | None = None
    worker: int | None = None
    engine_process: int | None = None
    bucket: int | None = None
    fingerprint: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """What a probe found: a state of its kind and every number behind it, ready for JSON.

    `evalboard.wording.probe` says it in a sentence.
    """

    state: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


def dump_call(call: ProbeCall) -> dict[str, Any]:
    """Return a call as a probe's `answers` hold it."""
    return asdict(call)


def parse_call(stored: Mapping[str, Any]) -> ProbeCall:
    """Read what `dump_call` wrote."""
    top = tuple((int(token), float(logprob)) for token, logprob in stored["top"])
    return ProbeCall(**{**stored, "token_ids": tuple(stored["token_ids"]), "top": top})
