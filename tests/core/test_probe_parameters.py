"""Parameters are strict and complete, and the calls that follow from them are fair to what the probe asks."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from evalboard.contract.probe_kinds import ProbeKind
from evalboard.core.errors import InvalidInput
from evalboard.core.probes import parameters as probe_parameters
from evalboard.core.probes.call import ProbeExchange
from evalboard.core.probes.parameters import complete_parameters


def calls_of(kind: str, given: dict[str, Any] | None = None) -> tuple[ProbeExchange, ...]:
    parameters = complete_parameters(kind, given or {})
    return probe_parameters.plan_calls(kind, parameters, probe_parameters.list_prompt_texts(kind, parameters) or [])


@pytest.mark.parametrize("kind", ProbeKind)
def test_complete_parameters_come_back_as_they_are_and_plan_the_same_calls(kind: str) -> None:
    parameters = complete_parameters(kind, {})
    assert complete_parameters(kind, parameters) == parameters
    assert calls_of(kind) == calls_of(kind)


def test_the_defaults_are_those_whose_error_rates_are_known() -> None:
    seed, batch, canary = (
        complete_parameters("seed", {}),
        complete_parameters("batch", {}),
        complete_parameters("canary", {}),
    )
    assert (len(seed["prompts"]), seed["calls_per_group"], seed["temperature"]) == (5, 5, 1.0)
    assert (len(batch["prompts"]), batch["copies"], batch["load"]) == (5, 50, 8)
    assert (len(canary["prompts"]), canary["top_k"]) == (20, 5)
    assert complete_parameters("routing", {}) == {"calls": 8}


def test_a_number_of_prompts_takes_so_many_of_the_built_in_ones() -> None:
    ten = complete_parameters("seed", {"prompts": 10})["prompts"]
    assert len(set(ten)) == 10
    assert ten[:5] == complete_parameters("seed", {})["prompts"]


def test_a_canary_of_a_suite_has_no_prompts_of_its_own() -> None:
    parameters = complete_parameters("canary", {"suite": "colours"})
    assert parameters == {"suite": "colours", "top_k": 5, "random_seed": 0}
    chosen = complete_parameters("audit", {"suite": "colours", "cases": ["sea", "sky"]})
    assert chosen == {"suite": "colours", "cases": ["sea", "sky"], "max_tokens": 64}
    assert probe_parameters.list_prompt_texts("canary", parameters) is None
    assert [call.prompt for call in probe_parameters.plan_calls("canary", parameters, ["a", "b", "c"])] == [0, 1, 2]


@pytest.mark.parametrize(
    ("kind", "given", "field"),
    [
        pytest.param("colour", {}, "kind", id="unknown-kind"),
        pytest.param("seed", [], "parameters", id="no-object"),
        pytest.param("seed", {"copies": 5}, "parameters.copies", id="of-another-kind"),
        pytest.param("seed", {"temperature": 0}, "parameters.temperature", id="nothing-for-a-seed-to-decide"),
        pytest.param("seed", {"temperature": float("nan")}, "parameters.temperature", id="not-finite"),
        pytest.param("seed", {"calls_per_group": True}, "parameters.calls_per_group", id="true-is-no-number"),
        pytest.param("seed", {"max_tokens": None}, "parameters.max_tokens", id="null"),
        pytest.param("seed", {"prompts": 10, "calls_per_group": 50 + 1}, "parameters.calls_per_group", id="too-high"),
        pytest.param("seed", {"prompts": [str(n) for n in range(20)], "calls_per_group": 26},
                     "parameters.calls_per_group", id="too-many-calls"),
        pytest.param("batch", {"prompts": 10, "copies": 101}, "parameters.copies", id="too-many-copies"),
        pytest.param("batch", {"prompts": 11}, "parameters.prompts", id="more-than-there-are-built-in"),
        pytest.param("batch", {"prompts": []}, "parameters.prompts", id="none"),
        pytest.param("batch", {"prompts": ["a", " "]}, "parameters.prompts[1]", id="blank"),
        pytest.param("batch", {"prompts": ["a", "b", "a"]}, "parameters.prompts[2]", id="twice"),
        pytest.param("batch", {"prompts": ["a\0"]}, "parameters.prompts[0]", id="cannot-be-stored"),
        pytest.param("batch", {"prompts": ["a" * 8_001]}, "parameters.prompts[0]", id="too-long"),
        pytest.param("batch", {"prompts": [["a"], {"b": 1}]}, "parameters.prompts[1]", id="no-texts"),
        pytest.param("routing", {"prompts": ["a"]}, "parameters.prompts", id="routing-has-its-own"),
        pytest.param("routing", {"calls": 0}, "parameters.calls", id="no-call"),
        pytest.param("canary", {"prompts": [str(n) for n in range(201)]}, "parameters.prompts", id="too-many-prompts"),
        pytest.param("canary", {"prompts": 3, "suite": "s"}, "parameters.suite", id="two-sources"),
        pytest.param("canary", {"suite": ""}, "parameters.suite", id="no-slug"),
        pytest.param("audit", {"cases": ["a"]}, "parameters.cases", id="cases-of-no-suite"),
        pytest.param("audit", {"suite": "s", "cases": []}, "parameters.cases", id="no-cases"),
        pytest.param("audit", {"suite": "s", "cases": "a"}, "parameters.cases", id="cases-that-are-no-list"),
        pytest.param("audit", {"suite": "s", "cases": ["a", 1]}, "parameters.cases", id="a-case-that-is-no-id"),
        pytest.param("audit", {"suite": "s", "cases": ["a", "a"]}, "parameters.cases", id="a-case-given-twice"),
        pytest.param("seed", {"cases": ["a"]}, "parameters.cases", id="no-kind-of-cases"),
        pytest.param("canary", {"top_k": 2}, "parameters.top_k", id="too-few-alternatives"),
        pytest.param("capability", {"max_tokens": 7}, "parameters.max_tokens", id="too-short-to-tell"),
        pytest.param("capability", {"prompts": 1}, "parameters.prompts", id="capability-has-its-own"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_path(kind: str, given: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        complete_parameters(kind, given)
    assert field in refused.value.fields


def test_a_seed_probe_sends_one_seed_against_others_that_never_repeat() -> None:
    calls = calls_of("seed")
    same = {call.seed for call in calls if call.group == "same"}
    different = [call.seed for call in calls if call.group == "different"]
    assert len(same) == 1
    assert len({*different, *same}) == 25 + 1
    assert Counter((call.prompt, call.group) for call in calls if call.group != "greedy") == {
        (prompt, group): 5 for prompt in range(5) for group in ("same", "different")
    }


def test_both_groups_of_a_seed_probe_are_interleaved() -> None:
    """Else load that rises while the probe runs would look like a seed that is honoured, or hide one."""
    for random_seed in range(20):
        groups = [call.group for call in calls_of("seed", {"random_seed": random_seed})]
        assert sum(one != other for one, other in pairwise(groups)) >= 10
        assert 5 <= groups[:25].count("same") <= 20


@pytest.mark.parametrize("load", [0, 1, 8])
@pytest.mark.parametrize("copies", [2, 3, 50, 200])
def test_every_copy_of_a_batch_probe_has_company(load: int, copies: int) -> None:
    given = {"prompts": 3, "copies": copies, "load": load, "seats": 1}
    calls = calls_of("batch", given)
    sizes = Counter(call.round for call in calls)
    assert min(sizes.values()) >= 2
    assert Counter(call.prompt for call in calls if call.group == "copy") == dict.fromkeys(range(3), copies)
    assert all(count == load for count in Counter(call.round for call in calls if call.group == "load").values())
    assert [call.round for call in calls] == sorted(call.round for call in calls)
    if copies == 50:
        assert len(set(sizes.values())) >= 4  # steps of many sizes


def test_the_load_of_a_batch_probe_is_of_mixed_lengths_and_none_of_its_prompts() -> None:
    parameters = complete_parameters("batch", {"prompts": ["One.", "Two."]})
    texts = probe_parameters.list_prompt_texts("batch", parameters)
    assert texts is not None
    load = {call.prompt for call in probe_parameters.plan_calls("batch", parameters, texts) if call.group == "load"}
    assert load == set(range(2, len(texts)))
    lengths = [len(texts[index]) for index in load]
    assert max(lengths) > 8 * min(lengths)


def test_probes_of_seeds_and_of_split_prompts_sample_and_the_others_are_greedy() -> None:
    temperatures = {
        kind: probe_parameters.choose_sampling(kind, complete_parameters(kind, {}), "ask")["temperature"]
        for kind in ProbeKind
        if kind != ProbeKind.VERIFY  # which makes no call by itself
    }
    sampled = {ProbeKind.SEED, ProbeKind.BORDER}
    assert temperatures == {kind: 1.0 if kind in sampled else 0.0 for kind in temperatures}


def test_only_the_load_goes_on_after_its_answer_has_ended() -> None:
    parameters = complete_parameters("batch", {})
    assert probe_parameters.choose_sampling("batch", parameters, "load")["ignore_eos"]
    assert not probe_parameters.choose_sampling("batch", parameters, "copy")["ignore_eos"]


def test_a_batch_probe_fills_every_seat_in_some_rounds() -> None:
    for seats, largest in ((64, 64), (30, 30), (1, 24)):
        parameters = complete_parameters("batch", {"seats": seats})
        calls = probe_parameters.plan_calls(
            "batch", parameters, probe_parameters.list_prompt_texts("batch", parameters) or ()
        )
        assert max(Counter(call.round for call in calls).values()) == largest
        assert sum(call.group == "copy" for call in calls) == 250


@pytest.mark.parametrize(("kind", "name"), [("seed", "greedy_calls"), ("batch", "seats")])
def test_a_probe_that_was_stored_before_a_parameter_came_plans_its_calls_as_then(kind: str, name: str) -> None:
    parameters = complete_parameters(kind, {})
    stored = {key: value for key, value in parameters.items() if key != name}
    texts = probe_parameters.list_prompt_texts(kind, stored) or ()
    calls = probe_parameters.plan_calls(kind, stored, texts)
    assert calls == probe_parameters.plan_calls(kind, {**parameters, name: 0}, texts)
    assert not any(call.group == "greedy" for call in calls)
    assert max(Counter(call.round for call in calls).values()) <= 24


def test_greedy_calls_of_a_seed_probe_have_no_seed_and_no_temperature() -> None:
    parameters = complete_parameters("seed", {})
    greedy = [call for call in probe_parameters.plan_calls("seed", parameters, ()) if call.group == "greedy"]
    assert ([call.prompt for call in greedy], {call.seed for call in greedy}) == ([0, 1, 2, 3, 4], {None})
    assert probe_parameters.choose_sampling("seed", parameters, "greedy")["temperature"] == 0.0


def test_a_kind_that_is_not_known_is_refused_and_never_taken_for_another() -> None:
    with pytest.raises(ValueError, match="is not a valid ProbeKind"):
        probe_parameters.plan_calls("cannary", {}, ["a"])
    with pytest.raises(ValueError, match="is not a valid ProbeKind"):
        probe_parameters.choose_sampling("cannary", {}, "ask")
