"""The facts of both responses of a pair, and which of them differ.

They come in three parts, so that a comparison holds what all responses of a run share only once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# What decides which token is chosen, beside the temperature; the rest of what is sent bounds or shows the answer.
CHOOSING = (
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "min_tokens",
    "ignore_eos",
    "logit_bias",
    "response_format",
)

CauseFacts = dict[str, Any]
Place = Any  # where a trace is kept; only `Traces` reads it


@dataclass(frozen=True, slots=True)
class RequestSettings:
    """The settings and scoring of a run's responses; None or empty if not in the log.

    is_adjusted: more than the logits decided which token is chosen. sampling: those of CHOOSING that are known; what is
    no number or word stands as JSON. is_thinking_scored: some scorer of the suite reads what was thought. constraint:
    what forbade tokens, such as a schema or a forced tool call; None where nothing is known to.
    """

    max_tokens: int | None
    stop: tuple[str, ...]
    temperature: float | None
    is_adjusted: bool
    sampling: Mapping[str, float | str | bool]
    is_thinking_scored: bool
    constraint: str | None = None


@dataclass(frozen=True, slots=True)
class ServingFacts:
    """A bucket's facts about its responses; None is not known.

    model_name, model_revision: where the weights are not known, None beside a digest of them.
    """

    weights_digest: str | None
    model_name: str | None
    model_revision: str | None
    template_digest: str | None
    fingerprint: str | None
    bucket: int | None


UNKNOWN_SERVING = ServingFacts(None, None, None, None, None, None)


@dataclass(frozen=True, slots=True)
class ResponseFacts:
    """One response's facts; None is not known.

    text: "" if it is not needed. place: of its trace, None without one; vocabulary_id: of its tokens.
    """

    place: Place | None
    finish_reason: str
    ending: str
    error_code: str
    prompt_digest: bytes | memoryview | None
    n_prompt_tokens: int | None
    seed_sent: int | None
    vocabulary_id: int | None
    n_reasoning_tokens: int | None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownResponse:
    """The known facts of one side's response; None is "not known". Digests are hexadecimal.

    weights_digest covers what the model computes with, but not its chat template, which has its own. Where nobody knows
    it, model_revision is the revision that was declared, and model_name what the model goes by; else both are None.
    temperature 0 says that top-1 must be chosen, unless is_adjusted: penalties, a bias or a constraint took part.
    sampling: those of CHOOSING that are known, each a number, a word or a flag; seed: what was sent with the call.
    bucket: what tells one bucket from another. constraint: as `RequestSettings` has it. n_reasoning_tokens: of the
    trace, before the answer, which is `text`; is_thinking_scored: its scorer reads them.
    """

    has_response: bool = True
    error_code: str = ""
    text: str = ""
    n_reasoning_tokens: int | None = None
    score: float | None = None
    scorer_digest: str | None = None
    is_thinking_scored: bool = False
    weights_digest: str | None = None
    model_revision: str | None = None
    model_name: str | None = None
    template_digest: str | None = None
    prompt_digest: str | None = None
    n_prompt_tokens: int | None = None
    fingerprint: str | None = None
    backend: str | None = None
    finish_reason: str | None = None
    ending: str | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    temperature: float | None = None
    is_adjusted: bool = False
    sampling: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    bucket: int | None = None
    constraint: str | None = None

    @property
    def is_sampled(self) -> bool:
        return self.temperature is not None and self.temperature > 0


def make_response(
    settings: RequestSettings,
    served: ServingFacts,
    response: ResponseFacts | None,
    *,
    score: float | None,
    scorer_digest: str | None,
) -> KnownResponse:
    """Return the facts of one side; `response` is None where there is no response at all."""
    if response is None:
        return KnownResponse(has_response=False)
    return KnownResponse(
        has_response=not response.error_code,
        error_code=response.error_code,
        text=response.text,
        n_reasoning_tokens=response.n_reasoning_tokens,
        score=score,
        scorer_digest=scorer_digest,
        is_thinking_scored=settings.is_thinking_scored,
        weights_digest=served.weights_digest,
        model_name=served.model_name,
        model_revision=served.model_revision,
        template_digest=served.template_digest,
        prompt_digest=None if response.prompt_digest is None else bytes(response.prompt_digest).hex(),
        n_prompt_tokens=response.n_prompt_tokens,
        fingerprint=served.fingerprint,
        finish_reason=response.finish_reason or None,
        ending=response.ending or None,
        max_tokens=settings.max_tokens,
        stop=settings.stop,
        temperature=settings.temperature,
        is_adjusted=settings.is_adjusted,
        sampling=settings.sampling,
        constraint=settings.constraint,
        seed=response.seed_sent,
        bucket=served.bucket,
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """Two responses. has_other_prompt: the case's prompts differ; None if no prompt is judged."""

    baseline: KnownResponse
    candidate: KnownResponse
    has_other_prompt: bool | None = None

    @property
    def is_sampled(self) -> bool:
        return self.baseline.is_sampled or self.candidate.is_sampled

    @property
    def is_one_draw(self) -> bool:
        """Return whether one bucket was sent one seed above temperature 0 (with equal sampling)."""
        ours, theirs = self.baseline, self.candidate
        seeds, buckets = (ours.seed, theirs.seed), (ours.bucket, theirs.bucket)
        is_known = None not in (*seeds, *buckets, ours.fingerprint, theirs.fingerprint)
        return is_known and seeds[0] == seeds[1] and buckets[0] == buckets[1] and ours.is_sampled and theirs.is_sampled


def both_sides(pair: Pair, name: str) -> CauseFacts:
    return {f"{name}_baseline": getattr(pair.baseline, name), f"{name}_candidate": getattr(pair.candidate, name)}


def differing_facts(pair: Pair, *names: str) -> CauseFacts:
    """Return those of the named facts that are known on both sides and differ."""
    evidence: CauseFacts = {}
    for name in names:
        ours, theirs = getattr(pair.baseline, name), getattr(pair.candidate, name)
        if ours is not None and theirs is not None and ours != theirs:
            evidence |= both_sides(pair, name)
    return evidence
