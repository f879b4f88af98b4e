"""Fields of a manifest and what moved between two, in words for people."""

from collections.abc import Collection, Mapping, Sequence
from itertools import count
from typing import Any

from evalboard.contract.manifest import MovedField
from evalboard.wording.numbers import fixed, letter

ARROW = "→"
UNKNOWN = "unknown"
NAMES = {
    "batch_class": "batch class",
    "model": "model",
    "model.name": "model",
    "model.digest": "model digest",
    "versions.vllm": "vLLM",
    "versions.vllm_code": "vLLM code",
    "versions.vllm_commit": "vLLM commit",
    "versions.flashinfer_code": "FlashInfer code",
    "versions.cuda": "CUDA",
    "versions.cudnn": "cuDNN",
    "versions.nccl": "NCCL",
    "versions.python": "Python",
    "versions.flashinfer": "FlashInfer",
    "hardware.kind": "hardware",
    "hardware.machine": "machine",
    "hardware.cpu_model": "CPU",
    "hardware.cpu_isa": "CPU instruction set",
    "hardware.cpu_flags": "CPU features",
    "hardware.n_gpus": "number of GPUs",
    "hardware.gpus": "GPUs",
    "hardware.gpus.name": "GPU",
    "hardware.gpus.capability": "GPU capability",
    "hardware.gpus.n_multiprocessors": "GPU multiprocessors",
    "hardware.gpus.memory_bytes": "GPU memory",
    "sampling.chat_template_kwargs": "chat template switches",
    "engine.kv_cache_dtype": "KV cache dtype",
    "engine.cudagraph_mode": "CUDA graphs",
    "engine.moe_backend": "MoE backend",
}
# Where null is an answer: the engine says that it uses none.
NONE = {"engine.quantization", "engine.speculative_config", "engine.watermark_config"}
# Where null says that a request did not have it.
NOT_SENT = {
    "sampling.chat_template_kwargs",
    "sampling.max_completion_tokens",
    "sampling.reasoning_effort",
    "sampling.reasoning_tags",
}
BATCHINGS = {"alone": "size 1", "observed": UNKNOWN}
RAN = {"alone": "at batch size 1", "invariant": "with batch-invariant kernels", "mixed": "in batches as cases came"}
IN_NAMES = {"alone": "batch size 1", "observed": "batching unknown"}  # of buckets
LONG_LIST = 6
LONG_TEXT = 60
HEXADECIMAL = set("0123456789abcdef")
DIGEST_LENGTHS = (32, 64)


def describe_batching(batch_class: str) -> str:
    """Say how responses were batched, in a bucket's name: "batch size 1", "mixed"."""
    return IN_NAMES.get(batch_class, batch_class)


def render_field_name(field: str) -> str:
    """Name a field: "versions.vllm" is vLLM, "engine.max_model_len" max model len, a variable is itself."""
    if field in NAMES:
        return NAMES[field]
    part, _, rest = field.partition(".")
    if part == "env":
        return rest or "environment variables"
    return (rest or part).removeprefix("n_").replace("_", " ").replace(".", " ")


def render_value(field: str, known: Any) -> str:
    """Write one value; an unknown one is named as such, never left blank."""
    if known is None:
        if field.startswith("env.") or field in NOT_SENT:
            return "not set"
        return "none" if field in NONE else UNKNOWN
    if isinstance(known, bool):
        return "yes" if known else "no"
    if isinstance(known, int) and field.endswith("_bytes"):
        return f"{fixed(known / 1e9, 1)} GB"
    if isinstance(known, dict):
        return ", ".join(f"{_each(key, value)}" for key, value in sorted(known.items())) or "none"
    if isinstance(known, list):
        return ", ".join(render_value(field, member) for member in known) or "none"
    text = BATCHINGS.get(known, known) if field == "batch_class" else str(known)
    if len(text) in DIGEST_LENGTHS and set(text) <= HEXADECIMAL:
        return text[:8]
    return repr(text)[1:-1] if text else "empty"  # a line break, as in a stop text, would end the sentence


def name_batching(batch_class: str) -> str:
    """Name the batch class of a bucket: "batch size 1", "batching unknown", "mixed"."""
    return {"alone": "batch size 1", "observed": "batching unknown"}.get(batch_class, batch_class)


def render_batching(batch_class: str) -> str:
    """Say how a side ran under a batch class that is known: "at batch size 1"."""
    kind, _, size = batch_class.partition("-")
    return RAN.get(batch_class, f"in {kind} batches of {size}")


def render_sides(moved: MovedField) -> tuple[str, str]:
    """Say both values; of long lists only what the other side has not."""
    one, other = moved.baseline, moved.candidate
    n_shared = _n_shared(moved)
    if n_shared is None:
        return render_value(moved.field, one), render_value(moved.field, other)
    return _besides(one, other, n_shared), _besides(other, one, n_shared)


def render_moved(fields: Sequence[MovedField], *, at_most: int = 4) -> str:
    """List changes on one line: "vLLM 0.31.2 → 0.32.0, dtype bfloat16 → float32, 2 more"; "" for none."""
    parts = []
    for each in fields[:at_most]:
        parts.append(_long_list(each) or " ".join((render_field_name(each.field), *_ends(each))))
    if len(fields) > at_most:
        parts.append(f"{len(fields) - at_most} more")
    return ", ".join(parts)


def _ends(moved: MovedField) -> tuple[str, str, str]:
    one, other = (_shortened(side) for side in render_sides(moved))
    return one, ARROW, other


def _long_list(moved: MovedField) -> str:
    """Return how many members of a long list were added and removed; "" if it is no long list."""
    if (n_shared := _n_shared(moved)) is None:
        return ""
    gone, new = len(moved.baseline) - n_shared, len(moved.candidate) - n_shared
    counts = [f"{n} {word}" for n, word in ((gone, "fewer"), (new, "new")) if n]
    return f"{render_field_name(moved.field)} ({' and '.join(counts)})"


def _n_shared(moved: MovedField) -> int | None:
    """Count the members that two sets of words share; None unless one is long and they differ."""
    one, other = _words(moved.baseline), _words(moved.candidate)
    if one is None or other is None or one == other or max(len(one), len(other)) <= LONG_LIST:
        return None
    return len(one & other)


def _words(known: Any) -> set[str] | None:
    """Return a list of words without repetition; None for any other value."""
    if not isinstance(known, list) or not all(isinstance(member, str) for member in known):
        return None
    return set(known) if len(set(known)) == len(known) else None


def _each(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"{key} {'on' if value else 'off'}"
    return f"{value} {key}" if isinstance(value, int) else f"{key} {value}"


def _besides(own: list[Any], others: list[Any], n_shared: int) -> str:
    extra = ", ".join(str(member) for member in own if member not in others)
    return f"{extra} and {n_shared} in both" if extra else f"{n_shared} in both"


def _shortened(text: str) -> str:
    return text if len(text) <= LONG_TEXT else f"{text[: LONG_TEXT - 1]}…"


def name_backend(manifest: Mapping[str, Any], others: Collection[str]) -> str:
    """Return what a backend is called: the server's own name, else the first free letter.

    manifest: of its fingerprint. others: the names of the other backends of its endpoint, or of the compared logs.
    """
    source = manifest.get("source") or {}
    own = source.get("backend") or source.get("system_fingerprint")
    names = (letter(n) if not own else own if not n else f"{own} ({n + 1})" for n in count())
    return next(name for name in names if name not in others)
