"""A node is certified where every condition gives the bits of the first answer, and by nothing less."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from evalboard.core.probes import complete_parameters, judge_determinism_probe, list_prompt_texts, plan_calls
from evalboard.core.probes.call import ProbeExchange, ProbeResult, dump_call, parse_call
from evalboard.core.probes.determinism_probe import Condition, list_rounds
from evalboard.wording.probe import describe_finding

Answer = Callable[[ProbeExchange, Condition], ProbeExchange]


def parameters(**given: Any) -> dict[str, Any]:
    return complete_parameters("determinism", {"prompts": 3, "seats": 8, "passes": 2, **given})


def plan(asked: dict[str, Any]) -> tuple[ProbeExchange, ...]:
    return plan_calls("determinism", asked, list_prompt_texts("determinism", asked) or ())


def same(call: ProbeExchange, condition: Condition) -> ProbeExchange:
    return replace(call, token_ids=(call.prompt, 7, 0), trace_digest=f"{call.prompt:02x}", batch_max=condition.seats)


def drifting(call: ProbeExchange, condition: Condition) -> ProbeExchange:
    """Logprobs are others from 4 in a step on, and no token is."""
    answered = same(call, condition)
    return replace(answered, trace_digest="ff") if condition.seats >= 4 else answered


def flipping(call: ProbeExchange, condition: Condition) -> ProbeExchange:
    """Beside long prompts the second token is another one."""
    if condition.load != "long":
        return same(call, condition)
    return replace(same(call, condition), token_ids=(call.prompt, 8, 0), trace_digest="ee")


def answered(asked: dict[str, Any], answer: Answer, *, worker: int = 1, bucket: int = 5) -> list[ProbeExchange]:
    rounds = list_rounds(asked)
    by = {"worker": worker, "engine_process": 10 * worker, "bucket": bucket, "fingerprint": "a" * 64}
    return [replace(answer(call, rounds[call.round].condition), **by) for call in plan(asked)]


def judge(calls: Sequence[ProbeExchange], asked: dict[str, Any]) -> ProbeResult:
    return judge_determinism_probe(calls, parameters=asked)


def test_every_prompt_is_decoded_under_every_condition_in_each_pass() -> None:
    asked = parameters()
    seen = [(each.condition, prompt) for each in list_rounds(asked) for prompt in each.prompts]
    sizes = [(1, "none"), *((size, load) for size in (2, 3, 4, 8) for load in ("short", "long")), (8, "queued")]
    assert sorted(map(str, seen)) == sorted(
        2 * [str((Condition(*each), prompt)) for each in sizes for prompt in range(3)]
    )
    assert [seats for seats, load in sizes if load == "none"] == [1]


def test_as_many_requests_are_decoded_together_as_the_condition_says() -> None:
    for each in list_rounds(parameters(seats=6)):
        queued = 4 if each.condition.load == "queued" else 0
        assert len(each.prompts) + len(each.load) == each.condition.seats + queued
        assert each.condition.seats == 1 or len(each.prompts) < each.condition.seats


def test_one_seat_is_measured_alone_and_with_others_waiting() -> None:
    """What `pinned` really does: it decodes one at a time, however many wait."""
    conditions = {each.condition for each in list_rounds(parameters(seats=1))}
    assert conditions == {Condition(1, "none"), Condition(1, "queued")}


def test_the_load_is_of_other_texts_than_the_prompts() -> None:
    asked = parameters()
    texts = list_prompt_texts("determinism", asked) or ()
    load = {call.prompt for call in plan(asked) if call.group == "load"}
    assert min(load) >= 3
    lengths = {
        name: {len(texts[p]) for each in list_rounds(asked) if each.condition.load == name for p in each.load}
        for name in ("short", "long")
    }
    assert max(lengths["short"]) < min(lengths["long"])


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        pytest.param(same, "certified", id="same-bits"),
        pytest.param(drifting, "bits_move", id="other-logprobs"),
        pytest.param(flipping, "answers_move", id="other-tokens"),
    ],
)
def test_the_bits_decide(answer: Answer, state: str) -> None:
    asked = parameters()
    calls = answered(asked, answer)
    finding = judge(calls, asked)
    assert finding.state == state
    json.dumps(finding.numbers, allow_nan=False)
    stored = [parse_call(json.loads(json.dumps(dump_call(call)))) for call in calls]
    random.Random(1).shuffle(stored)
    assert judge(stored, asked) == finding
    assert describe_finding("determinism", state, finding.numbers)


def test_a_certificate_says_how_much_the_rounds_rule_out() -> None:
    """The first answer of each prompt is no witness: it is what the others are held against."""
    asked = parameters()
    numbers = judge(answered(asked, same), asked).numbers
    n_rounds = len(list_rounds(asked)) - 3
    assert numbers["n_rounds"] == n_rounds
    assert numbers["certificate"] == pytest.approx(1 - 0.05 ** (1 / n_rounds))
    assert numbers["seats_reached"] == 8


def test_conditions_that_gave_the_same_have_one_digest() -> None:
    asked = parameters()
    [row] = judge(answered(asked, drifting), asked).numbers["workers"]
    digests = {(each["seats"], each["load"]): each["digest"] for each in row["conditions"]}
    assert digests[2, "short"] == digests[1, "none"] != digests[4, "short"]
    assert [each["seats"] for each in row["conditions"] if each["n_bits_moved"]] == [4, 4, 8, 8, 8]


def test_where_an_answer_leaves_the_first_is_told() -> None:
    asked = parameters()
    finding = judge(answered(asked, flipping), asked)
    [row] = finding.numbers["workers"]
    [first, *_] = [each["first"] for each in row["conditions"] if each["first"]]
    assert first == {"prompt": 0, "position": 1}
    assert "First seen at batch size 2, with long" in describe_finding("determinism", finding.state, finding.numbers)


def test_each_worker_is_certified_by_itself() -> None:
    asked = parameters()
    finding = judge([*answered(asked, same), *answered(asked, drifting, worker=2)], asked)
    assert finding.state == "bits_move"
    assert [(row["worker"], row["is_certified"]) for row in finding.numbers["workers"]] == [(1, True), (2, False)]


def test_a_worker_that_went_before_its_last_round_is_not_certified() -> None:
    asked = parameters()
    gone = [call for call in answered(asked, same, worker=2) if call.round < 4]
    finding = judge([*answered(asked, same), *gone], asked)
    assert finding.state == "certified"
    assert [row["is_certified"] for row in finding.numbers["workers"]] == [True, False]
    assert judge(gone, asked).state == "incomplete"


def test_an_answer_that_did_not_come_certifies_nothing() -> None:
    asked = parameters()
    first, *rest = [call for call in answered(asked, same) if call.group == "copy"]
    lost = replace(first, token_ids=(), trace_digest="", error="out_of_memory: …")
    assert judge([lost, *rest], asked).state == "incomplete"
    assert judge([], asked).state == "incomplete"


def test_what_moved_is_told_whatever_else_did_not_come() -> None:
    asked = parameters()
    first, *rest = [call for call in answered(asked, flipping) if call.group == "copy"]
    lost = replace(first, token_ids=(), trace_digest="", error="out_of_memory: …")
    assert judge([lost, *rest], asked).state == "answers_move"


def test_a_batch_that_did_not_come_about_is_not_claimed() -> None:
    asked = parameters()
    calls = answered(asked, lambda call, condition: replace(same(call, condition), batch_max=min(condition.seats, 3)))
    finding = judge(calls, asked)
    assert finding.numbers["seats_reached"] == 3
    assert "batch sizes 1 to 3 of 8, as no batch was larger" in describe_finding(
        "determinism", finding.state, finding.numbers
    )
