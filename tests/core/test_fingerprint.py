"""What is part of a fingerprint, what stays beside it, and what names a model."""

import copy
from typing import Any

import pytest

from evalboard.core.fingerprint import model_digest, split

MANIFEST: dict[str, Any] = {
    "engine": {
        "dtype": "bfloat16",
        "quantization": None,
        "attention_backend": "TRITON_ATTN",
        "enable_prefix_caching": False,
        "tensor_parallel_size": 1,
        "max_num_seqs": 1,
        "batch_invariant": False,
        "n_kv_blocks": 130,
        "kv_cache_memory_bytes": 1 << 28,
        "seed": 42,
        "env.VLLM_BATCH_INVARIANT": "0",
    },
    "versions": {"vllm": "0.32.0+cu129", "torch": "2.13.0", "driver": "580.1", "nccl": "2.27"},
    "hardware": {"kind": "cuda", "gpus": [{"name": "NVIDIA H200", "capability": 9.0}]},
    "env": {"VLLM_MARLIN_USE_ATOMIC_ADD": "0", "CUDA_VISIBLE_DEVICES": "3", "VLLM_BATCH_INVARIANT": "0"},
    "model": {"files": {}, "path": "/models/a"},
    "host": {"hostname": "gpu-7", "gpu_uuids": ["GPU-1"], "packages": {"vllm": "0.32.0"}, "free_memory_bytes": 1},
}


def changed(part: str, name: str, value: Any) -> dict[str, Any]:
    manifest = copy.deepcopy(MANIFEST)
    manifest[part][name] = value
    return manifest


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("engine", "dtype", "float16"),
        ("engine", "quantization", "awq"),
        ("engine", "attention_backend", "FLASH_ATTN"),
        ("engine", "enable_prefix_caching", True),
        ("engine", "tensor_parallel_size", 2),
        ("engine", "block_size", 32),
        ("versions", "vllm", "0.33.0"),
        ("versions", "torch", "2.14.0"),
        ("versions", "driver", "590.0"),
        ("versions", "nccl", None),
        ("hardware", "gpus", [{"name": "NVIDIA H100", "capability": 9.0}]),
        ("env", "VLLM_MARLIN_USE_ATOMIC_ADD", "1"),
        ("env", "OMP_NUM_THREADS", "4"),
    ],
)
def test_what_can_move_numbers_is_part_of_the_fingerprint(part: str, name: str, value: Any) -> None:
    assert split(changed(part, name, value)).digest != split(MANIFEST).digest


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("engine", "max_num_seqs", 64),
        ("engine", "batch_invariant", True),
        ("engine", "n_kv_blocks", 999),
        ("engine", "kv_cache_memory_bytes", 1),
        ("engine", "seed", 7),
        ("engine", "env.VLLM_BATCH_INVARIANT", "1"),
        ("env", "VLLM_BATCH_INVARIANT", "1"),
        ("env", "CUDA_VISIBLE_DEVICES", "0"),
        ("env", "VLLM_CACHE_ROOT", "/elsewhere"),
        ("env", "TORCHINDUCTOR_CACHE_DIR", "/elsewhere"),
        ("env", "OMP_WAIT_POLICY", "PASSIVE"),
        ("env", "NCCL_SOCKET_IFNAME", "eth1"),
        ("env", "VLLM_LOGGING_LEVEL", "DEBUG"),
        ("model", "path", "/models/b"),
        ("host", "hostname", "gpu-8"),
        ("host", "gpu_uuids", ["GPU-2"]),
        ("host", "packages", {}),
        ("host", "free_memory_bytes", 2),
    ],
)
def test_batching_seeds_and_the_machine_stay_beside_it(part: str, name: str, value: Any) -> None:
    assert split(changed(part, name, value)).digest == split(MANIFEST).digest


def test_the_digest_covers_exactly_what_is_kept_with_it() -> None:
    identity = split(MANIFEST)
    assert set(identity.manifest) == {"engine", "versions", "hardware", "env"}
    again = split({**identity.manifest, "model": {}, "host": {}})
    assert again == identity


@pytest.mark.parametrize(
    ("manifest", "label"),
    [
        (MANIFEST, "vLLM 0.32.0 · bfloat16 · NVIDIA H200"),
        (changed("engine", "quantization", "awq"), "vLLM 0.32.0 · bfloat16 · awq · NVIDIA H200"),
        (changed("hardware", "gpus", [{"name": "A"}] * 4), "vLLM 0.32.0 · bfloat16 · 4 × A"),
        (changed("hardware", "gpus", [{"name": "A"}, {"name": "B"}]), "vLLM 0.32.0 · bfloat16 · A + B"),
        ({**MANIFEST, "hardware": {"gpus": [], "cpu_isa": "AVX512"}}, "vLLM 0.32.0 · bfloat16 · CPU AVX512"),
        (changed("versions", "vllm", None), "vLLM of unknown version · bfloat16 · NVIDIA H200"),
    ],
)
def test_the_label_tells_people_what_it_is(manifest: dict[str, Any], label: str) -> None:
    assert split(manifest).label == label


def test_a_model_is_its_files_and_not_their_order() -> None:
    config, weights = {"size": 2, "sha256": "aa"}, {"size": 9, "sha256": "bb"}
    digest = model_digest({"config.json": config, "model.safetensors": weights})
    assert digest == model_digest({"model.safetensors": weights, "config.json": config})
    assert digest != model_digest({"config.json": config, "model.safetensors": {"size": 9, "sha256": "cc"}})
    assert digest != model_digest({"config.json": config, "weights.safetensors": weights})
