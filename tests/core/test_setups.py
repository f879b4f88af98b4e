"""What differs between two setups, field by field, and the setups between them."""

import copy
from itertools import combinations
from typing import Any

import pytest

from evalboard.contract.lab_kinds import FieldReach
from evalboard.contract.manifest import MovedField
from evalboard.core.lab import Setup, combine_setups, find_fields, find_unreachable, is_case_alone
from evalboard.core.profile import DEFAULT_PROFILES, parse_profile

PINNED = DEFAULT_PROFILES["pinned"]["settings"]
SERVING = {
    "model_path": "/models/a",
    "model_repo": "",
    "model_revision": "",
    "model_adapter": "",
    "dtype": "float32",
    "quantization": "",
    "max_model_len": 2048,
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "pool": "default",
}
LIMITS = {"version": 1, "max_tokens": 24, "stop": []}


def setup(*, limits: dict[str, Any] = LIMITS, profile: str = "pinned", **changes: Any) -> Setup:
    """A setup; changes by path, "sampling.top_k" as sampling__top_k, or of the endpoint."""
    serving, settings = dict(SERVING), copy.deepcopy(DEFAULT_PROFILES[profile]["settings"])
    for name, value in changes.items():
        *path, leaf = name.split("__")
        part: dict[str, Any] = settings if path else serving
        for each in path:
            part = part.setdefault(each, {})
        part[leaf] = value
    return Setup(serving, settings, limits)


def names(ours: Setup, theirs: Setup, *, kind: str = "cpu") -> list[str]:
    return [each.name for each in find_fields(ours, theirs, kind=kind)]


def test_each_setting_that_differs_is_a_field_and_what_is_the_same_is_none() -> None:
    theirs = setup(dtype="bfloat16", engine__enforce_eager=False, sampling__top_k=5, pool="next")
    fields = {each.name: each for each in find_fields(setup(), theirs, kind="cpu")}
    assert set(fields) == {"dtype", "engine.enforce_eager", "sampling.top_k", "worker"}
    assert (fields["dtype"].baseline, fields["dtype"].candidate) == ("float32", "bfloat16")
    assert fields["worker"].reach is FieldReach.WORKER
    assert names(setup(), setup()) == []


def test_settings_of_other_hardware_are_not_in_effect() -> None:
    theirs = setup(cuda__engine__attention_backend="FLASHINFER")
    assert names(setup(), theirs, kind="cpu") == []
    assert names(setup(), theirs, kind="cuda") == ["engine.attention_backend"]


def test_the_batching_is_one_field_with_all_that_belongs_to_it() -> None:
    [field] = [each for each in find_fields(setup(), setup(profile="fixed"), kind="cpu") if each.name == "batching"]
    assert field.baseline["batch_class"] == "alone"
    assert field.candidate["group_size"] == 8


def test_a_model_is_one_field_whatever_names_it() -> None:
    theirs = setup(model_path="", model_repo="acme/next", model_revision="f" * 40)
    assert names(setup(), theirs) == ["model"]
    assert combine_setups(setup(), theirs, ["model"]).serving == theirs.serving
    [adapted] = find_fields(setup(), setup(model_adapter="/models/tone"), kind="cpu")
    assert (adapted.name, adapted.candidate) == ("model", "/models/tone on /models/a")


@pytest.mark.parametrize("profile", ["pinned", "fixed", "fast", "invariant"])
def test_all_fields_turned_give_the_candidate_and_every_pair_is_a_valid_profile(profile: str) -> None:
    theirs = setup(profile=profile, dtype="bfloat16", sampling__top_k=5, limits={**LIMITS, "max_tokens": 48})
    fields = names(setup(), theirs)
    whole = combine_setups(setup(), theirs, fields)
    assert names(whole, theirs) == []
    assert (whole.serving, whole.limits) == (theirs.serving, theirs.limits)
    assert names(combine_setups(setup(), theirs, []), setup()) == []
    for pair in combinations(fields, 2):
        between = combine_setups(setup(), theirs, pair)
        assert sorted(names(setup(), between)) == sorted(pair)
        parse_profile(between.settings)


def test_what_no_setting_explains_is_not_reachable() -> None:
    moved = [MovedField("versions.vllm", "0.31", "0.32"), MovedField("engine.n_threads", 2, 4)]
    assert [each.name for each in find_unreachable(moved, ())] == ["versions.vllm", "engine.n_threads"]
    by_dtype = find_fields(setup(), setup(dtype="bfloat16"), kind="cpu")
    assert [each.name for each in find_unreachable(moved, by_dtype)] == ["versions.vllm"]
    by_pool = find_fields(setup(), setup(pool="next"), kind="cpu")
    assert find_unreachable(moved, by_pool) == ()


def test_chosen_cases_stand_for_themselves_only_where_no_other_moves_them() -> None:
    assert is_case_alone(PINNED, kind="cpu")
    assert not is_case_alone(setup(engine__enable_prefix_caching=True).settings, kind="cpu")
    assert not is_case_alone(DEFAULT_PROFILES["fast"]["settings"], kind="cpu")
