"""What is part of a fingerprint, what stays beside it, and what names a model."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.contract.manifest import MovedField
from evalboard.core.digest import digest_json
from evalboard.core.profile.fingerprint import (
    compare_manifests,
    digest_model,
    find_moved_fields,
    identify_log,
    identify_manifest,
    list_fields,
)

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
        ("versions", "vllm_code", "1" * 64),
        ("versions", "torch", "2.14.0"),
        ("versions", "driver", "590.0"),
        ("versions", "nccl", None),
        ("hardware", "gpus", [{"name": "NVIDIA H100", "capability": 9.0}]),
        ("env", "VLLM_MARLIN_USE_ATOMIC_ADD", "1"),
        ("env", "OMP_NUM_THREADS", "4"),
    ],
)
def test_what_can_move_numbers_is_part_of_the_fingerprint(part: str, name: str, value: Any) -> None:
    assert identify_manifest(changed(part, name, value)).digest != identify_manifest(MANIFEST).digest


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
    assert identify_manifest(changed(part, name, value)).digest == identify_manifest(MANIFEST).digest


def test_the_digest_covers_exactly_what_is_kept_with_it() -> None:
    identity = identify_manifest(MANIFEST)
    assert set(identity.manifest) == {"engine", "versions", "hardware", "env"}
    again = identify_manifest({**identity.manifest, "model": {}, "host": {}})
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
    assert identify_manifest(manifest).label == label


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ({"system_fingerprint": "fp-a"}, "fp-a"),
        ({"system_fingerprint": "fp-a", "backend": "east", "backend_from": "x-backend"}, "fp-a · east"),
        ({"backend": "west", "model_reported": "paint-1b"}, "west"),
        ({"system_fingerprint": "fp-a", "backend": "fp-a"}, "fp-a"),
        ({"system_fingerprint": "fp-a", "backend": "0a1b2c3d" * 8}, "fp-a · 0a1b2c3d"),
        ({"model_reported": "paint-1b"}, "unknown stack"),
    ],
)
def test_two_backends_of_one_fingerprint_have_two_labels(source: dict[str, str], label: str) -> None:
    assert identify_log(source, log="log").label == label


def test_a_model_is_its_files_and_not_their_order() -> None:
    config, weights = {"size": 2, "sha256": "aa"}, {"size": 9, "sha256": "bb"}
    digest = digest_model({"config.json": config, "model.safetensors": weights})
    assert digest == digest_model({"model.safetensors": weights, "config.json": config})
    assert digest != digest_model({"config.json": config, "model.safetensors": {"size": 9, "sha256": "cc"}})
    assert digest != digest_model({"config.json": config, "weights.safetensors": weights})


def test_nothing_has_moved_between_a_manifest_and_itself() -> None:
    found = compare_manifests(MANIFEST, MANIFEST)
    assert found.moved == ()
    assert ("versions.vllm", "0.32.0+cu129") in found.equal
    assert found.unknown == ("engine.quantization",)


@pytest.mark.parametrize(
    ("part", "name", "value", "wanted"),
    [
        ("versions", "vllm", "0.31.2", MovedField("versions.vllm", "0.32.0+cu129", "0.31.2")),
        ("versions", "nccl", None, MovedField("versions.nccl", "2.27", None)),
        ("engine", "quantization", "awq", MovedField("engine.quantization", None, "awq")),
        ("engine", "block_size", 32, MovedField("engine.block_size", None, 32)),
        ("engine", "tensor_parallel_size", True, MovedField("engine.tensor_parallel_size", 1, True)),
        ("engine", "tensor_parallel_size", 1.0, MovedField("engine.tensor_parallel_size", 1, 1.0)),
        ("env", "OMP_NUM_THREADS", "4", MovedField("env.OMP_NUM_THREADS", None, "4")),
    ],
)
def test_a_field_that_differs_is_named_with_both_values(part: str, name: str, value: Any, wanted: MovedField) -> None:
    assert find_moved_fields(MANIFEST, changed(part, name, value)) == (wanted,)


@pytest.mark.parametrize("other", [{}, {"versions": None}, {"versions": {"nccl": None}}])
def test_what_neither_side_knows_is_neither_moved_nor_equal(other: dict[str, Any]) -> None:
    found = compare_manifests({"versions": {"nccl": None}}, other)
    assert (found.moved, found.equal) == ((), ())
    assert found.unknown == ("versions.nccl",)


H200 = {"name": "NVIDIA H200", "capability": 9.0}
H100 = {"name": "NVIDIA H100", "capability": 9.0}


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ([H200] * 8, [H100] * 8, [("gpus.name", "NVIDIA H200", "NVIDIA H100")]),
        ([H200], [H200] * 2, [("n_gpus", 1, 2)]),
        ([H200] * 2, [H200, H100], [("gpus.name", "NVIDIA H200", ["NVIDIA H200", "NVIDIA H100"])]),
        ([], [H200], [("n_gpus", 0, 1), ("gpus.capability", None, 9.0), ("gpus.name", None, "NVIDIA H200")]),
        (None, [], [("gpus", None, [])]),
        (["a", "b"], ["a"], [("gpus", ["a", "b"], ["a"])]),
        ([{"a": [1]}], [{"a": [2]}], [("gpus", [{"a": [1]}], [{"a": [2]}])]),
    ],
)
def test_a_list_of_objects_is_read_by_column(one: Any, other: Any, wanted: list[tuple[str, Any, Any]]) -> None:
    found = find_moved_fields({"hardware": {"gpus": one}}, {"hardware": {"gpus": other}})
    assert [(each.field.removeprefix("hardware."), each.baseline, each.candidate) for each in found] == wanted


def test_a_tally_is_one_field() -> None:
    one, other = ({"engine": {"attention_layers": tally}} for tally in ({"A": 30}, {"A": 15, "B": 15}))
    assert find_moved_fields(one, other) == (MovedField("engine.attention_layers", {"A": 30}, {"A": 15, "B": 15}),)


def test_what_matters_most_comes_first() -> None:
    names = [
        "model.digest",
        "versions.vllm",
        "versions.torch",
        "versions.cuda",
        "engine.dtype",
        "engine.quantization",
        "hardware.gpus.name",
        "engine.attention_backend",
        "engine.block_size",
        "env.A",
        "something.else",
    ]
    nested: dict[str, Any] = {}
    for name in reversed(names):
        part, _, rest = name.partition(".")
        nested.setdefault(part, {})[rest] = name
    nested["hardware"] = {"gpus": [{"name": "A"}]}
    found = [each.field for each in find_moved_fields(nested, {})]
    assert [field for field in found if field in names] == names


def test_a_model_is_compared_by_the_same_function() -> None:
    one, other = ({"model": {"name": name, "digest": "a" * 64}} for name in ("acme-0330", "acme-0412"))
    assert find_moved_fields(one, other) == (MovedField("model.name", "acme-0330", "acme-0412"),)


SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd") | st.text(), inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.sampled_from(("engine", "versions", "hardware", "gpus", "a")), JSON, max_size=4)


@given(OBJECTS)
def test_an_object_never_differs_from_itself(one: dict[str, Any]) -> None:
    assert find_moved_fields(one, copy.deepcopy(one)) == ()


@given(OBJECTS, OBJECTS)
def test_swapping_the_sides_swaps_every_pair_and_moves_no_field(one: dict[str, Any], other: dict[str, Any]) -> None:
    there, back = compare_manifests(one, other), compare_manifests(other, one)
    assert there.unknown == back.unknown
    assert [name for name, _ in there.equal] == [name for name, _ in back.equal]
    swapped = [MovedField(each.field, each.candidate, each.baseline) for each in back.moved]
    assert list(map(repr, there.moved)) == list(map(repr, swapped))


@given(OBJECTS, OBJECTS)
def test_two_digests_never_part_without_a_field_that_tells(one: dict[str, Any], other: dict[str, Any]) -> None:
    found = compare_manifests(one, other)
    if digest_json(one) != digest_json(other):
        assert found.moved or found.unknown


@given(OBJECTS)
def test_every_field_has_one_value(one: dict[str, Any]) -> None:
    known = compare_manifests(one, one)
    assert sorted(map(repr, list_fields(one))) == sorted(
        map(repr, (*known.equal, *((name, None) for name in known.unknown)))
    )
