"""Facts common to a run's or a bucket's responses, for judging a pair (`cause`).

Runs and buckets come as stored records or out of a log in memory: the protocols name the attributes that are read.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Protocol

from evalboard.contract.facts import SettingFact, SettingsSeen
from evalboard.contract.parts import AdapterServed, ModelServed
from evalboard.contract.run import Draws
from evalboard.core.compare.known_pair import CHOOSING, UNKNOWN_SERVING, RequestSettings, ServingFacts
from evalboard.core.digest import canonical_json, digest_json
from evalboard.core.profile import (
    digest_adapter,
    find_temperature,
    is_known_by_log,
    is_same_model_name,
    is_serving_known,
    list_setting_facts,
    select_compared,
    select_stack,
)
from evalboard.core.scoring import reads_thinking
from evalboard.core.stats import name_logits

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
APART = timedelta(hours=1)  # a cache may keep an answer for minutes; an hour later another batch answers
MAX_USUAL = 5  # repeats of independent runs, the earliest: later runs do not change what a verdict was taken on
UNNAMED = "unnamed model"


class AnyRun(Protocol):
    """A run with suite_version (n_cases, max_tokens, stop, scorer.spec) and profile (settings)."""

    suite_version: Any
    profile: Any
    settings_seen: Any
    seed: Any
    is_one_draw: Any
    is_reported: Any
    is_log: Any


class AnyBucket(Protocol):
    """A bucket with model (name, revision, digest, template_digest, files) and fingerprint (manifest)."""

    pk: int
    batch_class: str
    model: Any
    fingerprint: Any


class Names(Protocol):
    """The merged names of models with unknown weights."""

    def of(self, name: str, /) -> str:
        """Return the name that all names of the model share."""
        ...


def digest_model_name(name: str, revision: str = "") -> str:
    """Return the replacement for a model's content digest: of its name and declared revision."""
    return digest_json({"imported model": name} | ({"revision": revision} if revision else {}))


def is_all_that_is_known(model: Any) -> bool:
    """Tell whether a model is known by its name, and perhaps a declared revision, and not by content."""
    is_named: bool = model.digest == digest_model_name(model.name, model.revision)
    return is_named


def request_settings(run: AnyRun) -> RequestSettings:
    """Return a run's settings and scoring. Reads its suite version, scorer and profile."""
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


def draws_of(run: AnyRun, repeats: Iterable[int] = ()) -> Draws:
    """Return what the run's repeats are, those of these indexes. Reads the run's profile."""
    temperature = find_temperature(setting_facts(run))
    return Draws(temperature, run.seed, is_one=run.is_one_draw, repeats=tuple(repeats), is_external=run.is_reported)


def setting_facts(run: AnyRun) -> tuple[SettingFact, ...]:
    """Return the known facts of the run's deciding settings. Reads its profile."""
    wanted = run.profile.settings["sampling"]
    return list_setting_facts(wanted, is_external=run.is_reported, is_logged=run.is_log, seen=settings_seen(run))


def settings_seen(run: AnyRun) -> SettingsSeen | None:
    """Return what its answers and calls showed of the run's settings, None before it has ended."""
    return None if run.settings_seen is None else SettingsSeen.from_stored(run.settings_seen)


def is_greedy_wanted(run: AnyRun) -> bool:
    """Tell whether logits were to decide each token: no temperature, penalty, grammar or forced call."""
    return setting_facts(run)[0].wanted == 0 and not request_settings(run).is_adjusted


def compared_settings(run: AnyRun) -> dict[str, Any]:
    """Return the known settings that a run must share with another to be compared."""
    return select_compared(setting_facts(run))


def limits_of(run: AnyRun) -> dict[str, Any]:
    """Return {"max_tokens", "stop"} of the run's responses, from the suite or the log."""
    if not run.is_log:
        return {"max_tokens": run.suite_version.max_tokens, "stop": list(run.suite_version.stop)}
    sent = run.profile.settings["sampling"]
    return {"max_tokens": sent.get("max_tokens"), "stop": sent.get("stop", [])}


def stack_of(bucket: AnyBucket) -> str | None:
    """Return the digest of the stack without a reported model name, None if unknown."""
    manifest = bucket.fingerprint.manifest
    if not is_serving_known(manifest):
        return None
    if not is_known_by_log(manifest):
        digest: str = bucket.fingerprint.digest
        return digest
    return digest_json(select_stack(manifest))


def fingerprint_of(bucket: AnyBucket) -> str | None:
    """Return the fingerprint's digest, None if the stack is unknown."""
    return bucket.fingerprint.digest if is_serving_known(bucket.fingerprint.manifest) else None


def served_beside(run: AnyRun, other: AnyRun, buckets: Iterable[AnyBucket], names: Names) -> dict[int, ServingFacts]:
    """Return bucket id → facts about the responses of two runs' buckets. Reads model and fingerprint.

    If only one run is reported, by a log or an external server, nothing is known of it: its names cannot be compared
    with digests.
    """
    is_one_reported = run.is_reported != other.is_reported
    return {
        bucket.pk: UNKNOWN_SERVING
        if is_one_reported and is_known_by_log(bucket.fingerprint.manifest)
        else _served_by(bucket, names)
        for bucket in buckets
    }


def find_other_model(bucket: AnyBucket, names: Names) -> str:
    """Return the model that answers name if it is not the requested one; else "".

    A dated version of an alias and a name that a person called the same are no other model.
    """
    wanted, answered = bucket.model.name, str(bucket.fingerprint.manifest.get("source", {}).get("model_reported", ""))
    if not answered or wanted == UNNAMED or is_same_model_name(wanted, answered):
        return ""
    return "" if names.of(wanted) == names.of(answered) else answered


def logits_of(bucket: AnyBucket) -> str | None:
    """Return the key of the logits' noise floor, None if unknown. Reads the fingerprint."""
    manifest = bucket.fingerprint.manifest
    return name_logits(manifest.get("engine", {}).get("dtype"), manifest.get("hardware", {}).get("kind"))


def needs_usual(run: AnyRun, column_digests: Iterable[Hashable]) -> bool:
    """Tell whether independent runs count: repeats of an external server or a log are equal to the bit."""
    is_reported: bool = run.is_reported
    return is_reported and max(Counter(column_digests).values(), default=0) > 1


def are_independent(run: Any, other: Any) -> bool:
    """Tell whether one run shows which repeats of the other are copies: equal, an hour apart.

    So does a log that a person imported as a second log of the same side.
    """
    names = ("suite_version_id", "endpoint_id", "profile_id")
    if run.pk == other.pk or any(getattr(run, name) != getattr(other, name) for name in names):
        return False
    if run.pk == other.second_of_id or other.pk == run.second_of_id:
        return True
    first, last = sorted((run, other), key=lambda each: each.ran_at)
    if first.finished_at is None or first.started_at is None or last.started_at is None:
        return False
    return last.started_at - first.finished_at >= APART and _may_be_one_bucket(run.bucket, other.bucket)


def _may_be_one_bucket(ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None or ours.model_id != theirs.model_id:
        return False
    return ours.pk == theirs.pk or not all(is_serving_known(each.fingerprint.manifest) for each in (ours, theirs))


def _name_constraint(sampling: Mapping[str, Any]) -> str | None:
    """Name what forbids tokens, "tool_choice required"; long values by the start of their digest."""
    parts = [
        f"{name} {value if isinstance(value, str) and len(value) <= MAX_NAMED else digest_json(value)[:8]}"
        for name, free in FREE.items()
        if (value := sampling.get(name, free[0])) not in free
    ]
    return ", ".join(parts) or None


def _plain(value: Any) -> float | str | bool:
    return value if isinstance(value, float | int | str) else canonical_json(value).decode()


def _served_by(bucket: AnyBucket, names: Names) -> ServingFacts:
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


def name_served(model: Any) -> ModelServed:
    """Return a model as answers have it. model: a record with name, digest and files."""
    digests = digest_adapter(model.files)
    adapter = AdapterServed(digest=digests[0], base_digest=digests[1]) if digests else None
    return ModelServed(name=model.name, digest=model.digest, adapter=adapter)


def _weights_digest(model: Any) -> str:
    """Return the digest of the model's weights, independent of file names."""
    weights = [file["sha256"] for name, file in model.files.items() if WEIGHTS.fullmatch(name)]
    if weights:
        return digest_json(sorted(weights))
    digest: str = model.digest
    return digest
