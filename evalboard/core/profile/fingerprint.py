"""Identify what served a response, apart from the model, by part of its environment manifest.

The manifest (docs/node.md) has the parts engine, versions, hardware, env, model and host. A
fingerprint covers what can move numbers or says which software did. Beside it stay what the batch
class already names, seeds, the model, and whatever tells one machine of a class from another.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.contract.manifest import EngineSeats, ManifestDifference, MovedField
from evalboard.core import digest

# Named by the batch class.
BATCHING = {"max_num_seqs", "seats", "max_num_active_seqs", "max_cudagraph_capture_size", "batch_invariant"}
# Room, a matter of free memory. It moves numbers only through preemption, which every response records.
ROOM = {"n_kv_blocks", "kv_cache_memory_bytes", "kv_cache_fits_batch", "gpu_memory_utilization"}
# They follow from the adapter, which is part of the model (`vllm_start.lora_settings`).
ADAPTING = {"max_loras", "max_lora_rank", "lora_dtype"}
# The seed is provenance of the response.
BESIDE = BATCHING | ROOM | ADAPTING | {"seed"}
ADAPTER_PREFIX = "adapter/"  # of an adapter's files among those of a model
# Variables that say where things are or how threads wait, not how numbers are computed.
PLACEMENT = re.compile(
    r".*(_DIR|_ROOT|_PATH|_FOLDER|_HOME|_HOST|_IP|_PORT|_IFNAME|_LEVEL|_LOGGING|_PREFIX|_COLOR)(_.*)?"
    r"|VLLM_BATCH_INVARIANT|VLLM_NO_USAGE_STATS|VLLM_DO_NOT_TRACK|VLLM_CPU_OMP_THREADS_BIND|VLLM_CPU_KVCACHE_SPACE"
    r"|VLLM_DIST_IDENT|OMP_WAIT_POLICY|VLLM_CONFIGURE_LOGGING|CUDA_VISIBLE_DEVICES|CUDA_DEVICE_ORDER|NCCL_DEBUG.*"
)
DTYPE_UNKNOWN = "dtype unknown"
# What in a log names the stack that answered, the most exact first. Both distinguish backends of one fingerprint.
NAMED_BY = ("system_fingerprint", "backend")
# What an identity covers instead where neither is known: whose answers they are.
NAMELESS = ("log", "run")
UNKNOWN_STACK = "unknown stack"
MAX_LABEL_CHARS = 120
LONG_DIGEST = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{24,}\b")  # gateways name a backend so; its beginning tells it
_DATE = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{3,8})$")  # "-2024-08-06", "-0613", "-002"
_VARIANT = re.compile(r"(-latest|:(free|nitro|floor|online|latest))$")  # of one model, as aliases and gateways name it
# Which field people ask for first, where two manifests differ; the longest name that a field begins with counts.
ORDER = (
    "model",
    "batch_class",
    "versions.vllm",
    "versions.vllm_code",
    "versions.vllm_commit",
    "versions.torch",
    "versions",
    "engine.dtype",
    "engine.quantization",
    "engine.head_dtype",
    "engine.kv_cache_dtype",
    "hardware.kind",
    "hardware.n_gpus",
    "hardware.gpus",
    "hardware.cpu_model",
    "hardware.cpu_isa",
    "hardware",
    "engine.attention_backend",
    "engine.attention_layers",
    "engine.flash_attn_version",
    "engine.linear_backend",
    "engine.moe_backend",
    "engine.compilation_mode",
    "engine.compilation_backend",
    "engine.cudagraph_mode",
    "engine.float32_matmul_precision",
    "engine.n_threads",
    "engine",
    "env",
)
TALLIES = {"attention_layers"}  # name → how many: read as one value, since a name that is not there is none


@dataclass(frozen=True, slots=True)
class Identity:
    """A fingerprint: the manifest its digest covers, the digest (64 hexadecimal digits), and a label."""

    manifest: dict[str, Any]
    digest: str
    label: str


def identify_manifest(manifest: Mapping[str, Any]) -> Identity:
    """Return the identity within an environment manifest."""
    covered = {
        "engine": {name: value for name, value in manifest["engine"].items() if _is_engine_identity(name)},
        "versions": dict(manifest["versions"]),
        "hardware": dict(manifest["hardware"]),
        "env": {name: value for name, value in manifest["env"].items() if not PLACEMENT.fullmatch(name)},
    }
    return Identity(manifest=covered, digest=digest.digest_json(covered), label=make_label(covered))


MIN_NAMED = 10  # answers that have a name; fewer may all differ because as many servers answered


def names_calls(n_distinct: int, n: int) -> bool:
    """Tell whether the names that n answers have are names of calls, not of servers: each has another one."""
    return n_distinct == n >= MIN_NAMED


def identify_log(source: Mapping[str, str], *, log: str = "", run: str = "") -> Identity:
    """Return the fingerprint of the stack behind a log or an external server.

    `source` has what is known of {"system_fingerprint", "backend", "backend_from", "model_reported"}. Without the first
    two the stack is unknown: the fingerprint then covers the name of the `log`, or of the `run` that made the calls, so
    that it is unique.
    """
    covered = {"source": dict(source)}
    if not is_serving_known(covered):
        covered["source"] |= {"run": run} if run else {"log": log}
    return Identity(manifest=covered, digest=digest.digest_json(covered), label=name_stack(source))


def select_stack(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a manifest that identifies the stack, without the model name from a log.

    Empty if the stack is unknown.
    """
    if not is_serving_known(manifest):
        return {}
    parts = dict(manifest)
    if "source" in parts:
        parts["source"] = {name: value for name, value in parts["source"].items() if name != "model_reported"}
    return parts


def name_stack(source: Mapping[str, str]) -> str:
    """Return the label of a reported stack: "fp_44709d6fcb · eu-west"."""
    named = [LONG_DIGEST.sub(r"\1", source[name]) for name in NAMED_BY if name in source]
    label = " · ".join(dict.fromkeys(named)) or UNKNOWN_STACK
    return label if len(label) <= MAX_LABEL_CHARS else f"{label[: MAX_LABEL_CHARS - 1]}…"


def is_same_model_name(requested: str, reported: str) -> bool:
    """Tell whether the reported model name matches the requested one, ignoring path, variant and date.

    An alias may be answered by a dated version and a dated version by its alias. Two dates are two models.
    """
    one, other = _plain_model_name(requested), _plain_model_name(reported)
    return one == other or one == _DATE.sub("", other) or other == _DATE.sub("", one)


def _plain_model_name(name: str) -> str:
    return _VARIANT.sub("", name.strip().rstrip("/").rpartition("/")[2].lower())


def is_known_by_log(manifest: Mapping[str, Any]) -> bool:
    """Tell whether the stack is known only from a log or an external server's own report."""
    return "source" in manifest


def is_serving_known(manifest: Mapping[str, Any]) -> bool:
    """Tell whether a manifest identifies the stack. If not, it equals nothing, not even itself."""
    source = manifest.get("source")
    return source is None or any(name in source for name in NAMED_BY)


def make_label(covered: Mapping[str, Any]) -> str:
    """Return a fingerprint's label: "vLLM 0.32.0 · float32 · CPU AVX512"."""
    engine, hardware = covered["engine"], covered["hardware"]
    version = str(covered["versions"].get("vllm") or "of unknown version").partition("+")[0]
    parts = [f"vLLM {version}", engine.get("dtype") or DTYPE_UNKNOWN]
    if engine.get("quantization"):
        parts.append(engine["quantization"])
    return " · ".join([*parts, _hardware_label(hardware)])


def digest_model(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a model's digest: every file's name, size and content, without the folder's path.

    A LoRA adapter's files are among them (ADAPTER_PREFIX), so that each adapter on a base is a model.
    """
    return digest.digest_json({name: [file["size"], file["sha256"]] for name, file in files.items()})


def digest_adapter(files: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    """Return the digests of a model's adapter and of its base, None where it has no adapter.

    The base's is the digest that the base has as a model of its own.
    """
    own = {name: file for name, file in files.items() if name.startswith(ADAPTER_PREFIX)}
    if not own:
        return None
    base = {name: file for name, file in files.items() if name not in own}
    return digest_model(own), digest_model(base)


def find_moved_fields(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> tuple[MovedField, ...]:
    """Return the fields that differ, those that matter most first. See `compare_manifests`."""
    return compare_manifests(baseline, candidate).moved


def compare_manifests(baseline: Mapping[str, Any], candidate: Mapping[str, Any]) -> ManifestDifference:
    """Compare two manifests, or other nested objects of JSON, field by field.

    A field's name is its path: "versions.vllm". A list of objects is read by column, "hardware.gpus.name" and
    "hardware.n_gpus", one value standing for all where all are the same. What is null or absent is unknown:
    against a known value it has moved, and against another unknown it is neither moved nor equal.
    """
    differing, equal, unknown = [], [], []
    for field, one, other in sorted(_paired("", baseline, candidate), key=lambda row: _rank(row[0])):
        if one is None and other is None:
            unknown.append(field)
        elif _is_same(one, other):
            equal.append((field, one))
        else:
            differing.append(MovedField(field, one, other))
    return ManifestDifference(tuple(differing), tuple(equal), tuple(unknown))


def list_fields(manifest: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return each field of a manifest with its value, named and ordered as in `compare_manifests`."""
    return tuple(
        sorted(((name, value) for name, value, _ in _paired("", manifest, manifest)), key=lambda f: _rank(f[0]))
    )


def _paired(path: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """Walk both sides at once, so that a part which only one side has still gets the same names."""
    name = path.rpartition(".")[2]
    if name not in TALLIES and _holds(dict, one, other):
        for key in {**(one or {}), **(other or {})}:
            below = f"{path}.{key}" if path else key
            yield from _paired(below, (one or {}).get(key), (other or {}).get(key))
        if (one == {} and other is None) or (one is None and other == {}):
            yield path, one, other
    elif _is_table(one, other):
        parent = path.removesuffix(name)
        yield f"{parent}n_{name}", _length(one), _length(other)
        for key in {key: None for row in [*(one or ()), *(other or ())] for key in row}:
            yield f"{path}.{key}", _column(one, key), _column(other, key)
    else:
        yield path, one, other


def _holds(kind: type, one: Any, other: Any) -> bool:
    """Tell whether each side has type `kind` or is unknown, and at least one is known."""
    sides = [side for side in (one, other) if side is not None]
    return bool(sides) and all(isinstance(side, kind) for side in sides)


def _is_table(one: Any, other: Any) -> bool:
    """Tell whether both sides are lists of flat objects, not all of them empty."""
    if not _holds(list, one, other):
        return False
    rows = [*(one or ()), *(other or ())]
    return bool(rows) and all(
        isinstance(row, dict) and not any(isinstance(value, dict | list) for value in row.values()) for row in rows
    )


def _length(rows: list[Any] | None) -> int | None:
    return None if rows is None else len(rows)


def _column(rows: list[dict[str, Any]] | None, key: str) -> Any:
    values = [row.get(key) for row in rows or ()]
    if all(_is_same(values[0], value) for value in values):
        return values[0] if values else None
    return values


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same JSON: 1 is not true, and 1.0 is not 1, as in the digest."""
    return digest.canonical_json(one) == digest.canonical_json(other)


def _rank(field: str) -> tuple[int, str]:
    name = field
    while name and name not in ORDER:
        name = name.rpartition(".")[0]
    return (ORDER.index(name) if name else len(ORDER), field)


def _is_engine_identity(name: str) -> bool:
    return name not in BESIDE and not name.startswith("env.")  # those stand in the manifest's env part


def _hardware_label(hardware: Mapping[str, Any]) -> str:
    names = [gpu["name"] for gpu in hardware.get("gpus", [])]
    if not names:
        return f"CPU {hardware.get('cpu_isa') or ''}".rstrip()
    same = len(set(names)) == 1
    return f"{len(names)} × {names[0]}" if same and len(names) > 1 else " + ".join(names)


def read_seats(manifest: Mapping[str, Any]) -> EngineSeats | None:
    """Return the seats of the process in a manifest.

    None where vLLM shares its steps as it likes (`mixed`), and where no process or an earlier Evalboard reported.
    """
    engine = manifest.get("engine", {})
    if engine.get("seats") is None:
        return None
    return EngineSeats(engine["max_num_seqs"], engine["seats"], engine["max_model_len"])
