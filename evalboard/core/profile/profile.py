"""Parse a profile's settings, refuse unfit hardware, and plan an engine for it (docs/profiles.md).

A profile is how cases are decoded. What its batch class decides (how many sequences share a step, whether kernels are
batch-invariant) cannot be set separately, so that the two cannot contradict each other.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalboard.core import digest
from evalboard.core.errors import InvalidInput
from evalboard.core.fields import (
    ENDPOINT_FIELDS,
    ENGINE_FIELDS,
    ENV_NAMES,
    HOST_FIELDS,
    SAMPLING_FIELDS,
    THINKING_FIELDS,
)
from evalboard.core.profile import self_test

BATCH_CLASSES = ("alone", "invariant", "fixed", "mixed")
# For logs and external servers, whose batching is unknown. No profile can request it.
OBSERVED = "observed"
NO_ENGINE = "none"  # the hardware kind of a worker without an engine, which only calls external servers
DTYPES = ("float32", "bfloat16", "float16")
INVARIANT_CAPABILITY = 8.0  # vLLM 0.32 says so in its documentation, and does not check it
MAX_GROUP_SIZE = 256
# Logprobs are asked for where the check before the run saw them honoured, and else are not.
WHERE_HONOURED = "where_honoured"
# What a profile may ask for by sending nothing. Only an external server has a default of its own.
UNSENT: Mapping[str, tuple[Any, ...]] = {"temperature": ("default",), "logprobs": (0, WHERE_HONOURED)}
# How long an answer of an external server may be with its thinking, in place of the suite's max_tokens.
LIMIT = "max_completion_tokens"
SIZES = ("tensor_parallel_size", "pipeline_parallel_size")  # of an endpoint: their product is its number of GPUs
MAX_SIZE = 64
SECTIONS = ("batch_class", "group_size", "sampling", "engine", "cpu", "cuda", "requires")
# Held by every plan, whatever the profile says (worker/vllm_start.py sets them).
ALWAYS_PINNED = {
    "generation_config": "vllm",
    "speculative_config": None,
    "watermark_config": None,
    "logprobs_mode": "raw_logprobs",
    "max_logprobs": 20,
    "scheduling_policy": "fcfs",
    "multiprocessing": False,
}


@dataclass(frozen=True, slots=True)
class Overlay:
    """Settings for one kind of hardware."""

    engine: Mapping[str, Any]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """Settings that have been checked.

    sampling: every field but max_tokens and stop, which are the suite's; of THINKING_FIELDS those that are given.
    """

    batch_class: str
    group_size: int | None
    sampling: Mapping[str, Any]
    engine: Mapping[str, Any]
    cpu: Overlay
    cuda: Overlay
    cuda_capability: float | None
    exact_seats: int | None = None  # of a replay under batch-invariant kernels: neither more nor fewer

    @property
    def batch_class_name(self) -> str:
        """Return the batch class as in bucket names, such as "fixed-8" for groups of 8."""
        return f"fixed-{self.group_size}" if self.batch_class == "fixed" else self.batch_class


@dataclass(frozen=True, slots=True)
class EnginePlan:
    """What an engine process is started with, and the pins it must report.

    engine, env: for worker/vllm_host.py. sampling: of every request, max_tokens and stop included.
    least_seats: how many sequences must have room in the KV cache at full length, or the engine does not start; up to
    the engine's max_num_seqs share a step where they have it too. None: vLLM shares steps and room as it likes.
    pins: wanted values by the names of the manifest's "engine" part. digest: of what needs a
    process of its own; sampling is not part of it, the batch class is.
    """

    engine: dict[str, Any]
    env: dict[str, str]
    sampling: dict[str, Any]
    batch_class: str
    group_size: int | None
    least_seats: int | None
    pins: dict[str, Any]
    digest: str


def parse_profile(settings: Mapping[str, Any]) -> ProfileSettings:
    """Check a profile's settings strictly. Raises InvalidInput whose fields name each path."""
    problems: dict[str, str] = {}
    if not isinstance(settings, Mapping):
        raise InvalidInput("The profile is not valid.", fields={"settings": "Must be an object."})
    for name in settings:
        if name not in SECTIONS:
            problems[str(name)] = f"There is no such setting; there are {', '.join(SECTIONS)}."
    batch_class = settings.get("batch_class")
    if batch_class not in BATCH_CLASSES:
        problems["batch_class"] = f"Must be one of {', '.join(BATCH_CLASSES)}."
    group_size = _group_size(settings, problems)
    sampling = _sampling(settings.get("sampling"), problems)
    engine = _engine(settings.get("engine", {}), "engine", batch_class, problems)
    overlays = {kind: _overlay(settings.get(kind, {}), kind, batch_class, problems) for kind in ("cpu", "cuda")}
    capability = _capability(settings.get("requires", {}), batch_class, problems)
    if problems:
        raise InvalidInput("The profile is not valid.", fields=problems)
    return ProfileSettings(
        str(batch_class), group_size, sampling, engine, overlays["cpu"], overlays["cuda"], capability
    )


def is_unsent(name: str, value: Any) -> bool:
    """Tell whether a setting means "send nothing": the server's own temperature, or no logprobs."""
    return any(type(value) is type(each) and value == each for each in UNSENT.get(name, ()))


def decide_logprobs(sampling: Mapping[str, Any], *, are_honoured: bool) -> dict[str, Any]:
    """Return settings that say whether logprobs are asked for, where the profile leaves it to the check."""
    if sampling.get("logprobs") != WHERE_HONOURED:
        return dict(sampling)
    return {**sampling, "logprobs": 2 if are_honoured else 0}


def split_sampling(sampling: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split complete sampling into (decoding settings, variables of the chat template)."""
    decoding = {name: value for name, value in sampling.items() if name not in THINKING_FIELDS}
    switches = dict(sampling.get("chat_template_kwargs", {}))
    if "reasoning_effort" in sampling:
        switches["reasoning_effort"] = sampling["reasoning_effort"]
    return decoding, switches


def find_size_refusal(hardwares: Iterable[Mapping[str, Any]], sizes: tuple[int, int], *, pool: str = "") -> str | None:
    """Return why no worker has the GPUs that an endpoint's sizes need; None if one has them.

    hardwares: of a pool's workers, or of one; nothing is refused without one. sizes: tensor_parallel_size and
    pipeline_parallel_size.
    """
    n_gpus = {len(each.get("gpus", ())) for each in hardwares if each.get("kind") != NO_ENGINE}
    n_needed = math.prod(sizes)
    if n_needed == 1 or not n_gpus or max(n_gpus) >= n_needed:
        return None
    named = [f"{name} {size}" for name, size in zip(SIZES, sizes, strict=True) if size > 1]
    need = f"{' with '.join(named)} needs {n_needed}"
    counts = " or ".join(map(str, sorted(n_gpus)))
    have = f"{counts} {'GPU' if counts == '1' else 'GPUs'}" if max(n_gpus) else "no GPU"
    return f"Pool {pool} has workers with {have}; {need}." if pool else f"This worker has {have}; {need}."


def find_profile_refusal(
    profile: ProfileSettings,
    hardware: Mapping[str, Any],
    *,
    host: str,
    self_test_result: Mapping[str, Any] | None,
    sizes: tuple[int, int] = (1, 1),
) -> str | None:
    """Return why this node cannot honour the profile, in a sentence or two; None if it can.

    sizes: of the endpoint, as in `find_size_refusal`.
    `hardware` is what worker.engines.vllm.describe returns, `self_test_result` what core.profile.self_test reads: the
    newest of this host's as it is now, None where it was not tested.
    """
    if hardware.get("kind") == NO_ENGINE:
        return "This worker has no engine of its own: it serves external endpoints only."
    if LIMIT in profile.sampling:
        return f"The profile sets {LIMIT}, which only external servers take: here the suite's max_tokens decides."
    if unsent := [name for name, value in profile.sampling.items() if is_unsent(name, value)]:
        return f"The profile leaves {' and '.join(unsent)} to the server, and only external servers take it."
    needed = profile.cuda_capability
    gpus = hardware.get("gpus", [])
    if needed is not None and hardware.get("kind") != "cuda":
        what = "batch-invariant kernels" if profile.batch_class == "invariant" else "what this profile requires"
        return (
            f"vLLM has {what} only on NVIDIA GPUs of compute capability {needed:.1f} or newer, and this worker "
            "decodes on a CPU."
        )
    if needed is not None:
        weak = next((gpu for gpu in gpus if gpu["capability"] < needed), None)
        if weak is not None:
            return (
                f"The profile needs GPUs of compute capability {needed:.1f} or newer; this worker's {weak['name']} "
                f"has {weak['capability']:.1f}."
            )
    parallel = _engine_settings(profile, hardware).get("tensor_parallel_size", 1)
    if hardware.get("kind") == "cuda" and parallel * sizes[1] > len(gpus):
        return f"The profile spreads a model over {parallel * sizes[1]} GPUs; this worker has {len(gpus)}."
    if profile.batch_class == "invariant":
        return self_test.find_self_test_refusal(self_test_result, host=host)
    return None


def plan_engine(
    profile: ProfileSettings,
    hardware: Mapping[str, Any],
    *,
    dtype: str,
    quantization: str | None,
    max_model_len: int,
    max_tokens: int,
    stop: Sequence[str],
    sizes: tuple[int, int] = (1, 1),
) -> EnginePlan:
    """Return the plan for an engine of this endpoint under this profile on this hardware.

    sizes: tensor_parallel_size and pipeline_parallel_size of the endpoint. The profile's tensor_parallel_size counts
    where the endpoint's is 1.
    Raises InvalidInput where the endpoint's dtype is not explicit, answers do not fit the context, or endpoint and
    profile name two sizes.
    """
    if dtype not in DTYPES:
        raise InvalidInput("The endpoint is not valid.", fields={"dtype": f"Must be one of {', '.join(DTYPES)}."})
    if max_tokens >= max_model_len:
        words = f"Answers of {max_tokens} tokens leave no room for a prompt in a context of {max_model_len}."
        raise InvalidInput("The run is not valid.", fields={"max_tokens": words})
    chosen = _engine_settings(profile, hardware)
    if "max_num_batched_tokens" in chosen:  # a prompt must fit one step, or it is cut and summed in another order
        chosen["max_num_batched_tokens"] = max(chosen["max_num_batched_tokens"], max_model_len)
    engine = {**chosen, "dtype": dtype, "quantization": quantization, "max_model_len": max_model_len}
    engine |= _sizes(chosen, sizes)
    env = _env(profile, hardware)
    batch_class = profile.batch_class_name
    least_seats = _least_seats(profile, engine)
    return EnginePlan(
        engine=engine,
        env=env,
        sampling={**profile.sampling, "max_tokens": max_tokens, "stop": list(stop)},
        batch_class=batch_class,
        group_size=profile.group_size,
        least_seats=least_seats,
        pins=_pins(profile, engine, env),
        digest=digest.digest_json(
            {"engine": engine, "env": env, "batch_class": batch_class, "least_seats": least_seats}
        ),
    )


def count_wanted_seats(profile: ProfileSettings, hardware: Mapping[str, Any]) -> int | None:
    """Return how many sequences an engine decodes at a time, memory permitting; None: vLLM decides.

    hardware: only its "kind" counts. The manifest has the seats of a started engine (core.profile.read_seats).
    """
    return _engine_settings(profile, hardware).get("max_num_seqs")


def set_batch_size(profile: ProfileSettings, size: int) -> ProfileSettings:
    """Return the profile with batches of exactly `size`, for a replay; other settings are unchanged.

    Batch-invariant kernels are not switched off: they promise that the size changes nothing.
    """
    if profile.batch_class == "invariant":
        return replace(profile, exact_seats=size)
    batch_class, group_size = ("alone", None) if size == 1 else ("fixed", size)
    return replace(profile, batch_class=batch_class, group_size=group_size)


def attest_pins(wanted: Mapping[str, Any], reported: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return {"name", "wanted", "found", "held"} for each pin, broken ones first, then by name.

    Pins are attested, not assumed. A value that the engine does not report is found as None with `held` false: unknown
    is never equal.
    """
    pins = [
        {
            "name": name,
            "wanted": value,
            "found": reported.get(name),
            "held": name in reported and _is_same(value, reported[name]),
        }
        for name, value in wanted.items()
    ]
    return sorted(pins, key=lambda pin: (pin["held"], pin["name"]))


def _engine_settings(profile: ProfileSettings, hardware: Mapping[str, Any]) -> dict[str, Any]:
    chosen = {**profile.engine, **_overlay_for(profile, hardware).engine}
    exact = _exact_seats(profile)
    if exact is not None:
        chosen["max_num_seqs"] = exact
    elif profile.batch_class == "invariant":  # larger batches than the self-test has measured are not vouched for
        chosen["max_num_seqs"] = min(chosen.get("max_num_seqs", self_test.MAX_TESTED_BATCH), self_test.MAX_TESTED_BATCH)
    return chosen


def _sizes(chosen: Mapping[str, Any], sizes: tuple[int, int]) -> dict[str, int]:
    """Return the engine's sizes that are not vLLM's own, 1. Raises InvalidInput."""
    own = chosen.get("tensor_parallel_size", 1)
    if 1 not in (own, sizes[0]) and own != sizes[0]:
        words = f"The endpoint says {sizes[0]}, and the profile {own}; take a profile that says 1 or nothing."
        raise InvalidInput("The run is not valid.", fields={"tensor_parallel_size": words})
    wanted = zip(SIZES, (max(own, sizes[0]), sizes[1]), strict=True)
    return {name: size for name, size in wanted if size > 1}


def _exact_seats(profile: ProfileSettings) -> int | None:
    """Count the sequences that the batch class promises to decode together, no more and no fewer."""
    return 1 if profile.batch_class == "alone" else profile.group_size or profile.exact_seats


def _least_seats(profile: ProfileSettings, engine: Mapping[str, Any]) -> int | None:
    if profile.batch_class == "mixed" and engine.get("kv_cache_memory_bytes") != "whole_batch":
        return None
    return _exact_seats(profile) or 1


def _env(profile: ProfileSettings, hardware: Mapping[str, Any]) -> dict[str, str]:
    env = {"VLLM_BATCH_INVARIANT": "1" if profile.batch_class == "invariant" else "0"}
    if hardware.get("kind") == "cpu":
        # The number of threads cuts sums into parts, so it is stated and never left to the machine's mood.
        env["OMP_NUM_THREADS"] = str(hardware.get("n_cores", 1))
    return env | dict(_overlay_for(profile, hardware).env)


def _overlay_for(profile: ProfileSettings, hardware: Mapping[str, Any]) -> Overlay:
    return profile.cuda if hardware.get("kind") == "cuda" else profile.cpu


def _pins(profile: ProfileSettings, engine: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the values the started engine must report: the requested ones and their consequences."""
    pins = {**ALWAYS_PINNED, **engine, "batch_invariant": profile.batch_class == "invariant"}
    if pins.get("enforce_eager"):
        pins |= {"compilation_mode": "NONE", "cudagraph_mode": "NONE"}
    if pins.get("kv_cache_memory_bytes") == "whole_batch":
        del pins["kv_cache_memory_bytes"]
        pins["kv_cache_fits_batch"] = True
    if "OMP_NUM_THREADS" in env:
        pins["n_threads"] = int(env["OMP_NUM_THREADS"])
    return pins | {f"env.{name}": value for name, value in env.items()}


def _group_size(settings: Mapping[str, Any], problems: dict[str, str]) -> int | None:
    size = settings.get("group_size")
    if settings.get("batch_class") != "fixed":
        if size is not None:
            problems["group_size"] = "Only the batch class fixed has groups."
        return None
    if type(size) is not int or not 2 <= size <= MAX_GROUP_SIZE:
        problems["group_size"] = f"Must be a whole number from 2 to {MAX_GROUP_SIZE}."
        return None
    return size


def _sampling(given: Any, problems: dict[str, str]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        problems["sampling"] = "Must be an object."
        return {}
    for name in given:
        if name not in SAMPLING_FIELDS | THINKING_FIELDS:
            is_suites = name in ("max_tokens", "stop")
            problems[f"sampling.{name}"] = "The suite says this." if is_suites else "There is no such setting."
    for name, check in (SAMPLING_FIELDS | THINKING_FIELDS).items():
        if name in given:
            words = None if is_unsent(name, given[name]) else check(given[name])
        else:
            words = None if name in THINKING_FIELDS else "Must be given: sampling is always sent in full."
        if words:
            problems[f"sampling.{name}"] = words
    return dict(given)


def _engine(given: Any, path: str, batch_class: Any, problems: dict[str, str]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        problems[path] = "Must be an object."
        return {}
    for name, value in given.items():
        words = _engine_problem(name, value, batch_class)
        if words:
            problems[f"{path}.{name}"] = words
    return dict(given)


def _engine_problem(name: str, value: Any, batch_class: Any) -> str | None:
    if name in ENDPOINT_FIELDS:
        return "The endpoint says this, never the profile."
    if name in HOST_FIELDS:
        return "This is the same for every profile and cannot be set."
    if name == "max_num_seqs" and batch_class in ("alone", "fixed"):
        return f"The batch class {batch_class} decides this."
    check = ENGINE_FIELDS.get(name)
    return check(value) if check else "There is no such setting, or it may not be set."


def _overlay(given: Any, kind: str, batch_class: Any, problems: dict[str, str]) -> Overlay:
    if not isinstance(given, Mapping):
        problems[kind] = "Must be an object."
        return Overlay({}, {})
    for name in given:
        if name not in ("engine", "env"):
            problems[f"{kind}.{name}"] = "There is no such setting; there are engine and env."
    env = given.get("env", {})
    if not isinstance(env, Mapping):
        problems[f"{kind}.env"] = "Must be an object."
        env = {}
    for name, value in env.items():
        if name not in ENV_NAMES:
            problems[f"{kind}.env.{name}"] = "This variable may not be set by a profile."
        elif not isinstance(value, str) or not value or "\0" in value:
            problems[f"{kind}.env.{name}"] = "Must be a text that is not empty."
    return Overlay(_engine(given.get("engine", {}), f"{kind}.engine", batch_class, problems), dict(env))


def _capability(given: Any, batch_class: Any, problems: dict[str, str]) -> float | None:
    """Return the required compute capability; batch-invariant kernels need one even if none is given."""
    least = INVARIANT_CAPABILITY if batch_class == "invariant" else None
    if not isinstance(given, Mapping) or not set(given) <= {"cuda_capability"}:
        problems["requires"] = "Must be an object with at most cuda_capability."
        return least
    if "cuda_capability" not in given:
        return least
    value = given["cuda_capability"]
    if type(value) not in (int, float) or not 1 <= value < 100:
        problems["requires.cuda_capability"] = "Must be a number such as 8.0."
        return least
    return max(float(value), least or 0.0)


def _is_same(wanted: Any, reported: Any) -> bool:
    """Compare by type too: True is not 1. Whole floats may come back as integers."""
    if isinstance(wanted, bool) or isinstance(reported, bool):
        return wanted is reported
    return bool(wanted == reported)


def order_key(run_id: int, *, repeat: int, case_index: int) -> bytes:
    """Return the key that shuffles a repeat's cases reproducibly.

    It depends on nothing else, so that an attempt that takes over continues in the same order. Two runs have different
    orders, and so have two repeats.
    """
    return digest.short_digest(digest.canonical_json(["order", run_id, repeat, case_index]))
