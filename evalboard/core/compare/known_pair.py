"""What is known of the two responses of a pair, and which of it differs."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownResponse:
    """What is known of one side's response; None is "not known". Digests are hexadecimal.

    weights_digest covers what the model computes with, but not its chat template, which has its own. Where nobody knows
    it, model_revision is the revision that was declared, and model_name what the model goes by; else both are None.
    temperature 0 says that top-1 must be chosen, unless is_adjusted: penalties, a bias or a constraint took part.
    sampling: those of CHOOSING that are known, each a number, a word or a flag; seed: what was sent with the call.
    bucket: what tells one bucket from another. n_reasoning_tokens: of the trace, before the answer, which is `text`;
    is_thinking_scored: its scorer reads them.
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
    max_tokens: int | None = None
    stop: tuple[str, ...] | None = None
    temperature: float | None = None
    is_adjusted: bool = False
    sampling: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    bucket: int | None = None

    @property
    def is_sampled(self) -> bool:
        return self.temperature is not None and self.temperature > 0


@dataclass(frozen=True, slots=True)
class Pair:
    baseline: KnownResponse
    candidate: KnownResponse

    @property
    def is_sampled(self) -> bool:
        return self.baseline.is_sampled or self.candidate.is_sampled

    @property
    def is_one_draw(self) -> bool:
        """Whether one bucket was sent one seed at a temperature above 0; that sampling is the same is known before."""
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
