"""What the engine process says of itself: hardware, versions, model files, resolved settings.

Part of `vllm_host.py` and, like it, run by the engine's own interpreter, where Evalboard is not
installed: standard library, torch and vLLM only. Everything here is read back from inside the
process after the engine has started; nothing is copied from what was asked for. A value that this
version of vLLM does not have is None: unknown.
"""

import hashlib
import importlib.metadata
import os
import platform
import re
import socket
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Any

PACKAGES = ("triton", "transformers", "tokenizers", "safetensors")
FLASHINFER = ("flashinfer-python", "flashinfer")
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
RELEVANT = re.compile(r"(VLLM|CUBLAS|CUBLASLT|NCCL|CUDA|OMP|KMP|MKL|TORCH|PYTORCH|TRITON|FLASHINFER|NVIDIA_TF32)")
CPU_FLAGS = re.compile(r"avx|amx|fma|f16c|vnni|sve|asimd|bf16")
ADAPTER_FILE = re.compile(r"adapter_config\.json|adapter_model\.(safetensors|bin|pt)")
ADAPTER_PREFIX = "adapter/"  # of an adapter's files, next to those of its base
MODEL_SUFFIXES = {".safetensors", ".bin", ".pt", ".pth", ".json", ".jinja", ".model", ".txt", ".tiktoken", ".py"}
TOKENIZER_FILE = re.compile(
    r"tokenizer.*|vocab\.(json|txt)|merges\.txt|added_tokens\.json|special_tokens_map\.json|.*\.tiktoken"
)

# Name in the manifest -> path of the resolved value below engine.vllm_config.
RESOLVED = {
    "dtype": "model_config.dtype",
    "head_dtype": "model_config.head_dtype",
    "quantization": "model_config.quantization",
    "max_model_len": "model_config.max_model_len",
    "seed": "model_config.seed",
    "enforce_eager": "model_config.enforce_eager",
    "logprobs_mode": "model_config.logprobs_mode",
    "max_logprobs": "model_config.max_logprobs",
    "generation_config": "model_config.generation_config",
    "tokenizer_mode": "model_config.tokenizer_mode",
    "trust_remote_code": "model_config.trust_remote_code",
    "load_format": "load_config.load_format",
    "kv_cache_dtype": "cache_config.cache_dtype",
    "block_size": "cache_config.block_size",
    "n_kv_blocks": "cache_config.num_gpu_blocks",
    "kv_cache_memory_bytes": "cache_config.kv_cache_memory_bytes",
    "gpu_memory_utilization": "cache_config.gpu_memory_utilization",
    "enable_prefix_caching": "cache_config.enable_prefix_caching",
    "max_num_seqs": "scheduler_config.max_num_seqs",
    "max_num_active_seqs": "scheduler_config.max_num_active_seqs",
    "max_num_batched_tokens": "scheduler_config.max_num_batched_tokens",
    "enable_chunked_prefill": "scheduler_config.enable_chunked_prefill",
    "async_scheduling": "scheduler_config.async_scheduling",
    "scheduling_policy": "scheduler_config.policy",
    "tensor_parallel_size": "parallel_config.tensor_parallel_size",
    "pipeline_parallel_size": "parallel_config.pipeline_parallel_size",
    "data_parallel_size": "parallel_config.data_parallel_size",
    "disable_custom_all_reduce": "parallel_config.disable_custom_all_reduce",
    "optimization_level": "optimization_level.value",
    "performance_mode": "performance_mode",
    "compilation_mode": "compilation_config.mode",
    "compilation_backend": "compilation_config.backend",
    "cudagraph_mode": "compilation_config.cudagraph_mode",
    "max_cudagraph_capture_size": "compilation_config.max_cudagraph_capture_size",
    "enable_flashinfer_autotune": "kernel_config.enable_flashinfer_autotune",
    "linear_backend": "kernel_config.linear_backend",
    "moe_backend": "kernel_config.moe_backend",
    "flash_attn_version": "attention_config.flash_attn_version",
    "speculative_config": "speculative_config",
    "watermark_config": "watermark_config",
    "use_v2_model_runner": "use_v2_model_runner",
    "max_loras": "lora_config.max_loras",
    "max_lora_rank": "lora_config.max_lora_rank",
    "lora_dtype": "lora_config.lora_dtype",
}


def describe(code: dict[str, str]) -> dict[str, Any]:
    """Return hardware and versions without starting an engine. code: as for `manifest`."""
    return {"hardware": hardware(), "versions": versions(code), "n_cores": n_cores()}


def relevant_environment() -> dict[str, str]:
    """Return the present variables that may affect numbers, without secrets."""
    environment = {
        name: value for name, value in os.environ.items() if RELEVANT.match(name) and not SECRET.search(name)
    }
    if "LD_PRELOAD" in os.environ:
        environment["LD_PRELOAD"] = ":".join(
            sorted(Path(part).name for part in re.split("[ :]", os.environ["LD_PRELOAD"]))
        )
    return environment


def manifest(
    engine: Any,
    *,
    seats: int | None,
    room: int,
    model: dict[str, Any],
    code: dict[str, str],
    env: dict[str, str],
    pinned_env: list[str],
) -> dict[str, Any]:
    """Return the environment manifest of a started engine.

    `seats` is how many requests the host gives it at a time, None for all; `room` how many of full length its
    KV cache holds; `model` says which folder was loaded and what its files hold (see `model_files`); `code` what
    the installed packages hold (see `vllm_code`); `env` is what stood in the environment before vLLM was imported;
    `pinned_env` names the variables to read back now, since vLLM overrides some.
    """
    settings = resolved_settings(engine, seats, room)
    for name in pinned_env:
        settings[f"env.{name}"] = os.environ.get(name)
    return {
        "engine": settings,
        "versions": versions(code),
        "hardware": hardware((settings["tensor_parallel_size"] or 1) * (settings["pipeline_parallel_size"] or 1)),
        "env": env,
        "model": {
            **model,
            "tokenizer_digest": tokenizer_digest(model["files"]),
            "template_digest": template_digest(engine.get_tokenizer()),
            "context_length": settings["max_model_len"],
        },
        "host": host(),
    }


def resolved_settings(engine: Any, seats: int | None, room: int) -> dict[str, Any]:
    """Return the settings that the engine runs with, by the names of docs/node.md."""
    import torch
    from vllm import envs

    config = engine.vllm_config
    settings = {name: plain(read(config, path)) for name, path in RESOLVED.items()}
    backends = attention_backends(engine)
    core = engine.engine_core.engine_core
    settings |= {
        "attention_backend": "+".join(sorted(backends)) or None,
        "attention_layers": backends,
        "scheduler_class": type(core.scheduler).__name__,
        "executor": type(core.model_executor).__name__,
        "seats": seats,
        # With room for all that may be decoded at a time, at full length, nothing is ever preempted.
        "kv_cache_fits_batch": room >= (seats or settings["max_num_seqs"]),
        "batch_invariant": bool(envs.VLLM_BATCH_INVARIANT),
        "multiprocessing": bool(envs.VLLM_ENABLE_V1_MULTIPROCESSING),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "dynamo_disabled": os.environ.get("TORCHDYNAMO_DISABLE") == "1",
        "n_threads": torch.get_num_threads(),
    }
    return settings


def read(value: Any, path: str) -> Any:
    """Follow a dotted path; None where an attribute is missing."""
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def plain(value: Any) -> Any:
    """Convert a resolved value to JSON types."""
    if isinstance(value, Enum):  # before int: some of vLLM's enumerations are also numbers
        return value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value).removeprefix("torch.")


def attention_backends(engine: Any) -> dict[str, int]:
    """Return how many layers each attention backend serves, as the layers themselves say."""
    counts: dict[str, int] = {}
    for name in engine.collective_rpc(layer_backends)[0]:
        counts[name] = counts.get(name, 0) + 1
    return counts


def layer_backends(worker: Any) -> list[str]:
    """Run inside the engine's worker: the backend's name of each attention layer."""
    layers = worker.vllm_config.compilation_config.static_forward_context.values()
    return [layer.get_attn_backend().get_name() for layer in layers if hasattr(layer, "get_attn_backend")]


def versions(code: dict[str, str]) -> dict[str, str | None]:
    """Return the versions of what computes the numbers, with digests of the installed code."""
    import torch
    import vllm

    versions_found: dict[str, str | None] = {
        "python": platform.python_version(),
        "glibc": platform.libc_ver()[1] or None,
        "vllm": vllm.__version__,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": None,
        "nccl": None,
        "driver": None,
        "flashinfer": next(filter(None, map(package_version, FLASHINFER)), None),
    }
    versions_found |= {name: package_version(name) for name in PACKAGES}
    if torch.cuda.is_available():
        versions_found["cudnn"] = str(torch.backends.cudnn.version())
        versions_found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        versions_found["driver"] = ask_driver("driver_version")
    return versions_found | code


def package_version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def ask_driver(field: str) -> str | None:
    """Return one field of the first GPU, as the driver's own tool tells it."""
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader", "--id=0"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def hardware(n_gpus: int | None = None) -> dict[str, Any]:
    """Return the class of the hardware, not its identity. n_gpus: only the first GPUs; default all."""
    import torch

    if torch.cuda.is_available():
        count = torch.cuda.device_count() if n_gpus is None else n_gpus
        return {"kind": "cuda", "gpus": [gpu(index) for index in range(count)]}
    model, flags = processor()
    return {
        "kind": "cpu",
        "cpu_model": model,
        "cpu_isa": torch.backends.cpu.get_cpu_capability(),
        "cpu_flags": [flag for flag in flags if CPU_FLAGS.search(flag)],
        "machine": platform.machine(),
        "gpus": [],
    }


def gpu(index: int) -> dict[str, Any]:
    import torch

    device = torch.cuda.get_device_properties(index)
    return {
        "name": device.name,
        "capability": float(f"{device.major}.{device.minor}"),
        "n_multiprocessors": device.multi_processor_count,
        "memory_bytes": device.total_memory,
    }


def processor() -> tuple[str | None, list[str]]:
    """Return the name and the feature flags of the processor; Linux tells both in /proc/cpuinfo."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or None, []
    name = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)\s*:\s*(.+)$", text, re.MULTILINE)
    return name.group(1) if name else None, sorted(flags.group(1).split()) if flags else []


def n_cores() -> int:
    """Return how many cores this process may keep busy: its affinity, cut by a container's quota."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return cores
    return cores if quota == "max" else max(1, min(cores, int(quota) // int(period)))


def host() -> dict[str, Any]:
    """Return the identity of this machine, as evidence that is never part of a fingerprint."""
    import torch

    pages = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()
    packages = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
    return {
        "hostname": socket.gethostname(),
        "pid": os.getpid(),
        "executable": sys.executable,
        "kernel": platform.release(),
        "cpu_model": processor()[0],
        "n_cores": n_cores(),
        "free_memory_bytes": pages,
        "gpu_free_memory_bytes": [torch.cuda.mem_get_info(index)[0] for index in devices],
        "gpu_uuids": [str(torch.cuda.get_device_properties(index).uuid) for index in devices],
        "packages": dict(sorted(packages.items())),
    }


def model_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Return name → {"size", "sha256"} of the model's files: weights, settings, tokenizer, template."""
    paths = sorted(path for path in folder.iterdir() if path.suffix in MODEL_SUFFIXES and path.is_file())
    return {path.name: {"size": path.stat().st_size, "sha256": file_digest(path)} for path in paths}


def adapter_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what `model_files` does, for an adapter's weights and settings."""
    paths = sorted(path for path in folder.iterdir() if ADAPTER_FILE.fullmatch(path.name) and path.is_file())
    return {
        f"{ADAPTER_PREFIX}{path.name}": {"size": path.stat().st_size, "sha256": file_digest(path)} for path in paths
    }


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tokenizer_digest(files: dict[str, dict[str, Any]]) -> str:
    """Return one digest over the tokenizer's files."""
    parts = [f"{name}:{files[name]['sha256']}" for name in sorted(files) if TOKENIZER_FILE.fullmatch(name)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def template_digest(tokenizer: Any) -> str:
    """Return the digest of the chat template's text, empty where the model has none."""
    template = getattr(tokenizer, "chat_template", None)
    return hashlib.sha256(str(template).encode()).hexdigest() if template else ""
