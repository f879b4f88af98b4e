"""One side of a pair as `core.cause` judges it, put together from what is stored of a response.

In three parts, so that a comparison of many responses builds what all of a run's have in common once.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evalboard.core import draws, fingerprint
from evalboard.core.cause import Side
from evalboard.core.draws import Draws
from runs.models import Bucket, Run

# What a model computes with. Tokenizers and chat templates show in the prompt's token ids, which are compared too.
WEIGHTS = re.compile(
    r".*\.(safetensors|bin|pt|pth|gguf|npz)|(.*/)?(adapter_|hf_quant_|quantize_|quantization_)?config\.json|params\.json"
)
GREEDY = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "min_tokens": 0}


@dataclass(frozen=True, slots=True)
class Asked:
    """How a run's responses were asked for; what a log does not say is None or empty.

    is_adjusted: more than the logits decided which token is chosen.
    """

    max_tokens: int | None
    stop: tuple[str, ...]
    temperature: float | None
    is_adjusted: bool


@dataclass(frozen=True, slots=True)
class Served:
    """What a bucket says of its responses; None is not known. `dtype` is that of the logits."""

    weights_digest: str | None
    template_digest: str | None
    fingerprint: str | None
    dtype: str | None


UNSERVED = Served(None, None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What one response says of itself, and its score. `prompt_digest` as stored."""

    text: str
    error_code: str
    finish_reason: str
    prompt_digest: bytes | memoryview | None
    n_prompt_tokens: int | None
    score: float | None
    scorer_digest: str | None


def asked_of(run: Run) -> Asked:
    """Reads the run's suite version and profile."""
    sampling = run.profile.settings.get("sampling", {})
    adjusted = any(sampling.get(name, default) != default for name, default in GREEDY.items())
    limits = limits_of(run)
    return Asked(
        max_tokens=limits["max_tokens"],
        stop=tuple(limits["stop"]),
        temperature=sampling.get("temperature"),
        is_adjusted=adjusted or bool(sampling.get("ignore_eos")),
    )


def draws_of(run: Run, repeats: Iterable[int] = ()) -> Draws:
    """What the run's repeats are, those of these indexes. Reads the run's profile."""
    temperature = draws.temperature_of(run.profile.settings["sampling"])
    return Draws(temperature, run.seed, is_one=run.is_one_draw, repeats=tuple(repeats))


def limits_of(run: Run) -> dict[str, Any]:
    """{"max_tokens", "stop"} that the run's responses were asked for with: the suite's, or what a log says was sent."""
    if run.source_id is None:
        return {"max_tokens": run.suite_version.max_tokens, "stop": list(run.suite_version.stop)}
    sent = run.profile.settings["sampling"]
    return {"max_tokens": sent.get("max_tokens"), "stop": sent.get("stop", [])}


def is_named_otherwise(run: Run, other: Run) -> bool:
    """Whether one run was read from a log and the other decoded: a log's names say nothing beside digests."""
    return (run.source_id is None) != (other.source_id is None)


def fingerprint_of(bucket: Bucket) -> str | None:
    """The fingerprint's digest, None where nobody knows what served."""
    return bucket.fingerprint.digest if fingerprint.is_known(bucket.fingerprint.manifest) else None


def served_of(bucket: Bucket | None) -> Served:
    """Reads the bucket's model and fingerprint."""
    if bucket is None:
        return UNSERVED
    files = {name: file for name, file in bucket.model.files.items() if WEIGHTS.fullmatch(name)}
    return Served(
        weights_digest=fingerprint.model_digest(files) if files else bucket.model.digest,
        template_digest=bucket.model.template_digest or None,
        fingerprint=fingerprint_of(bucket),
        dtype=bucket.fingerprint.manifest.get("engine", {}).get("dtype"),
    )


def side(asked: Asked, served: Served, answered: Answered | None) -> Side:
    """One side; `answered` is None where there is no response at all."""
    if answered is None:
        return Side(has_response=False)
    return Side(
        has_response=not answered.error_code,
        error_code=answered.error_code,
        text=answered.text,
        score=answered.score,
        scorer_digest=answered.scorer_digest,
        weights_digest=served.weights_digest,
        template_digest=served.template_digest,
        prompt_digest=None if answered.prompt_digest is None else bytes(answered.prompt_digest).hex(),
        n_prompt_tokens=answered.n_prompt_tokens,
        fingerprint=served.fingerprint,
        finish_reason=answered.finish_reason or None,
        max_tokens=asked.max_tokens,
        stop=asked.stop,
        temperature=asked.temperature,
        is_adjusted=asked.is_adjusted,
    )
