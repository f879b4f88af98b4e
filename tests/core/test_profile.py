"""Profiles: what is refused, what the batch class decides, and what the engine is held to."""

import copy
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.core.fields import ENGINE_FIELDS, ENV_NAMES, SAMPLING_FIELDS, THINKING_FIELDS
from evalboard.core.profile.defaults import DEFAULT_PROFILES
from evalboard.core.profile.profile import (
    BATCH_CLASSES,
    SECTIONS,
    EnginePlan,
    count_wanted_seats,
    find_profile_refusal,
    find_size_refusal,
    parse_profile,
    plan_engine,
    set_batch_size,
    split_sampling,
)
from evalboard.core.profile.self_test import MAX_TESTED_BATCH
from tests import self_tests

CPU = {"kind": "cpu", "gpus": [], "n_cores": 6}
H100 = {"name": "NVIDIA H100", "capability": 9.0}
V100 = {"name": "Tesla V100", "capability": 7.0}
PASSED = self_tests.result(device="cuda")


def cuda(*gpus: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "cuda", "gpus": list(gpus), "n_cores": 32}


def settings(slug: str = "pinned", **changes: Any) -> dict[str, Any]:
    return copy.deepcopy(DEFAULT_PROFILES[slug]["settings"]) | changes


def plan(slug: str = "pinned", hardware: dict[str, Any] = CPU, **changes: Any) -> EnginePlan:
    asked = {"dtype": "float32", "quantization": None, "max_model_len": 2048, "max_tokens": 24, "stop": ("\n",)}
    return plan_engine(parse_profile(settings(slug)), hardware, **(asked | changes))


def refused(given: dict[str, Any], hardware: dict[str, Any], self_test: Any = PASSED) -> str | None:
    return find_profile_refusal(parse_profile(given), hardware, host="node-1", self_test_result=self_test)


def problems(given: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as caught:
        parse_profile(given)
    return caught.value.fields


@pytest.mark.parametrize("slug", DEFAULT_PROFILES)
def test_the_default_profiles_are_valid(slug: str) -> None:
    assert parse_profile(settings(slug)).batch_class in ("alone", "invariant", "fixed", "mixed")


@pytest.mark.parametrize(
    ("slug", "name"), [("pinned", "alone"), ("invariant", "invariant"), ("fixed", "fixed-8"), ("fast", "mixed")]
)
def test_the_batch_class_is_named_as_buckets_name_it(slug: str, name: str) -> None:
    assert parse_profile(settings(slug)).batch_class_name == name


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"batch_class": "lonely"}, "batch_class"),
        ({"model": "other"}, "model"),
        ({"group_size": 4}, "group_size"),
        ({"batch_class": "fixed"}, "group_size"),
        ({"batch_class": "fixed", "group_size": True}, "group_size"),
        ({"sampling": None}, "sampling"),
        ({"engine": {"dtype": "float16"}}, "engine.dtype"),
        ({"engine": {"quantization": "awq"}}, "engine.quantization"),
        ({"engine": {"load_format": "dummy"}}, "engine.load_format"),
        ({"engine": {"trust_remote_code": True}}, "engine.trust_remote_code"),
        ({"engine": {"max_num_seqs": 1}}, "engine.max_num_seqs"),
        ({"engine": {"enforce_eager": 1}}, "engine.enforce_eager"),
        ({"engine": []}, "engine"),
        ({"cpu": {"env": {"LD_PRELOAD": "other.so"}}}, "cpu.env.LD_PRELOAD"),
        ({"cpu": {"env": {"OMP_NUM_THREADS": 2}}}, "cpu.env.OMP_NUM_THREADS"),
        ({"cuda": {"env": {"VLLM_BATCH_INVARIANT": "1"}}}, "cuda.env.VLLM_BATCH_INVARIANT"),
        ({"cuda": {"argv": []}}, "cuda.argv"),
        ({"requires": {"cuda_capability": "8.0"}}, "requires.cuda_capability"),
        ({"requires": {"memory": 1}}, "requires"),
    ],
)
def test_a_setting_that_may_not_be_is_refused_by_its_path(change: dict[str, Any], path: str) -> None:
    assert path in problems(settings() | change)


@pytest.mark.parametrize("given", [None, [], "pinned", 3])
def test_settings_that_are_no_object_are_refused(given: Any) -> None:
    assert problems(given)


@pytest.mark.parametrize("name", DEFAULT_PROFILES["pinned"]["settings"]["sampling"])
def test_every_sampling_field_must_be_given(name: str) -> None:
    given = settings()
    del given["sampling"][name]
    assert list(problems(given)) == [f"sampling.{name}"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", True),
        ("top_p", 0),
        ("logprobs", 1),
        ("logprobs", 21),
        ("seed", None),
        ("seed", 2**63),
        ("max_tokens", 5),
        ("stop", []),
        ("best_of", 2),
        ("chat_template_kwargs", {}),
        ("chat_template_kwargs", [True]),
        ("chat_template_kwargs", {"enable_thinking": None}),
        ("chat_template_kwargs", {"enable_thinking": {"on": True}}),
        ("chat_template_kwargs", {"budget": float("inf")}),
        ("chat_template_kwargs", {"budget": 10**400}),
        ("chat_template_kwargs", {"prefix": "two\nlines"}),
        ("chat_template_kwargs", {"long": "x" * 2000}),
        ("chat_template_kwargs", {"not-a-name": True}),
        ("chat_template_kwargs", {"messages": "mine"}),
        ("chat_template_kwargs", {"reasoning_effort": "low"}),
        ("chat_template_kwargs", {f"switch_{n}": True for n in range(17)}),
        ("reasoning_effort", "some"),
        ("reasoning_effort", None),
        ("reasoning_tags", {"start": "<think>"}),
        ("reasoning_tags", {"start": "<think>", "end": "<think>"}),
        ("reasoning_tags", {"start": "", "end": "</think>"}),
        ("reasoning_tags", {"start": "<think>", "end": "</think>\n"}),
        ("reasoning_tags", {"start": "<think>", "end": "x" * 81}),
        ("reasoning_tags", "<think>"),
    ],
)
def test_a_sampling_value_out_of_bounds_is_refused(name: str, value: Any) -> None:
    given = settings()
    given["sampling"][name] = value
    assert list(problems(given)) == [f"sampling.{name}"]


def test_thinking_is_switched_for_the_chat_template_and_not_for_the_decoder() -> None:
    given = settings()
    given["sampling"] |= {"chat_template_kwargs": {"enable_thinking": True, "budget": 512}, "reasoning_effort": "high"}
    given["sampling"]["reasoning_tags"] = {"start": "<think>", "end": "</think>"}
    decoding, switches = split_sampling(parse_profile(given).sampling)
    assert decoding == settings()["sampling"]
    assert switches == {"enable_thinking": True, "budget": 512, "reasoning_effort": "high"}
    assert split_sampling(parse_profile(settings()).sampling) == (settings()["sampling"], {})


def test_all_problems_are_told_at_once() -> None:
    given = settings(engine={"dtype": "float16", "seed": -1}, extra=1)
    assert set(problems(given)) == {"extra", "engine.dtype", "engine.seed"}


@pytest.mark.parametrize(
    ("slug", "hardware", "is_refused"),
    [
        pytest.param("invariant", CPU, True, id="invariant-cpu"),
        pytest.param("invariant", cuda(V100), True, id="invariant-old-gpu"),
        pytest.param("invariant", cuda(H100, V100), True, id="invariant-one-old-gpu"),
        pytest.param("invariant", cuda(H100), False, id="invariant-hopper"),
        pytest.param("pinned", CPU, False, id="pinned-cpu"),
        pytest.param("pinned", cuda(V100), False, id="pinned-old-gpu"),
        pytest.param("fixed", CPU, False, id="fixed-cpu"),
        pytest.param("fast", CPU, False, id="fast-cpu"),
    ],
)
def test_a_profile_is_refused_only_where_the_hardware_cannot_honour_it(
    slug: str, hardware: dict[str, Any], is_refused: bool
) -> None:
    assert (refused(settings(slug), hardware) is not None) is is_refused


def test_invariant_cannot_be_talked_out_of_its_requirement() -> None:
    given = settings("invariant", requires={"cuda_capability": 5.0})
    assert "8.0" in str(refused(given, cuda(V100)))


def test_invariant_wants_a_node_that_was_tested_and_passed() -> None:
    assert "evalboard worker --self-test` on node-1" in str(refused(settings("invariant"), cuda(H100), None))
    failed = self_tests.result(device="cuda", differing=[("invariant", "product", "bfloat16")])
    assert "matrix product in bfloat16" in str(refused(settings("invariant"), cuda(H100), failed))


@pytest.mark.parametrize("slug", ["pinned", "fixed", "fast"])
def test_no_other_profile_asks_for_a_self_test(slug: str) -> None:
    assert refused(settings(slug), cuda(H100), None) is None


def test_hardware_that_cannot_comes_before_a_test_that_is_missing() -> None:
    assert "CPU" in str(refused(settings("invariant"), CPU, None))
    assert "8.0" in str(refused(settings("invariant"), cuda(V100), None))


@pytest.mark.parametrize(("name", "value"), [("temperature", "default"), ("logprobs", 0)])
def test_what_only_an_external_server_takes_is_refused_by_every_engine(name: str, value: Any) -> None:
    given = settings()
    given["sampling"][name] = value
    words = f"The profile leaves {name} to the server, and only external servers take it."
    assert (refused(given, CPU), refused(given, cuda(H100))) == (words, words)


@pytest.mark.parametrize(
    ("sizes", "hardwares", "words"),
    [
        ((1, 1), [CPU], None),
        ((2, 1), [], None),
        ((2, 1), [cuda(H100), cuda(H100, H100)], None),
        ((2, 1), [cuda(H100)], "Pool gpu-a has workers with 1 GPU; tensor_parallel_size 2 needs 2."),
        (
            (2, 2),
            [cuda(H100, H100), cuda(H100)],
            "Pool gpu-a has workers with 1 or 2 GPUs; tensor_parallel_size 2 with pipeline_parallel_size 2 needs 4.",
        ),
        ((1, 2), [CPU, {"kind": "none"}], "Pool gpu-a has workers with no GPU; pipeline_parallel_size 2 needs 2."),
    ],
)
def test_sizes_are_refused_where_no_worker_of_the_pool_has_the_gpus(
    sizes: tuple[int, int], hardwares: list[dict[str, Any]], words: str | None
) -> None:
    assert find_size_refusal(hardwares, sizes, pool="gpu-a") == words


def test_the_endpoint_s_sizes_are_pinned_and_the_profile_s_counts_where_that_says_one() -> None:
    spread = plan(sizes=(2, 3))
    assert (spread.engine["tensor_parallel_size"], spread.pins["pipeline_parallel_size"]) == (2, 3)
    assert spread.digest != plan().digest
    given = settings(engine={**settings()["engine"], "tensor_parallel_size": 2})
    asked = {"dtype": "float32", "quantization": None, "max_model_len": 512, "max_tokens": 16, "stop": ()}
    for own, ended_with in ((1, 2), (2, 2)):
        planned = plan_engine(parse_profile(given), cuda(H100, H100), sizes=(own, 1), **asked)
        assert planned.engine["tensor_parallel_size"] == ended_with
    with pytest.raises(InvalidInput) as refusal:
        plan_engine(parse_profile(given), cuda(H100, H100), sizes=(4, 1), **asked)
    assert "The endpoint says 4, and the profile 2" in refusal.value.fields["tensor_parallel_size"]


def test_a_model_over_more_gpus_than_there_are_is_refused() -> None:
    given = settings()
    given["engine"]["tensor_parallel_size"] = 2
    assert refused(given, cuda(H100, H100)) is None
    assert "2 GPUs" in str(refused(given, cuda(H100)))


def test_the_batch_class_decides_how_many_sequences_share_a_step() -> None:
    assert plan("pinned").engine["max_num_seqs"] == 1
    assert plan("fixed").engine["max_num_seqs"] == 8
    assert plan("fixed").group_size == 8


def test_kernels_are_batch_invariant_under_invariant_alone() -> None:
    found = {slug: plan(slug, cuda(H100)).env["VLLM_BATCH_INVARIANT"] for slug in DEFAULT_PROFILES}
    assert found == {"pinned": "0", "invariant": "1", "fixed": "0", "fast": "0", "hosted": "0"}
    assert plan("invariant", cuda(H100)).pins["batch_invariant"] is True


def test_settings_of_other_hardware_stay_away() -> None:
    assert plan().engine["attention_backend"] == "CPU_ATTN"
    assert plan(hardware=cuda(H100)).engine["attention_backend"] == "TRITON_ATTN"
    assert "VLLM_CPU_ATTN_SPLIT_KV" not in plan(hardware=cuda(H100)).env


def test_the_number_of_threads_is_stated_and_pinned_on_a_cpu() -> None:
    found = plan()
    assert found.env["OMP_NUM_THREADS"] == "6"
    assert found.pins["n_threads"] == 6


def test_a_profile_may_state_its_own_number_of_threads() -> None:
    given = settings()
    given["cpu"]["env"]["OMP_NUM_THREADS"] = "4"
    asked: dict[str, Any] = {"dtype": "float32", "quantization": None, "max_model_len": 512, "max_tokens": 8}
    assert plan_engine(parse_profile(given), CPU, **asked, stop=()).pins["n_threads"] == 4


def test_every_setting_asked_for_is_a_pin() -> None:
    found = plan()
    asked = set(found.engine) - {"kv_cache_memory_bytes"} | {f"env.{name}" for name in found.env}
    assert asked <= set(found.pins)
    assert found.pins["kv_cache_fits_batch"] is True
    assert found.pins["quantization"] is None
    assert found.pins["cudagraph_mode"] == "NONE"


def test_a_prompt_is_never_cut_over_two_steps() -> None:
    assert plan(max_model_len=32768).engine["max_num_batched_tokens"] == 32768


def test_sampling_is_completed_by_the_suite() -> None:
    found = plan().sampling
    assert (found["max_tokens"], found["stop"], found["logprobs"]) == (24, ["\n"], 2)


@pytest.mark.parametrize(
    ("changes", "path"), [({"dtype": "auto"}, "dtype"), ({"max_tokens": 2048}, "max_tokens")], ids=["dtype", "room"]
)
def test_a_plan_is_refused_where_endpoint_or_suite_do_not_fit(changes: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan(**changes)
    assert path in caught.value.fields


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({"max_tokens": 8, "stop": ()}, True),
        ({"dtype": "bfloat16"}, False),
        ({"max_model_len": 4096}, False),
        ({"quantization": "awq"}, False),
    ],
    ids=["sampling", "dtype", "context", "quantization"],
)
def test_a_process_is_shared_by_plans_that_differ_in_sampling_only(changes: dict[str, Any], is_same: bool) -> None:
    assert (plan().digest == plan(**changes).digest) is is_same


@pytest.mark.parametrize(
    ("slug", "hardware", "most", "least"),
    [
        ("pinned", CPU, 1, 1),
        ("fixed", CPU, 8, 8),
        ("invariant", cuda(H100), 64, 1),
        ("fast", CPU, 8, 1),
        ("fast", cuda(H100), None, None),
    ],
)
def test_seats_are_exact_where_the_batch_class_says_a_size(
    slug: str, hardware: dict[str, Any], most: int | None, least: int | None
) -> None:
    parsed = parse_profile(settings(slug))
    asked = {"dtype": "float32", "quantization": None, "max_model_len": 2048, "max_tokens": 24, "stop": ()}
    found = plan_engine(parsed, hardware, **asked)
    assert (count_wanted_seats(parsed, hardware), found.engine.get("max_num_seqs"), found.least_seats) == (
        most,
        most,
        least,
    )


def test_an_invariant_batch_is_never_larger_than_the_self_test_s() -> None:
    given = settings("invariant")
    given["engine"]["max_num_seqs"] = 200
    assert count_wanted_seats(parse_profile(given), cuda(H100)) == MAX_TESTED_BATCH
    del given["engine"]["max_num_seqs"]
    assert count_wanted_seats(parse_profile(given), cuda(H100)) == MAX_TESTED_BATCH
    given["engine"]["max_num_seqs"] = 4
    assert count_wanted_seats(parse_profile(given), cuda(H100)) == 4


def test_a_replay_of_one_size_does_not_share_the_process_of_a_run() -> None:
    """The run's may have got fewer seats than it asked for; the replay's size is exact."""
    asked = {"dtype": "float32", "quantization": None, "max_model_len": 2048, "max_tokens": 24, "stop": ()}
    run = parse_profile(settings("invariant"))
    of_run, of_replay = (plan_engine(each, cuda(H100), **asked) for each in (run, set_batch_size(run, 64)))
    assert of_run.engine == of_replay.engine
    assert (of_run.least_seats, of_replay.least_seats) == (1, 64)
    assert of_run.digest != of_replay.digest


def test_every_field_is_documented() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "profiles.md").read_text(encoding="utf-8")
    names = {
        *SECTIONS,
        *BATCH_CLASSES,
        *DEFAULT_PROFILES,
        *SAMPLING_FIELDS,
        *THINKING_FIELDS,
        *ENGINE_FIELDS,
        *ENV_NAMES,
    }
    assert {name for name in names if f"`{name}`" not in text} == set()


@pytest.mark.parametrize("slug", ["pinned", "fixed", "fast"])
@pytest.mark.parametrize(
    ("size", "batch_class", "group_size"), [(1, "alone", None), (2, "fixed-2", 2), (256, "fixed-256", 256)]
)
def test_a_replay_s_batch_size_decides_the_batch_class_and_nothing_else(
    slug: str, size: int, batch_class: str, group_size: int | None
) -> None:
    asked = {"dtype": "float32", "quantization": None, "max_model_len": 2048, "max_tokens": 24, "stop": ()}
    as_it_is = parse_profile(settings(slug))
    found = plan_engine(set_batch_size(as_it_is, size), CPU, **asked)
    assert (found.batch_class, found.group_size, found.engine["max_num_seqs"]) == (batch_class, group_size, size)
    before = plan_engine(as_it_is, CPU, **asked)
    assert {**found.engine, "max_num_seqs": 0} == {**before.engine, "max_num_seqs": 0}
    assert (found.env, found.sampling) == (before.env, before.sampling)


def test_batch_invariant_kernels_stay_so_at_every_size_of_a_replay() -> None:
    given = settings("invariant")
    given["cuda"]["engine"]["max_num_seqs"] = 16
    asked = {"dtype": "bfloat16", "quantization": None, "max_model_len": 2048, "max_tokens": 24, "stop": ()}
    for size in (1, 4):
        found = plan_engine(set_batch_size(parse_profile(given), size), cuda(H100), **asked)
        assert (found.batch_class, found.group_size, found.engine["max_num_seqs"]) == ("invariant", None, size)
        assert found.env["VLLM_BATCH_INVARIANT"] == "1"
