"""What served a response, apart from the model: which part of an environment manifest is its identity.

The manifest (docs/engine.md) has the parts engine, versions, hardware, env, model and host. A
fingerprint covers what can move numbers or says which software did. Beside it stay what the batch
class already names, seeds, the model, and whatever tells one machine of a class from another.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.core import digest

# Named by the batch class.
BATCHING = {"max_num_seqs", "max_num_active_seqs", "max_cudagraph_capture_size", "batch_invariant"}
# Room, a matter of free memory. It moves numbers only through preemption, which every response records.
ROOM = {"n_kv_blocks", "kv_cache_memory_bytes", "kv_cache_fits_batch", "gpu_memory_utilization"}
# The seed is provenance of the response.
BESIDE = BATCHING | ROOM | {"seed"}
# Variables that say where things are or how threads wait, not how numbers are computed.
PLACEMENT = re.compile(
    r".*(_DIR|_ROOT|_PATH|_FOLDER|_HOME|_HOST|_IP|_PORT|_IFNAME|_LEVEL|_LOGGING|_PREFIX|_COLOR)(_.*)?"
    r"|VLLM_BATCH_INVARIANT|VLLM_NO_USAGE_STATS|VLLM_DO_NOT_TRACK|VLLM_CPU_OMP_THREADS_BIND|VLLM_CPU_KVCACHE_SPACE"
    r"|VLLM_DIST_IDENT|OMP_WAIT_POLICY|VLLM_CONFIGURE_LOGGING|CUDA_VISIBLE_DEVICES|CUDA_DEVICE_ORDER|NCCL_DEBUG.*"
)
DTYPE_UNKNOWN = "dtype unknown"


@dataclass(frozen=True, slots=True)
class Identity:
    """A fingerprint: what its digest covers, the digest (64 hexadecimal digits), and a name for people."""

    manifest: dict[str, Any]
    digest: str
    label: str


def split(manifest: Mapping[str, Any]) -> Identity:
    """Return the identity within an environment manifest."""
    covered = {
        "engine": {name: value for name, value in manifest["engine"].items() if _is_engine_identity(name)},
        "versions": dict(manifest["versions"]),
        "hardware": dict(manifest["hardware"]),
        "env": {name: value for name, value in manifest["env"].items() if not PLACEMENT.fullmatch(name)},
    }
    return Identity(manifest=covered, digest=digest.digest_json(covered), label=label(covered))


def label(covered: Mapping[str, Any]) -> str:
    """Name a fingerprint for people: "vLLM 0.32.0 · float32 · CPU AVX512"."""
    engine, hardware = covered["engine"], covered["hardware"]
    version = str(covered["versions"].get("vllm") or "of unknown version").partition("+")[0]
    parts = [f"vLLM {version}", engine.get("dtype") or DTYPE_UNKNOWN]
    if engine.get("quantization"):
        parts.append(engine["quantization"])
    return " · ".join([*parts, _hardware_label(hardware)])


def model_digest(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the digest of a model: every file's name, size and content. Where the folder stands is no part of it."""
    return digest.digest_json({name: [file["size"], file["sha256"]] for name, file in files.items()})


def _is_engine_identity(name: str) -> bool:
    return name not in BESIDE and not name.startswith("env.")  # those stand in the manifest's env part


def _hardware_label(hardware: Mapping[str, Any]) -> str:
    names = [gpu["name"] for gpu in hardware.get("gpus", [])]
    if not names:
        return f"CPU {hardware.get('cpu_isa') or ''}".rstrip()
    same = len(set(names)) == 1
    return f"{len(names)} × {names[0]}" if same and len(names) > 1 else " + ".join(names)
