"""What the runner needs of an engine: one small Protocol, and the ways in which an engine fails."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalboard.calling.calls import DecodeRequest, EngineFailure
from evalboard.core.profile import EnginePlan
from evalboard.core.trace import Failed, Forced, Outcome


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """What to start: a model (an absolute folder, s3://…, or a repository with its revision) under a plan.

    adapter: a LoRA adapter that decodes on the model: a folder, s3://…, or owner/name@commit. token: for the hub of a
    repository. "": none.
    """

    model: str
    revision: str | None
    plan: EnginePlan
    token: str = field(default="", repr=False)
    adapter: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """A started engine's environment manifest (docs/node.md), read from inside it."""

    manifest: dict[str, Any]
    seconds: float


@dataclass(frozen=True, slots=True)
class ForceRequest:
    """One answer to score after its prompt, by its tokens, or by its text if these are unknown.

    place: what its outcome is found by. Without `prompt_token_ids` the messages are rendered; of `sampling`, logprobs
    says how many alternatives are listed, and the template's switches how the messages are rendered.
    """

    place: int
    messages: Sequence[Mapping[str, Any]]
    sampling: Mapping[str, Any]
    tools: list[Any] | None = None
    prompt_token_ids: list[int] | None = None
    answer_token_ids: list[int] | None = None
    answer_text: str = ""


@dataclass(frozen=True, slots=True)
class TokenListing:
    """Token id → bytes (None: the id is unused), and the ids that end an answer."""

    tokens: list[bytes | None]
    end_ids: tuple[int, ...]
    digest: str  # of the tokenizer's files, as in the manifest


class EngineDied(EngineFailure):
    """The engine failed, was killed, or exited."""


class EngineTimeout(EngineFailure):
    """The engine did not respond in time, and was killed."""

    def __init__(self, detail: str, *, last_words: str = "", in_flight: tuple[int, ...] = ()) -> None:
        super().__init__("timeout", detail, last_words=last_words, in_flight=in_flight)


class Engine(Protocol):
    """One engine process. Every method but `abort` and `last_words` belongs to one thread."""

    def start(self) -> Started:
        """Start, or raise EngineDied or EngineTimeout."""

    def adapt(self, adapter: str, token: str) -> Started | None:
        """Exchange the adapter that it was started with for another one. Both are as in `EngineSpec`.

        None, and nothing has changed, where that one needs an engine of its own. Raises EngineDied or EngineTimeout.
        """

    def decode(self, requests: Iterable[DecodeRequest]) -> Iterator[Outcome]:
        """Yield each outcome as it finishes, begun in the order given; after `abort` it ends early.

        Raises EngineDied or EngineTimeout; what was yielded before stands.
        """

    def force(self, requests: Iterable[ForceRequest]) -> Iterator[Forced | Failed]:
        """Score given answers instead of decoding; otherwise like `decode`."""

    def self_check(self) -> str:
        """Decode four fixed prompts of eight tokens; return the digest of token ids and logprob bits."""

    def vocabulary(self) -> TokenListing:
        """Return the bytes of every token id."""

    def abort(self) -> None:
        """Make a decode or a start that is under way end early. Callable from any thread."""

    def stop(self) -> None:
        """End the engine and every process it started; harmless when it has already ended."""

    def last_words(self) -> str:
        """Return the end of the engine's stderr, which explains a crash. Thread-safe."""
