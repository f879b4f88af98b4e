"""The records that readers make of a log: runs, cases and responses, the same for all tools."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

# How much of the decoding a log gives: text only; tokens with top-2 logprobs; those and the engine's token ids; ids
# alone, with neither text nor the tokens' bytes.
Detail = Literal["text", "tokens", "ids", "ids_alone"]
Status = Literal["finished", "incomplete", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class LoggedPosition:
    """A position: the chosen token's bytes, its logprob in nats, and (bytes, logprob) alternatives.

    A token whose bytes the log leaves out, as of half a character, has none: b"".
    """

    token: bytes
    logprob: float
    alternatives: tuple[tuple[bytes, float], ...] = ()
    token_id: int | None = None


NO_ID = -1  # stands among token ids for one that is not known


@dataclass(frozen=True, slots=True, eq=False)
class LoggedPositions(Sequence[LoggedPosition]):
    """The n positions of one response as columns, with m alternatives in order of position.

    tokens: the bytes of each different token once, chosen ones first, in the order in which they are met.
    chosen: int32[n], places in `tokens`. logprobs: float64[n], NaN where the log leaves one out.
    n_alternatives: int32[n]. others: int32[m], places in `tokens`. other_logprobs: float64[m].
    token_ids: int32[n], NO_ID where the log has none.
    """

    tokens: tuple[bytes, ...]
    chosen: NDArray[np.int32]
    logprobs: NDArray[np.float64]
    n_alternatives: NDArray[np.int32]
    others: NDArray[np.int32]
    other_logprobs: NDArray[np.float64]
    token_ids: NDArray[np.int32]

    @property
    def has_ids_alone(self) -> bool:
        """Return whether the tokens have ids but no bytes."""
        return self.tokens == (b"",) and bool((self.token_ids != NO_ID).all())

    @classmethod
    def from_columns(
        cls,
        chosen: Sequence[bytes],
        logprobs: Sequence[float] | NDArray[np.float64],
        n_alternatives: Sequence[int],
        others: Sequence[bytes],
        other_logprobs: Sequence[float] | NDArray[np.float64],
        token_ids: Sequence[int] | None = None,
    ) -> "LoggedPositions":
        """Return positions made of these columns; the last four as in the class."""
        places: dict[bytes, int] = {}
        at_chosen = [places.setdefault(token, len(places)) for token in chosen]
        at_others = [places.setdefault(token, len(places)) for token in others]
        return cls(
            tokens=tuple(places),
            chosen=np.array(at_chosen, dtype=np.int32),
            logprobs=np.array(logprobs, dtype=np.float64),
            n_alternatives=np.array(n_alternatives, dtype=np.int32),
            others=np.array(at_others, dtype=np.int32),
            other_logprobs=np.array(other_logprobs, dtype=np.float64),
            token_ids=np.full(len(chosen), NO_ID, np.int32) if token_ids is None else np.array(token_ids, np.int32),
        )

    @classmethod
    def from_positions(cls, positions: Iterable[LoggedPosition]) -> "LoggedPositions":
        """Return the columns of single positions."""
        rows = list(positions)
        others = [other for row in rows for other in row.alternatives]
        return cls.from_columns(
            [row.token for row in rows],
            [row.logprob for row in rows],
            [len(row.alternatives) for row in rows],
            [token for token, _ in others],
            [logprob for _, logprob in others],
            [NO_ID if row.token_id is None else row.token_id for row in rows],
        )

    @property
    def has_ids(self) -> bool:
        """Return whether the log has the engine's id of every chosen token."""
        return bool((self.token_ids != NO_ID).all())

    @property
    def last_token(self) -> bytes:
        last: bytes = self.tokens[self.chosen[-1]]
        return last

    @property
    def text_before_last(self) -> bytes:
        """The bytes of all chosen tokens but the last."""
        return b"".join(map(self.tokens.__getitem__, self.chosen[:-1].tolist()))

    def __len__(self) -> int:
        return len(self.chosen)

    def __iter__(self) -> Iterator[LoggedPosition]:
        others = iter(zip(self.others.tolist(), self.other_logprobs.tolist(), strict=True))
        columns = (self.chosen, self.logprobs, self.n_alternatives, self.token_ids)
        for token, logprob, n, token_id in zip(*(column.tolist() for column in columns), strict=True):
            alternatives = tuple((self.tokens[other], value) for other, value in islice(others, n))
            yield LoggedPosition(self.tokens[token], logprob, alternatives, None if token_id == NO_ID else token_id)

    @overload
    def __getitem__(self, place: int) -> LoggedPosition: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[LoggedPosition]: ...
    def __getitem__(self, place: int | slice) -> LoggedPosition | Sequence[LoggedPosition]:
        return tuple(self)[place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedBy:
    """The log's facts about who answered. `key` names the backend, `key_from` the part that gave it.

    `parts` are all parts that could have, secrets excepted. Unknown is "", and never equal to another unknown.
    """

    key: str = ""
    key_from: str = ""
    model: str = ""
    system_fingerprint: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoggedScore:
    """A scorer's value from the log, from 0 to 1 after `scales` has read it; None if no number.

    reason: the tool's own words.
    """

    value: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class LoggedTrainer:
    """A trainer's logprob of each token of a response, in nats; NaN without one.

    is_sampled: False for a token that the model did not sample, as of a tool's answer.
    """

    logprobs: tuple[float, ...]
    is_sampled: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedResponse:
    """A logged response to (case, repeat); repeats count from 1. With an `error` it is missing.

    `text` is the answer; `reasoning` what the model thought before it, None where the log keeps nothing apart.
    `is_prompt_filtered`: the provider's filter refused the prompt. `is_refusal`: it has a refusal of its own.
    `positions` is None where the log gives no tokens, `trainer` where no trainer gave them logprobs. `flags` say why it
    is no clean sample: "cached", "fallback", "retried". `dropped` names fields beside the answer that could not be
    read. `trace_reason` says why its tokens are not measured, "" where they are; `n_reasoning_tokens` of the first of
    them are the thinking, None where nothing is apart.
    """

    case_id: str
    repeat: int
    text: str = ""
    reasoning: str | None = None
    error: str = ""
    is_prompt_filtered: bool = False
    finish_reason: str = ""
    is_refusal: bool = False
    positions: LoggedPositions | None = None
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
    dropped: tuple[str, ...] = ()
    trainer: LoggedTrainer | None = None
    trace_reason: str = ""
    n_reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCase:
    """One case. messages: empty if the log lacks the prompt; target: None if there is none.

    `index` is the tool's own number of it, None where it has none; other orders of a log say nothing. `input` is what
    of the prompt is the case's own, as `calls.read_input` gives it; "" where that is the last user message.
    """

    id: str
    messages: tuple[Mapping[str, Any], ...] = ()
    target: Any = None
    index: int | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    input: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRun:
    """One run of a log. slug: its suite's name; scorers: names of the scores, the main one first.

    `n_repeats` is how often each case was to be answered, None for as often as the log has it; `n_cases` how many cases
    there were to be, None where the log does not say. `sampling` holds what the log says was sent: temperature, top_p,
    seed, max_tokens, stop and so on; what it does not say is not there. `revision` is the model's, where one is
    declared. `own_ids` are the tool's own ids of this eval, each of which tells it from any other. `labels` are facts
    for the run's page: commit, task version, the tool's own run id.
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
    n_repeats: int | None = None
    n_cases: int | None = None

    def count_answers(self) -> Mapping[str, int]:
        """Return the last repeat that the log has of each case that it has answers of."""
        counted: dict[str, int] = {}
        for each in self.responses:
            counted[each.case_id] = max(counted.get(each.case_id, 0), each.repeat)
        return counted

    @property
    def has_texts(self) -> bool:
        return self.detail != "ids_alone"
