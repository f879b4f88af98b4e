"""Every field that a profile may set, with the check of its value."""

import json
import math
from collections.abc import Callable
from typing import Any

MAX_SWITCHES, MAX_SWITCHES_CHARS, MAX_SWITCH = 16, 2000, 2**53  # whole numbers that every JSON reader has exactly
MAX_TAG_CHARS = 80
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# What vLLM or the tokenizer itself says when a chat template is rendered.
RENDERERS_OWN = frozenset(
    {
        "add_generation_prompt",
        "chat_template",
        "continue_final_message",
        "conversation",
        "documents",
        "max_length",
        "messages",
        "padding",
        "return_assistant_tokens_mask",
        "return_dict",
        "return_tensors",
        "tokenize",
        "tokenizer_kwargs",
        "tools",
        "truncation",
    }
)

FieldCheck = Callable[[Any], str | None]  # what is wrong with a value, or None


def check_whole(low: int, high: int) -> FieldCheck:
    def check(value: Any) -> str | None:
        if type(value) is int and low <= value <= high:
            return None
        return f"Must be a whole number from {low} to {high}."

    return check


def check_number(low: float, high: float) -> FieldCheck:
    def check(value: Any) -> str | None:
        if type(value) in (int, float) and math.isfinite(value) and low <= value <= high:
            return None
        return f"Must be a number from {low:g} to {high:g}."

    return check


def check_one_of(*words: str) -> FieldCheck:
    def check(value: Any) -> str | None:
        return None if isinstance(value, str) and value in words else f"Must be one of {', '.join(words)}."

    return check


def check_flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "Must be true or false."


def check_name(value: Any) -> str | None:
    if isinstance(value, str) and value.isidentifier() and len(value) <= 80:
        return None
    return "Must be one word."


def check_cache_bytes(value: Any) -> str | None:
    if value == "whole_batch" or (type(value) is int and 1 << 20 <= value <= 1 << 44):
        return None
    return 'Must be "whole_batch" or a number of bytes, at least 1 MiB.'


def check_switches(value: Any) -> str | None:
    """Return the problem of `chat_template_kwargs` (variables of a chat template), None if it is valid."""
    if not isinstance(value, dict) or not 1 <= len(value) <= MAX_SWITCHES:
        return f'Must be an object of 1 to {MAX_SWITCHES} switches, such as {{"enable_thinking": false}}, or left out.'
    for name, switch in value.items():
        if not isinstance(name, str) or not name.isidentifier():
            return f"{str(name)[:80]!r} is no name of a template's variable: use letters, digits and _."
        if name == "reasoning_effort":
            return "reasoning_effort is a sampling field: set it next to chat_template_kwargs, not inside."
        if name in RENDERERS_OWN:
            return f"{name} is said by the engine; a profile cannot set it."
        is_number = isinstance(switch, int | float) and abs(switch) <= MAX_SWITCH  # a flag is a number too
        if not (is_number or (isinstance(switch, str) and switch.isprintable())):
            return f"{name} must be true, false, a number or a text on one line."
    if len(json.dumps(value)) > MAX_SWITCHES_CHARS:
        return f"Must have at most {MAX_SWITCHES_CHARS} characters as JSON."
    return None


def check_tags(value: Any) -> str | None:
    """Check `reasoning_tags`: the texts between which a model thinks."""
    if isinstance(value, dict) and set(value) == {"start", "end"} and value["start"] != value["end"]:
        texts = [tag for tag in value.values() if isinstance(tag, str) and tag.isprintable() and tag == tag.strip()]
        if len(texts) == 2 and all(1 <= len(tag) <= MAX_TAG_CHARS for tag in texts):
            return None
    example = '{"start": "<think>", "end": "</think>"}'
    return (
        f"Must be an object with start and end, two texts such as {example}: different, of 1 to {MAX_TAG_CHARS} "
        "characters and without spaces around them. Leave it out for a model that does not think."
    )


SAMPLING_FIELDS: dict[str, FieldCheck] = {
    "temperature": check_number(0, 2),
    "top_p": check_number(1e-6, 1),
    "top_k": check_whole(0, 1_000_000),
    "min_p": check_number(0, 1),
    "seed": check_whole(0, 2**63 - 1),
    "repetition_penalty": check_number(1e-6, 10),
    "presence_penalty": check_number(-2, 2),
    "frequency_penalty": check_number(-2, 2),
    "min_tokens": check_whole(0, 1_000_000),
    "ignore_eos": check_flag,
    "skip_special_tokens": check_flag,
    "logprobs": check_whole(2, 20),  # a margin needs two; vLLM's own cap is 20
}

# How a model is made to think, and between which texts it does. Left out by most: what a profile does not have is no
# part of its digest.
THINKING_FIELDS: dict[str, FieldCheck] = {
    "chat_template_kwargs": check_switches,
    "max_completion_tokens": check_whole(1, 1_000_000),
    "reasoning_effort": check_one_of(*EFFORTS),
    "reasoning_tags": check_tags,
}

ENGINE_FIELDS: dict[str, FieldCheck] = {
    "async_scheduling": check_flag,
    "attention_backend": check_name,
    "block_size": check_whole(8, 4096),
    "disable_custom_all_reduce": check_flag,
    "enable_chunked_prefill": check_flag,
    "enable_flashinfer_autotune": check_flag,
    "enable_prefix_caching": check_flag,
    "enforce_eager": check_flag,
    "gpu_memory_utilization": check_number(0.05, 0.99),
    "kv_cache_dtype": check_name,
    "kv_cache_memory_bytes": check_cache_bytes,
    "linear_backend": check_name,
    "max_num_batched_tokens": check_whole(64, 1 << 20),
    "max_num_seqs": check_whole(1, 4096),
    "moe_backend": check_name,
    "optimization_level": check_whole(0, 3),
    "performance_mode": check_one_of("balanced", "interactivity", "throughput"),
    "seed": check_whole(0, 2**63 - 1),
    "tensor_parallel_size": check_whole(1, 64),
}

# Refused with a reason of their own, since people will look for them here.
ENDPOINT_FIELDS = frozenset(
    {"dtype", "quantization", "model", "tokenizer", "revision", "max_model_len", "pipeline_parallel_size"}
)
HOST_FIELDS = frozenset(
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
