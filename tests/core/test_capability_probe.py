"""What a server of others does with each parameter is told by few calls: honoured, refused, ignored or not told."""

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from evalboard.core.probes import PARAMETERS, choose_sampling, judge_capability_probe, plan_calls
from evalboard.core.probes.call import ProbeExchange, ProbeResult, dump_call, parse_call
from evalboard.core.probes.capability_calls import CONTROLS, choose_stop
from evalboard.wording.capability import describe_fit, describe_parameter, describe_row, suggest_profile
from evalboard.wording.probe import describe_finding
from tests.capability import EVERYTHING, answer_calls

ASKED_OF_IT = sorted(EVERYTHING - {"system_fingerprint", "token_ids", "usage"})


def states(finding: ProbeResult) -> dict[str, str]:
    return {row["parameter"]: row["state"] for row in finding.numbers["rows"]}


def row_of(finding: ProbeResult, parameter: str) -> dict[str, Any]:
    [row] = [row for row in finding.numbers["rows"] if row["parameter"] == parameter]
    return dict(row)


def without(*names: str) -> list[ProbeExchange]:
    return answer_calls(honours=EVERYTHING - {*names})


def test_a_server_that_honours_everything_is_checked_in_nineteen_answers() -> None:
    calls = answer_calls()
    finding = judge_capability_probe(calls)
    assert (finding.state, len(calls)) == ("checked", 19)
    assert set(states(finding).values()) == {"honoured"}
    assert describe_finding("capability", finding.state, finding.numbers) == "All 18 parameters are honoured."
    assert row_of(finding, "logprobs")["detail"] == {"k": 20, "given": 20}


MAY_SHOW_NOTHING = {"presence_penalty", "chat_template_kwargs"}


@pytest.mark.parametrize("name", sorted(EVERYTHING - MAY_SHOW_NOTHING))
def test_what_is_silently_ignored_is_told_and_nothing_beside_it_is_called_ignored(name: str) -> None:
    finding = judge_capability_probe(without(name))
    ignored = {parameter for parameter, state in states(finding).items() if state == "ignored"}
    beside = {"logprobs": {"top_logprobs"}}.get(name, set())
    assert ignored == {name} | beside
    assert finding.state == ("ignores" if name in ASKED_OF_IT else "checked")


@pytest.mark.parametrize("name", sorted(MAY_SHOW_NOTHING))
def test_what_an_honest_server_may_answer_without_a_trace_is_never_called_ignored(name: str) -> None:
    finding = judge_capability_probe(without(name))
    assert (finding.state, states(finding)[name]) == ("checked", "unclear")
    assert describe_parameter(row_of(finding, name)).startswith("It is accepted, but the text does not change")


def test_a_switch_of_the_template_shows_in_the_length_of_the_prompt_or_in_the_text() -> None:
    row = row_of(judge_capability_probe(answer_calls()), "chat_template_kwargs")
    assert describe_parameter(row) == "With it the prompt has 13 tokens, without it 9."

    def think(call: ProbeExchange) -> ProbeExchange:
        return replace(call, text="Hm. Let me think.", token_ids=(1,)) if call.group == "template_on" else call

    calls = answer_calls(honours=EVERYTHING - {"usage"}, change=think)
    row = row_of(judge_capability_probe(calls), "chat_template_kwargs")
    assert (row["state"], describe_parameter(row)) == ("honoured", "It changes the text.")


def test_a_frequency_penalty_is_called_ignored_only_where_a_word_came_often_enough() -> None:
    def once(call: ProbeExchange) -> ProbeExchange:
        return replace(call, text="tea", token_ids=(1,)) if call.prompt == 2 else call

    short = answer_calls(honours=EVERYTHING - {"frequency_penalty"}, change=once)
    assert states(judge_capability_probe(short))["frequency_penalty"] == "unclear"
    assert states(judge_capability_probe(without("frequency_penalty")))["frequency_penalty"] == "ignored"


def test_answers_without_a_text_accuse_no_penalty() -> None:
    calls = [replace(call, text="", token_ids=()) for call in without("repetition_penalty")]
    assert states(judge_capability_probe(calls))["repetition_penalty"] == "unclear"


@pytest.mark.parametrize("name", [each for each in ASKED_OF_IT if each not in ("temperature", "max_tokens")])
def test_what_is_refused_is_told_in_the_servers_words(name: str) -> None:
    words = f"Unsupported parameter: '{name}'."
    finding = judge_capability_probe(answer_calls(refuses={name: words}))
    row = row_of(finding, name)
    assert (row["state"], row["detail"]) == ("refused", {"words": words})
    assert describe_parameter(row) == f"The server says: {words}"
    ignored = {parameter for parameter, state in states(finding).items() if state == "ignored"}
    assert not ignored
    assert finding.state == "checked"


def test_a_model_that_thinks_first_is_asked_again_with_room_for_that() -> None:
    """A call of few tokens is cut before its first word, which shows nothing of a parameter."""

    def think(call: ProbeExchange) -> ProbeExchange:
        limit = choose_sampling("capability", {"max_tokens": 24}, call.group, asked)["max_tokens"]
        call = replace(call, text="", finish_reason="length") if limit < 100 and not call.error else call
        asked.append(call)
        return call

    asked: list[ProbeExchange] = []
    refuses = {"temperature": "No temperature.", "logprobs": "No logprobs."}
    calls = answer_calls(refuses=refuses, samples=True, change=think)
    controls = [call for call in calls if call.group == "plain"]
    assert [bool(call.text) for call in controls] == [False, True]
    seen = states(judge_capability_probe(calls))
    assert {name: seen[name] for name in ("temperature", "logprobs", "max_tokens", "stop", "seed")} == {
        **{"temperature": "refused", "logprobs": "refused"},
        **{"max_tokens": "honoured", "stop": "honoured", "seed": "honoured"},
    }
    assert len(calls) <= len(plan_calls("capability", {"max_tokens": 24}, ())) == 26


def test_what_a_check_saw_says_which_profile_fits() -> None:
    rows = judge_capability_probe(answer_calls(refuses={"temperature": "No temperature."}, samples=True)).numbers[
        "rows"
    ]
    assert suggest_profile(rows) == "hosted"
    assert describe_fit(rows).startswith("It does not take temperature: use --profile hosted")
    rows = judge_capability_probe(answer_calls()).numbers["rows"]
    words = "Use --profile fast: the server takes what it asks for. Answers are compared token by token."
    assert (suggest_profile(rows), describe_fit(rows)) == ("fast", words)
    drops = [row | ({"state": "ignored"} if row["parameter"] == "logprobs" else {}) for row in rows]
    assert "except that it ignores logprobs. Without logprobs, answers are compared by text" in describe_fit(drops)


def test_a_refusal_for_another_parameter_is_not_taken_for_that_of_the_one_asked_for() -> None:
    words = "'temperature' does not support 1 next to that."
    row = row_of(judge_capability_probe(answer_calls(refuses={"top_p": words})), "top_p")
    assert row["detail"] == {"why": "refused_for_another", "another": "temperature", "words": words}
    assert describe_parameter(row).startswith("Its call was refused for temperature: ")


@pytest.mark.parametrize("words", ["Unsupported parameter: 'temperature'.", "Temperature does not support 0."])
def test_a_server_that_refuses_a_temperature_is_asked_for_all_else_without_one(words: str) -> None:
    calls = answer_calls(refuses={"temperature": words}, samples=True)
    finding = judge_capability_probe(calls)
    found_states = states(finding)
    row = row_of(finding, "temperature")
    assert (row["state"], row["detail"]) == ("refused", {"words": words})
    assert row_of(finding, "logprobs")["detail"] == {"k": 20, "given": 20}
    assert {name for name, state in found_states.items() if state == "unclear"} == {"top_p", "top_k", "min_p"}
    assert {found_states[name] for name in set(found_states) - {"temperature", "top_p", "top_k", "min_p"}} == {
        "honoured"
    }
    assert sum(bool(call.error) for call in calls) == 1
    assert finding.state == "checked"


def test_a_server_that_refuses_temperature_and_seed_is_accused_of_nothing() -> None:
    refuses = {name: f"Unsupported parameter: '{name}'." for name in ("temperature", "seed")}
    for honours in (EVERYTHING, EVERYTHING - {"top_p", "top_k", "stop"}):
        found_states = states(judge_capability_probe(answer_calls(honours=honours, refuses=refuses, samples=True)))
        assert {name for name, state in found_states.items() if state == "refused"} == {"temperature", "seed"}
        assert {name for name, state in found_states.items() if state == "ignored"} <= {"stop"}
        assert {found_states[name] for name in ("logprobs", "top_logprobs", "max_tokens", "ignore_eos")} == {"honoured"}


def test_two_texts_at_temperature_0_beside_an_honoured_seed_show_that_it_is_ignored() -> None:
    finding = judge_capability_probe(answer_calls(honours=EVERYTHING - {"temperature"}, samples=True))
    row = row_of(finding, "temperature")
    ignored = {name for name, state in states(finding).items() if state == "ignored"}
    assert (ignored, finding.state) == ({"temperature"}, "ignores")
    assert describe_parameter(row).startswith("Two calls at 0 differ early")
    seedless = judge_capability_probe(answer_calls(honours=EVERYTHING - {"temperature", "seed"}, samples=True))
    assert states(seedless)["temperature"] == "unclear"  # what moves the answers may be noise


def test_an_answer_at_0_that_parts_late_is_noise_of_batches() -> None:
    def flip(call: ProbeExchange) -> ProbeExchange:
        changed = replace(call, token_ids=(*call.token_ids[:-1], 1), text=call.text.rstrip()[:-1] + "!")
        return changed if call.group == "stop" else call

    row = row_of(judge_capability_probe(answer_calls(change=flip)), "temperature")
    assert (row["state"], row["detail"]) == ("unclear", {"why": "not_repeated"})


def test_the_largest_number_of_logprobs_is_told_with_the_words_that_refuse_more() -> None:
    calls = answer_calls(largest=5)
    row = row_of(judge_capability_probe(calls), "logprobs")
    assert [call.group for call in calls if call.group in CONTROLS] == ["logprobs_20", "logprobs_5"]
    assert (row["state"], row["detail"]["given"]) == ("honoured", 5)
    assert describe_parameter(row) == "Up to 5. More are refused: top_logprobs must be at most 5."
    capped = [replace(call, top=call.top[:5]) for call in answer_calls()]
    row = row_of(judge_capability_probe(capped), "logprobs")
    assert describe_parameter(row) == "5 logprobs where 20 are requested."


def test_without_any_logprobs_the_plain_call_is_the_control() -> None:
    calls = answer_calls(largest=0)
    finding = judge_capability_probe(calls)
    assert [call.group for call in calls if call.group in CONTROLS] == list(CONTROLS)
    assert "top_logprobs" not in {call.group for call in calls}
    assert (states(finding)["logprobs"], states(finding)["top_logprobs"]) == ("refused", "refused")
    assert (states(finding)["stop"], states(finding)["top_k"]) == ("honoured", "honoured")
    assert sum(not call.error for call in calls) == 18


def test_what_the_worker_did_not_send_was_not_asked() -> None:
    calls = [replace(call, left_out=("top_k", "seed")) for call in answer_calls()]
    found_states = states(judge_capability_probe(calls))
    assert {name for name, state in found_states.items() if state == "not_asked"} == {"top_k", "seed"}


def test_few_calls_do_not_tell_a_seed_under_noise_from_one_that_is_ignored() -> None:
    texts = {"same": ["a sea of tea and more", "a sea of tea and less"], "different": ["a bee"]}

    def change(call: ProbeExchange) -> ProbeExchange:
        return replace(call, text=texts[call.group].pop(), token_ids=()) if call.group in texts else call

    row = row_of(judge_capability_probe(answer_calls(honours=EVERYTHING - {"token_ids"}, change=change)), "seed")
    assert (row["state"], row["detail"]["why"]) == ("unclear", "parted_late")


def test_one_text_whatever_the_seed_tests_no_seed() -> None:
    calls = [replace(call, text="tea", token_ids=(1,)) if call.seed else call for call in answer_calls()]
    assert row_of(judge_capability_probe(calls), "seed")["detail"] == {"why": "one_text"}


def test_greedy_answers_that_do_not_repeat_tell_nothing_of_a_penalty() -> None:
    calls = [replace(call, text=f"x {call.text}") if call.group == "stop" else call for call in answer_calls()]
    found_states = states(judge_capability_probe(calls))
    assert (found_states["repetition_penalty"], found_states["temperature"], found_states["stop"]) == ("unclear",) * 3


def test_several_fingerprints_are_given_and_counted() -> None:
    calls = [replace(call, system_fingerprint=f"fp_{index % 2}") for index, call in enumerate(answer_calls())]
    row = row_of(judge_capability_probe(calls), "system_fingerprint")
    assert (row["state"], row["detail"]["n_distinct"]) == ("honoured", 2)
    assert "2 different ones: several servers answer" in describe_parameter(row)


def test_another_fingerprint_with_each_answer_names_calls() -> None:
    calls = [replace(call, system_fingerprint=f"fp_{index}") for index, call in enumerate(answer_calls())]
    row = row_of(judge_capability_probe(calls), "system_fingerprint")
    assert describe_parameter(row).endswith("a different system_fingerprint: they identify calls, not servers.")


def test_answers_of_a_cache_are_left_out_and_retried_ones_count() -> None:
    retried = judge_capability_probe([replace(call, marks=("retried",)) for call in answer_calls()])
    assert (retried.state, "n_marked" in retried.numbers) == ("checked", False)
    calls = [replace(call, marks=("cached",)) if call.group == "top_k" else call for call in answer_calls()]
    finding = judge_capability_probe(calls)
    assert (finding.numbers["n_marked"], states(finding)["top_k"]) == (1, "unclear")
    assert "1 answer came from a cache, a fallback or a retry, and is left out." in describe_finding(
        "capability", finding.state, finding.numbers
    )


def test_too_few_answers_are_incomplete() -> None:
    failed = [replace(call, text="", error="call_failed: no route") for call in answer_calls()]
    assert judge_capability_probe(failed).state == "incomplete"
    assert judge_capability_probe([*failed[:10], *answer_calls()[10:]]).state == "incomplete"
    assert judge_capability_probe([]).state == "incomplete"
    refused = [replace(call, text="", error="call_refused: no") for call in answer_calls()]
    assert judge_capability_probe(refused).state == "incomplete"


def test_the_rows_come_in_one_order_whatever_the_order_of_the_calls_and_all_is_json() -> None:
    calls = answer_calls(honours=EVERYTHING - {"seed"}, refuses={"top_k": "No such field: top_k."}, largest=5)
    finding = judge_capability_probe([parse_call(json.loads(json.dumps(dump_call(call)))) for call in calls])
    assert [row["parameter"] for row in finding.numbers["rows"]] == list(PARAMETERS)
    assert json.loads(json.dumps(finding.numbers, allow_nan=False)) == finding.numbers
    random.Random(3).shuffle(calls)
    assert judge_capability_probe(calls) == finding


def test_every_row_of_every_state_has_its_sentence() -> None:
    for calls in (answer_calls(), *(without(name) for name in EVERYTHING), answer_calls(largest=0)):
        for row in judge_capability_probe(calls).numbers["rows"]:
            assert describe_row(row).endswith(".")


def test_the_stop_is_a_word_of_the_second_half_that_is_new_there() -> None:
    assert choose_stop(ProbeExchange(prompt=0, group="plain", text="red green blue warm cold red slow")) == "cold"
    assert choose_stop(ProbeExchange(prompt=0, group="plain", text="aaaaaaaaaa")) == ""
    assert choose_stop(None) == ""


def test_a_call_that_was_stored_before_there_were_servers_of_others_is_read() -> None:
    call = ProbeExchange(prompt=0, group="ask", token_ids=(1,), top=((1, -0.5),), engine_process=3)
    stored = dump_call(call)
    assert "backend" not in stored
    assert parse_call(stored) == call
    of_others = replace(call, is_remote=True, engine_process=None, backend="a", top=(("red", -0.5),), marks=("cached",))
    assert parse_call(json.loads(json.dumps(dump_call(of_others)))) == of_others
