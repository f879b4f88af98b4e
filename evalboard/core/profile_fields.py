"""Every field that a profile may set, with the check of its value."""

import math
from collections.abc import Callable
from typing import Any

Check = Callable[[Any], str | None]  # what is wrong with a value, or None


def whole(low: int, high: int) -> Check:
    def check(value: Any) -> str | None:
        if type(value) is int and low <= value <= high:
            return None
        return f"Must be a whole number from {low} to {high}."

    return check


def number(low: float, high: float) -> Check:
    def check(value: Any) -> str | None:
        if type(value) in (int, float) and math.isfinite(value) and low <= value <= high:
            return None
        return f"Must be a number from {low:g} to {high:g}."

    return check


def one_of(*words: str) -> Check:
    def check(value: Any) -> str | None:
        return None if isinstance(value, str) and value in words else f"Must be one of {', '.join(words)}."

    return check


def flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "Must be true or false."


def name(value: Any) -> str | None:
    if isinstance(value, str) and value.isidentifier() and len(value) <= 80:
        return None
    return "Must be one word."


def cache_bytes(value: Any) -> str | None:
    if value == "whole_batch" or (type(value) is int and 1 << 20 <= value <= 1 << 44):
        return None
    return 'Must be "whole_batch" or a number of bytes, at least 1 MiB.'


SAMPLING_FIELDS: dict[str, Check] = {
    "temperature": number(0, 2),
    "top_p": number(1e-6, 1),
    "top_k": whole(0, 1_000_000),
    "min_p": number(0, 1),
    "seed": whole(0, 2**63 - 1),
    "repetition_penalty": number(1e-6, 10),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "min_tokens": whole(0, 1_000_000),
    "ignore_eos": flag,
    "skip_special_tokens": flag,
    "logprobs": whole(2, 20),  # a margin needs two; vLLM's own cap is 20
}

ENGINE_FIELDS: dict[str, Check] = {
    "async_scheduling": flag,
    "attention_backend": name,
    "block_size": whole(8, 4096),
    "disable_custom_all_reduce": flag,
    "enable_chunked_prefill": flag,
    "enable_flashinfer_autotune": flag,
    "enable_prefix_caching": flag,
    "enforce_eager": flag,
    "gpu_memory_utilization": number(0.05, 0.99),
    "kv_cache_dtype": name,
    "kv_cache_memory_bytes": cache_bytes,
    "linear_backend": name,
    "max_num_batched_tokens": whole(64, 1 << 20),
    "max_num_seqs": whole(1, 4096),
    "moe_backend": name,
    "optimization_level": whole(0, 3),
    "performance_mode": one_of("balanced", "interactivity", "throughput"),
    "seed": whole(0, 2**63 - 1),
    "tensor_parallel_size": whole(1, 64),
}

# Refused with a reason of their own, since people will look for them here.
OF_THE_ENDPOINT = frozenset({"dtype", "quantization", "model", "tokenizer", "revision", "max_model_len"})
OF_THE_HOST = frozenset(
    {"generation_config", "load_format", "logprobs_mode", "max_logprobs", "speculative_config", "disable_log_stats"}
)

ENV_NAMES = frozenset(
    {
        "CUBLAS_WORKSPACE_CONFIG",
        "NCCL_ALGO",
        "NCCL_PROTO",
        "NVIDIA_TF32_OVERRIDE",
        "OMP_NUM_THREADS",
        "VLLM_COMPUTE_NANS_IN_LOGITS",
        "VLLM_CPU_ATTN_SPLIT_KV",
        "VLLM_ENABLE_INDUCTOR_MAX_AUTOTUNE",
        "VLLM_FLOAT32_MATMUL_PRECISION",
        "VLLM_KV_CACHE_LAYOUT",
        "VLLM_MARLIN_USE_ATOMIC_ADD",
        "VLLM_USE_AOT_COMPILE",
        "VLLM_USE_DEEP_GEMM",
        "VLLM_USE_FLASHINFER_SAMPLER",
        "VLLM_USE_V2_MODEL_RUNNER",
    }
)
