"""What all responses of a run, or of a bucket, have in common, as `core.compare.cause` judges a pair by it; and the
vocabularies that are stored.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from evalboard.contract.draws import Draws
from evalboard.contract.facts import SettingFact, SettingsSeen
from evalboard.core.compare import CHOOSING, UNKNOWN_SERVING, RequestSettings, ServingFacts, WordsById
from evalboard.core.digest import canonical_json, digest_json
from evalboard.core.profile import (
    find_temperature,
    is_known_by_log,
    is_not_greedy,
    is_same_model_name,
    is_serving_known,
    list_setting_facts,
    select_compared,
    select_stack,
)
from evalboard.core.scoring import reads_thinking
from evalboard.core.stats import name_logits
from evalboard.core.trace import Vocabulary
from runs.catalogue import OneNames, is_all_that_is_known
from runs.models import BucketRecord, EndpointRecord, Model, ProfileRecord, RunRecord, VocabularyRecord
from runs.served import UNNAMED

# What a model computes with. Tokenizers and chat templates show in the prompt's token ids, which are compared too.
WEIGHTS = re.compile(
    r".*\.(safetensors|bin|pt|pth|gguf|npz)|(.*/)?(adapter_|hf_quant_|quantize_|quantization_)?config\.json|params\.json"
)
# What constrains decoding, with the values by which it does not.
FREE = {
    "response_format": (None, '{"type":"text"}'),
    "tool_choice": (None, "auto", "none"),
    **dict.fromkeys(("structured_outputs", "guided_json", "guided_regex", "guided_choice"), (None,)),
    **dict.fromkeys(("guided_grammar", "grammar", "json_schema"), (None,)),
}
MAX_NAMED = 24  # characters of a value that stands as it is
GREEDY = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "min_tokens": 0}


def request_settings(run: RunRecord) -> RequestSettings:
    """Return how a run's responses were asked for and scored. Reads its suite version, scorer and profile."""
    sampling = run.profile.settings.get("sampling", {})
    adjusted = any(sampling.get(name, default) != default for name, default in GREEDY.items())
    constraint = _name_constraint(sampling)
    limits, known = limits_of(run), compared_settings(run)
    return RequestSettings(
        max_tokens=limits["max_tokens"],
        stop=tuple(limits["stop"]),
        temperature=draws_of(run).temperature,
        is_adjusted=adjusted or constraint is not None or bool(sampling.get("ignore_eos")),
        sampling={name: _plain(known[name]) for name in CHOOSING if name in known},
        is_thinking_scored=reads_thinking(run.suite_version.scorer.spec),
        constraint=constraint,
    )


def _name_constraint(sampling: Mapping[str, Any]) -> str | None:
    """Name what forbids tokens, "tool_choice required"; what is longer than a name by the start of its digest."""
    parts = [
        f"{name} {value if isinstance(value, str) and len(value) <= MAX_NAMED else digest_json(value)[:8]}"
        for name, free in FREE.items()
        if (value := sampling.get(name, free[0])) not in free
    ]
    return ", ".join(parts) or None


def _plain(value: Any) -> float | str | bool:
    return value if isinstance(value, float | int | str) else canonical_json(value).decode()


def draws_of(run: RunRecord, repeats: Iterable[int] = ()) -> Draws:
    """Return what the run's repeats are, those of these indexes. Reads the run's profile."""
    temperature = find_temperature(setting_facts(run))
    return Draws(temperature, run.seed, is_one=run.is_one_draw, repeats=tuple(repeats), is_external=run.is_reported)


def planned_draws(profile: ProfileRecord, endpoint: EndpointRecord, *, seed: int | None = None) -> Draws:
    """Return what the repeats of a run would be, as far as it is known before a call. seed: None: the profile's."""
    wanted = profile.settings["sampling"]
    facts = list_setting_facts(wanted, is_external=endpoint.is_remote, is_logged=False, seen=None)
    return Draws(find_temperature(facts), wanted.get("seed") if seed is None else seed, is_external=endpoint.is_remote)


def setting_facts(run: RunRecord) -> tuple[SettingFact, ...]:
    """Return what is known of the settings that decide the run's tokens. Reads its profile."""
    wanted = run.profile.settings["sampling"]
    return list_setting_facts(wanted, is_external=run.is_reported, is_logged=run.is_log, seen=settings_seen(run))


def settings_seen(run: RunRecord) -> SettingsSeen | None:
    """Return what its answers and calls showed of the run's settings, None before it has ended."""
    return None if run.settings_seen is None else SettingsSeen.from_stored(run.settings_seen)


def count_not_greedy(run: RunRecord) -> tuple[int, int] | None:
    """Return how many answers hold a token below the most likely one, of how many; None where that is not the rule."""
    seen = settings_seen(run)
    return (seen.n_not_greedy, seen.n_listed) if seen is not None and is_not_greedy(seen) else None


def compared_settings(run: RunRecord) -> dict[str, Any]:
    """Return the settings that a run must share with another to be compared, those that are not known left out."""
    return select_compared(setting_facts(run))


def limits_of(run: RunRecord) -> dict[str, Any]:
    """Return {"max_tokens", "stop"} of the run's responses: the suite's, or what a log says was sent."""
    if not run.is_log:
        return {"max_tokens": run.suite_version.max_tokens, "stop": list(run.suite_version.stop)}
    sent = run.profile.settings["sampling"]
    return {"max_tokens": sent.get("max_tokens"), "stop": sent.get("stop", [])}


def stack_of(bucket: BucketRecord) -> str | None:
    """Return what served, as one digest, None where nobody knows. The model that a log reports is no part of it."""
    manifest = bucket.fingerprint.manifest
    if not is_serving_known(manifest):
        return None
    if not is_known_by_log(manifest):
        digest: str = bucket.fingerprint.digest
        return digest
    return digest_json(select_stack(manifest))


def fingerprint_of(bucket: BucketRecord) -> str | None:
    """Return the fingerprint's digest, None where nobody knows what served."""
    return bucket.fingerprint.digest if is_serving_known(bucket.fingerprint.manifest) else None


def served_beside(run: RunRecord, other: RunRecord, buckets: Iterable[BucketRecord]) -> dict[int, ServingFacts]:
    """Return bucket id → what these buckets of two runs say of their responses. Reads model and fingerprint of each.

    Where only one of them is reported, by a log or a server of others, nothing is known of it: its names say nothing
    beside digests.
    """
    is_one_reported = run.is_reported != other.is_reported
    names = OneNames()
    return {
        bucket.pk: UNKNOWN_SERVING
        if is_one_reported and is_known_by_log(bucket.fingerprint.manifest)
        else _served_by(bucket, names)
        for bucket in buckets
    }


def _served_by(bucket: BucketRecord, names: OneNames) -> ServingFacts:
    model = bucket.model
    is_named = is_all_that_is_known(model)
    other = find_other_model(bucket, names)
    return ServingFacts(
        weights_digest=None if is_named else _weights_digest(model),
        model_name=names.of(other or model.name) if is_named else None,
        model_revision=(model.revision or None) if is_named else None,
        template_digest=model.template_digest or None,
        fingerprint=stack_of(bucket),
        bucket=bucket.pk,
    )


def find_other_model(bucket: BucketRecord, names: OneNames) -> str:
    """Return the model that answers name, where it is not the one that was asked for; "" elsewhere.

    A dated version of an alias and a name that a person called the same are no other model.
    """
    wanted, answered = bucket.model.name, str(bucket.fingerprint.manifest.get("source", {}).get("model_reported", ""))
    if not answered or wanted == UNNAMED or is_same_model_name(wanted, answered):
        return ""
    return "" if names.of(wanted) == names.of(answered) else answered


def _weights_digest(model: Model) -> str:
    """Return the digest of what the model computes with, whatever its files are called."""
    weights = [file["sha256"] for name, file in model.files.items() if WEIGHTS.fullmatch(name)]
    return digest_json(sorted(weights)) if weights else model.digest


def logits_of(bucket: BucketRecord) -> str | None:
    """Return the name of the logits, as a floor of noise has it, None where it is not known. Reads the fingerprint."""
    manifest = bucket.fingerprint.manifest
    return name_logits(manifest.get("engine", {}).get("dtype"), manifest.get("hardware", {}).get("kind"))


def _read_vocabulary(pk: int) -> Vocabulary:
    return Vocabulary.unpack(bytes(VocabularyRecord.objects.values_list("data", flat=True).get(pk=pk)))


WORDS = WordsById(_read_vocabulary)
stored_words = WORDS.read
