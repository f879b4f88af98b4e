"""One side of a pair as `core.cause` judges it, put together from what is stored of a response.

In three parts, so that a comparison of many responses builds what all of a run's have in common once.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evalboard.core import draws, fingerprint
from evalboard.core.cause import Side
from evalboard.core.digest import digest_json
from evalboard.core.draws import Draws
from runs.model_names import OneNames, is_all_that_is_known
from runs.models import Bucket, Model, Run

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
    """What a bucket says of its responses; None is not known.

    model_name, model_revision: where the weights are not known, None beside a digest of them.
    """

    weights_digest: str | None
    model_name: str | None
    model_revision: str | None
    template_digest: str | None
    fingerprint: str | None


UNSERVED = Served(None, None, None, None, None)


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


def stack_of(bucket: Bucket) -> str | None:
    """What served, as one digest, None where nobody knows. The model that a log reports is no part of it."""
    manifest = bucket.fingerprint.manifest
    if not fingerprint.is_known(manifest):
        return None
    if not fingerprint.is_reported(manifest):
        digest: str = bucket.fingerprint.digest
        return digest
    return digest_json(fingerprint.stack(manifest))


def fingerprint_of(bucket: Bucket) -> str | None:
    """The fingerprint's digest, None where nobody knows what served."""
    return bucket.fingerprint.digest if fingerprint.is_known(bucket.fingerprint.manifest) else None


def served_beside(run: Run, other: Run, buckets: Iterable[Bucket]) -> dict[int, Served]:
    """Bucket id → what these buckets of two runs say of their responses. Reads each one's model and fingerprint.

    Where one run was read from a log and the other decoded, nothing is known of the log's: its names say nothing
    beside digests.
    """
    is_one_log = (run.source_id is None) != (other.source_id is None)
    names = OneNames()
    return {
        bucket.pk: UNSERVED
        if is_one_log and fingerprint.is_reported(bucket.fingerprint.manifest)
        else _served_by(bucket, names)
        for bucket in buckets
    }


def _served_by(bucket: Bucket, names: OneNames) -> Served:
    model = bucket.model
    is_named = is_all_that_is_known(model)
    return Served(
        weights_digest=None if is_named else _weights_digest(model),
        model_name=names.of(model.name) if is_named else None,
        model_revision=(model.revision or None) if is_named else None,
        template_digest=model.template_digest or None,
        fingerprint=stack_of(bucket),
    )


def _weights_digest(model: Model) -> str:
    """The content of what the model computes with, whatever its files are called."""
    weights = [file["sha256"] for name, file in model.files.items() if WEIGHTS.fullmatch(name)]
    return digest_json(sorted(weights)) if weights else model.digest


def dtype_of(bucket: Bucket) -> str | None:
    """The dtype of the logits, None where it is not known. Reads the bucket's fingerprint."""
    found: str | None = bucket.fingerprint.manifest.get("engine", {}).get("dtype")
    return found


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
        model_name=served.model_name,
        model_revision=served.model_revision,
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
