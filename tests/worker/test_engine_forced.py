"""The real vLLM on given answers: their logprobs in one pass, which tokens are scored, and what is refused."""

from dataclasses import replace

import pytest

from evalboard.core.trace import Decoded, Failed, Forced
from tests.worker.engine_cases import QUESTIONS, Running, by_index, decoded, forced, given, requests

pytestmark = [pytest.mark.engine, pytest.mark.nightly]

TOKENS_DECODED = 40  # of each answer: some end by themselves, others are cut


@pytest.fixture(scope="module")
def answers(pinned: Running) -> list[Decoded]:
    outcomes = by_index(pinned.engine.decode(requests(pinned.plan, max_tokens=TOKENS_DECODED)))
    return [decoded(outcomes[index]) for index in range(len(QUESTIONS))]


def test_a_second_pass_and_another_order_give_the_same_bits(pinned: Running, answers: list[Decoded]) -> None:
    wanted = [given(answer, pinned) for answer in answers]
    first, second = forced(pinned, wanted), forced(pinned, wanted[::-1])
    assert {place: each.trace.digest for place, each in first.items()} == {
        place: each.trace.digest for place, each in second.items()
    }


def test_a_token_that_the_stack_would_not_have_chosen_has_its_choice_beside_it(
    pinned: Running, answers: list[Decoded]
) -> None:
    answer = answers[0]
    ids = answer.trace.token_ids.tolist()
    other = int(answer.trace.alternative_ids[1, 1])
    swapped = replace(given(answer, pinned), answer_token_ids=[ids[0], other, *ids[2:]])
    trace = forced(pinned, [swapped])[0].trace
    assert int(trace.token_ids[1]) == other
    assert trace.alternative_ids[1].tolist() == answer.trace.alternative_ids[1].tolist()
    assert trace.logprobs[1] == trace.alternative_logprobs[1, 1] < trace.alternative_logprobs[1, 0]
    untouched = forced(pinned, [given(answer, pinned)])[0].trace
    assert trace.logprobs[0] == untouched.logprobs[0]
    assert trace.logprobs[2:].tolist() != untouched.logprobs[2:].tolist()  # they follow another token


def test_text_and_messages_stand_in_where_no_ids_are_known(pinned: Running, answers: list[Decoded]) -> None:
    answer = next(each for each in answers if each.finish_reason == "length")
    by_ids = given(answer, pinned)
    by_text = replace(by_ids, prompt_token_ids=None, answer_token_ids=None, answer_text=answer.text)
    ours, theirs = (forced(pinned, [each])[answer.case_index].trace for each in (by_ids, by_text))
    assert theirs.digest == ours.digest
    assert theirs.prompt_token_ids is not None
    assert theirs.prompt_token_ids.tolist() == by_ids.prompt_token_ids


def test_an_end_token_is_not_added_to_a_text(pinned: Running, answers: list[Decoded]) -> None:
    answer = next(each for each in answers if each.finish_reason == "stop")
    by_text = replace(given(answer, pinned), answer_token_ids=None, answer_text=answer.text)
    trace = forced(pinned, [by_text])[answer.case_index].trace
    assert trace.token_ids.tolist() == answer.trace.token_ids.tolist()[:-1]


def test_what_cannot_be_scored_is_refused_and_the_others_go_on(pinned: Running, answers: list[Decoded]) -> None:
    good = given(answers[0], pinned)
    wanted = [
        replace(good, place=1, answer_token_ids=[], answer_text=""),
        replace(good, place=2, prompt_token_ids=[], answer_token_ids=[42]),
        replace(good, place=3, answer_token_ids=[42] * 600),
        replace(good, place=4, answer_token_ids=None, answer_text=""),
        replace(good, place=5),
    ]
    outcomes = {
        each.place if isinstance(each, Forced) else each.case_index: each for each in pinned.engine.force(wanted)
    }
    codes = {place: each.code for place, each in outcomes.items() if isinstance(each, Failed)}
    assert codes == {1: "not_rebuilt", 2: "prompt_empty", 3: "prompt_too_long", 4: "not_rebuilt"}
    assert isinstance(outcomes[5], Forced)


def test_decoding_is_left_as_it_was(pinned: Running, answers: list[Decoded]) -> None:
    again = by_index(pinned.engine.decode(requests(pinned.plan, max_tokens=TOKENS_DECODED)))
    assert [decoded(again[each.case_index]).trace.digest for each in answers] == [each.trace.digest for each in answers]
