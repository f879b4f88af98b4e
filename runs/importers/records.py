"""What a reader makes of a log: runs with their cases and responses, in one shape whichever tool wrote it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

# How much of the decoding a log gives: text only; tokens with top-2 logprobs; those and the engine's token ids.
Detail = Literal["text", "tokens", "ids"]
Status = Literal["finished", "incomplete", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class LoggedPosition:
    """One position: the chosen token's bytes and logprob in nats, and (bytes, logprob) alternatives in the log's order.

    A token whose bytes the log leaves out, as of half a character, has none: b"".
    """

    token: bytes
    logprob: float
    alternatives: tuple[tuple[bytes, float], ...] = ()
    token_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedBy:
    """Who answered, as far as the log says. `key` names the backend, `key_from` says which part gave it.

    `parts` are all parts that could have, secrets excepted. Unknown is "", and never equal to another unknown.
    """

    key: str = ""
    key_from: str = ""
    model: str = ""
    system_fingerprint: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoggedScore:
    """One scorer's judgement: from 0 to 1, None where its value is no number, with the tool's own words."""

    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedResponse:
    """What a log holds of (case, repeat); repeats count from 1. With an `error` it is missing.

    `positions` is None where the log gives no tokens. `flags` say why it is no clean sample: "cached", "fallback",
    "retried".
    """

    case_id: str
    repeat: int
    text: str = ""
    error: str = ""
    finish_reason: str = ""
    positions: Sequence[LoggedPosition] | None = None
    prompt_token_ids: tuple[int, ...] | None = None
    n_tokens: int | None = None
    n_prompt_tokens: int | None = None
    seed: int | None = None
    request_id: str = ""
    seconds: float | None = None
    answered_at: datetime | None = None
    served_by: ServedBy = field(default_factory=ServedBy)
    scores: Mapping[str, LoggedScore] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCase:
    """One case; `messages` is empty where the log does not hold the prompt, `target` None where it has none."""

    id: str
    messages: tuple[Mapping[str, Any], ...] = ()
    target: Any = None
    tools: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """One run out of a log. `slug` is what its suite would be called; `scorers` names the scores, the main one first.

    `sampling` holds what the log says was sent: temperature, top_p, seed, max_tokens, stop and so on; what it does not
    say is not there. `revision` is the model's, where one is declared. `own_ids` are the tool's own ids of this eval,
    each of which tells it from any other. `labels` are facts for the run's page: commit, task version, the tool's own
    run id.
    """

    slug: str
    title: str
    tool: str
    model: str
    detail: Detail
    status: Status
    cases: tuple[LoggedCase, ...]
    responses: tuple[LoggedResponse, ...]
    revision: str = ""
    base_url: str = ""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    scorers: tuple[str, ...] = ()
    own_ids: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    failure: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    notes: tuple[str, ...] = ()
