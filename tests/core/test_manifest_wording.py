"""What moved between two manifests, in words."""

from typing import Any

import pytest

from evalboard.contract.manifest import MovedField
from evalboard.core.profile.fingerprint import find_moved_fields
from evalboard.wording.manifest import render_field_name, render_moved, render_sides, render_value


@pytest.mark.parametrize(
    ("field", "wanted"),
    [
        ("versions.vllm", "vLLM"),
        ("versions.torch", "torch"),
        ("engine.max_model_len", "max model len"),
        ("engine.n_threads", "threads"),
        ("env.OMP_NUM_THREADS", "OMP_NUM_THREADS"),
        ("hardware.gpus.name", "GPU"),
        ("something.new_here", "new here"),
        ("alone", "alone"),
    ],
)
def test_a_field_has_a_name_for_people(field: str, wanted: str) -> None:
    assert render_field_name(field) == wanted


@pytest.mark.parametrize(
    ("field", "known", "wanted"),
    [
        ("versions.nccl", None, "unknown"),
        ("env.OMP_NUM_THREADS", None, "not set"),
        ("engine.quantization", None, "none"),
        ("engine.enforce_eager", False, "no"),
        ("engine.flash_attn_version", 0, "0"),
        ("hardware.gpus.memory_bytes", 150_754_820_096, "150.8 GB"),
        ("hardware.gpus.name", ["A", "B"], "A, B"),
        ("hardware.gpus", [], "none"),
        ("engine.attention_layers", {"TRITON_ATTN": 30, "FLASH_ATTN": 2}, "2 FLASH_ATTN, 30 TRITON_ATTN"),
        ("model.digest", "ab" * 32, "abababab"),
        ("env.VLLM_X", "", "empty"),
    ],
)
def test_a_value_is_said(field: str, known: Any, wanted: str) -> None:
    assert render_value(field, known) == wanted


def test_of_long_lists_only_what_the_other_has_not_is_said() -> None:
    shared = [f"avx{n}" for n in range(20)]
    found = MovedField("hardware.cpu_flags", shared, [*shared, "amx_bf16", "amx_tile"])
    assert render_sides(found) == ("20 in both", "amx_bf16, amx_tile and 20 in both")
    assert render_moved([found]) == "CPU features (2 new)"
    assert render_moved([MovedField("hardware.cpu_flags", ["fma", *shared], [*shared[1:], "amx"])]) == (
        "CPU features (2 fewer and 1 new)"
    )
    swapped = MovedField("hardware.cpu_flags", shared, shared[::-1])
    assert render_sides(swapped) == (", ".join(shared), ", ".join(shared[::-1]))


def test_the_sentence_names_what_matters_most_and_counts_the_rest() -> None:
    one = {"engine": {"dtype": "bfloat16", "block_size": 16}, "versions": {"vllm": "0.31.2"}, "env": {"A": "x" * 99}}
    other = {"engine": {"dtype": "float32", "block_size": 32}, "versions": {"vllm": "0.32.0"}, "env": {}}
    found = find_moved_fields(one, other)
    assert render_moved(found, at_most=2) == "vLLM 0.31.2 → 0.32.0, dtype bfloat16 → float32, 2 more"
    assert render_moved(found).endswith(f"block size 16 → 32, A {'x' * 59}… → not set")
    assert render_moved(()) == ""
