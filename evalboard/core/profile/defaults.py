"""The profiles of every new installation (docs/profiles.md explains each setting)."""

from typing import Any

from evalboard.core.profile.profile import WHERE_HONOURED

GREEDY: dict[str, Any] = {
    "temperature": 0.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "seed": 42,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "min_tokens": 0,
    "ignore_eos": False,
    "skip_special_tokens": True,
    "logprobs": 2,
}
# Nothing here may depend on timing, on free memory or on what was decoded before.
STEADY: dict[str, Any] = {
    "seed": 42,
    "tensor_parallel_size": 1,
    "kv_cache_dtype": "auto",
    "enable_prefix_caching": False,
    "enable_chunked_prefill": True,
    "max_num_batched_tokens": 8192,
    "async_scheduling": False,
    "enforce_eager": True,
    "kv_cache_memory_bytes": "whole_batch",
}
STEADY_CPU: dict[str, Any] = {
    "engine": {"attention_backend": "CPU_ATTN"},
    "env": {"VLLM_CPU_ATTN_SPLIT_KV": "0", "VLLM_COMPUTE_NANS_IN_LOGITS": "1"},
}
STEADY_GPU: dict[str, Any] = {
    # FlashAttention 3, the default on Hopper, is reported not to be batch-invariant.
    "engine": {"attention_backend": "TRITON_ATTN", "enable_flashinfer_autotune": False},
    "env": {
        "VLLM_COMPUTE_NANS_IN_LOGITS": "1",
        "VLLM_FLOAT32_MATMUL_PRECISION": "highest",
        "VLLM_MARLIN_USE_ATOMIC_ADD": "0",
    },
}
# vLLM sets this one by itself where its kernels are batch-invariant.
OWN_CUBLAS: dict[str, Any] = {
    **STEADY_GPU,
    "env": {**STEADY_GPU["env"], "CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
}

DEFAULT_PROFILES: dict[str, dict[str, Any]] = {
    "pinned": {
        "title": "Pinned: one case at a time, everything fixed",
        "settings": {
            "batch_class": "alone",
            "sampling": GREEDY,
            "engine": STEADY,
            "cpu": STEADY_CPU,
            "cuda": OWN_CUBLAS,
        },
    },
    "invariant": {
        "title": "Invariant: batch-invariant kernels, many cases at a time",
        "settings": {
            "batch_class": "invariant",
            "sampling": GREEDY,
            "engine": {**STEADY, "max_num_seqs": 64},
            "cuda": STEADY_GPU,
            "requires": {"cuda_capability": 8.0},
        },
    },
    "fixed": {
        "title": "Fixed: the same eight cases share each batch every time",
        "settings": {
            "batch_class": "fixed",
            "group_size": 8,
            "sampling": GREEDY,
            "engine": STEADY,
            "cpu": STEADY_CPU,
            "cuda": OWN_CUBLAS,
        },
    },
    "fast": {
        "title": "Fast: vLLM's own defaults, a rough signal that is not comparable",
        "settings": {
            "batch_class": "mixed",
            "sampling": GREEDY,
            "engine": {"seed": 42, "enable_prefix_caching": True},
            "cpu": {
                "engine": {"max_num_seqs": 8, "enforce_eager": True, "kv_cache_memory_bytes": "whole_batch"},
                "env": {"VLLM_COMPUTE_NANS_IN_LOGITS": "1"},
            },
            "cuda": {
                "engine": {"async_scheduling": True},
                "env": {"VLLM_COMPUTE_NANS_IN_LOGITS": "1"},
            },
        },
    },
    "hosted": {
        "title": "Hosted: asks an external server for nothing that its newest check saw refused",
        "settings": {
            "batch_class": "mixed",
            # Room for thinking, which counts as part of an answer there; most models give no more.
            "sampling": {
                **GREEDY,
                "temperature": "default",
                "logprobs": WHERE_HONOURED,
                "max_completion_tokens": 16_384,
            },
            "engine": {},
        },
    },
}
