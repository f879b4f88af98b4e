"""Which answers of a side are draws, and which are an earlier one given again."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evalboard.contract.run import Draws
from evalboard.core.compare import find_draws
from evalboard.core.stats import (
    EffectiveDraws,
    SideAnswers,
    count_left_out,
    effective_draws,
    is_left_out,
    make_mark,
)

N_CASES = 200
EXTERNAL = Draws(is_external=True)


def answers(texts: NDArray[np.int64], traces: NDArray[np.int64] | None = None, **more: Any) -> SideAnswers:
    """A side whose texts are told by number, and its bits too where it has logprobs."""
    digests = np.stack([texts + 1, texts + 1], axis=2).astype(np.uint64)
    bits = np.zeros_like(digests) if traces is None else np.stack([traces + 1, traces + 1], axis=2).astype(np.uint64)
    known: dict[str, Any] = {
        "is_there": np.ones(texts.shape, np.bool_),
        "marks": np.zeros(texts.shape, np.uint8),
        "draws": EXTERNAL,
        "is_steady": False,
    }
    return SideAnswers(texts=digests, traces=bits, **known | more)


def drawn(unstable: int = 40, k: int = 5, seed: int = 1) -> NDArray[np.int64]:
    """Independent repeats: the first cases have one of two texts each time, the others always one."""
    texts = np.zeros((N_CASES, k), np.int64)
    texts[:unstable] = np.random.default_rng(seed).integers(0, 2, (unstable, k))
    return texts


def n_copied(found: EffectiveDraws) -> list[int]:
    """By repeat."""
    return np.count_nonzero(is_left_out(found.marks), axis=0).tolist()


def test_independent_repeats_of_mostly_stable_cases_are_draws() -> None:
    found = effective_draws(answers(drawn()))
    assert (n_copied(found), found.n_draws, found.is_one_answer) == ([0] * 5, 5, False)


def test_a_cold_answer_and_four_copies_of_the_next_are_two_draws() -> None:
    texts = drawn()
    texts[:, 2:] = texts[:, 1:2]
    found = effective_draws(answers(texts))
    assert (n_copied(found), found.n_draws) == ([0, 0, N_CASES, N_CASES, N_CASES], 2)
    assert (found.does_first_differ, found.is_one_answer) == (True, False)


def test_one_copy_among_five_is_found_wherever_it_is() -> None:
    texts = drawn()
    texts[:, 3] = texts[:, 1]
    found = effective_draws(answers(texts))
    assert (n_copied(found), found.n_draws, found.does_first_differ) == ([0, 0, 0, N_CASES, 0], 4, False)


def test_two_answers_given_again_are_two_draws() -> None:
    texts = drawn()
    texts[:, 2:4], texts[:, 4] = texts[:, :2], texts[:, 0]
    assert effective_draws(answers(texts)).n_draws == 2


@pytest.mark.parametrize(("n_differing", "n_draws"), [(4, 5), (5, 3)])
def test_two_pairs_of_copies_show_in_five_cases(n_differing: int, n_draws: int) -> None:
    """One pair alone would take eight."""
    texts = np.zeros((N_CASES, 5), np.int64)
    # The repeat without a copy goes with one pair or the other.
    texts[:5] = [[0, 1, 0, 1, 0], [0, 1, 0, 1, 1], [0, 1, 0, 1, 0], [1, 0, 1, 0, 0], [0, 1, 0, 1, 1]]
    texts[n_differing:] = 0
    found = effective_draws(answers(texts))
    assert found.n_draws == pytest.approx(n_draws)
    assert n_copied(found) == ([0] * 5 if n_draws == 5 else [0, 0, N_CASES, N_CASES, 0])


def test_repeats_that_no_case_has_change_nothing_for_the_others() -> None:
    texts = np.zeros((N_CASES, 5), np.int64)
    texts[:3] = [[2, 0, 1, 2, 2], [2, 0, 1, 0, 0], [0, 0, 2, 2, 2]]
    texts[3:6] = [[2, 2, 2, 0, 0], [2, 0, 2, 2, 2], [1, 0, 1, 2, 2]]
    late = answers(np.insert(texts, [0, 0, 0], 7, axis=1))
    late.is_there[:, :3] = False
    assert n_copied(effective_draws(answers(texts))) == [0] * 5
    assert n_copied(effective_draws(late)) == [0] * 8


def test_one_rule_tells_a_run_and_a_comparison_which_batches_give_the_same_bits() -> None:
    """An unknown temperature vouches for no batch class, on either page."""
    side = answers(np.zeros((N_CASES, 5), np.int64))
    names = ("texts", "traces", "is_there", "marks")
    known = {name: getattr(side, name) for name in names}
    greedy, unknown = Draws(0.0, is_external=True), Draws(None, is_external=True)
    found = [find_draws(batch_classes=["alone"], draws=draws, **known) for draws in (greedy, unknown)]
    assert [each.is_one_answer for each in found] == [False, True]


def test_a_copy_that_differs_in_one_case_of_two_hundred_has_one_draw_more_there() -> None:
    texts = drawn()
    texts[:, 3] = texts[:, 1]
    texts[150, 3] = 7
    assert n_copied(effective_draws(answers(texts))) == [0, 0, 0, N_CASES - 1, 0]


def test_equal_repeats_are_one_answer() -> None:
    found = effective_draws(answers(np.zeros((N_CASES, 5), np.int64)))
    assert (found.is_one_answer, found.n_draws, n_copied(found)) == (True, 1, [0, *[N_CASES] * 4])


def test_equal_texts_with_bits_of_their_own_are_draws() -> None:
    texts = np.zeros((N_CASES, 5), np.int64)
    bits = np.arange(5 * N_CASES).reshape(N_CASES, 5)
    assert effective_draws(answers(texts, bits)).n_draws == 5
    bits[:, 4] = bits[:, 0]
    assert effective_draws(answers(texts, bits)).n_draws == 4


def test_repeats_count_where_an_independent_run_gave_the_same_answers() -> None:
    texts = np.zeros((N_CASES, 5), np.int64)
    usual = answers(np.zeros((N_CASES, 1), np.int64)).texts
    found = effective_draws(answers(texts, usual=usual))
    assert (found.n_draws, found.is_one_answer) == (5, False)
    usual[0] = 9  # in one case it gave another
    found = effective_draws(answers(texts, usual=usual))
    assert (found.n_draws, found.is_one_answer) == (1, True)


def test_a_first_repeat_that_alone_differs_in_two_cases_leaves_one_answer_more() -> None:
    texts = np.zeros((N_CASES, 5), np.int64)
    texts[:1, 0] = 1
    assert effective_draws(answers(texts)).n_draws == 5  # by chance in one of ten sides with one such case
    texts[:2, 0] = 1
    found = effective_draws(answers(texts))
    assert (found.n_draws, found.does_first_differ) == (2, True)
    texts[:2] = [0, 1, 0, 0, 0]  # nobody warms up second
    assert effective_draws(answers(texts)).n_draws == 5


@pytest.mark.parametrize(
    "changes",
    [{"is_steady": True}, {"draws": Draws(temperature=0.7)}],
    ids=["of a steady batch class", "sampled"],
)
def test_equal_repeats_count_where_each_was_computed(changes: dict[str, Any]) -> None:
    found = effective_draws(answers(np.zeros((N_CASES, 5), np.int64), **changes))
    assert (found.n_draws, found.is_one_answer) == (5, False)


def test_an_unknown_temperature_vouches_for_nothing() -> None:
    unknown = answers(np.zeros((N_CASES, 5), np.int64), draws=Draws(temperature=None, is_external=True))
    assert effective_draws(unknown).n_draws == 1


def test_on_our_own_engine_repeats_of_one_company_are_copies() -> None:
    same = answers(np.zeros((N_CASES, 5), np.int64), draws=Draws())
    assert effective_draws(replace(same, find_company=lambda: (1, 2, 3, 4, 5))).n_draws == 5
    assert effective_draws(replace(same, find_company=lambda: ("a", "a", "a", "b", "b"))).n_draws == 2
    moved = answers(np.arange(5 * N_CASES).reshape(N_CASES, 5), draws=Draws(), find_company=lambda: 1 / 0)
    assert effective_draws(moved).n_draws == 5  # whose company nobody has to look for


def test_marked_and_missing_answers_are_no_copies() -> None:
    texts = np.zeros((N_CASES, 5), np.int64)
    marks, is_there = np.zeros(texts.shape, np.uint8), np.ones(texts.shape, np.bool_)
    marks[:, 4], is_there[:5, 3] = make_mark(["cached"]), False
    found = effective_draws(answers(texts, marks=marks, is_there=is_there))
    scores = np.where(is_there, 1.0, np.nan)
    assert count_left_out(scores, found.marks) == {"cached": N_CASES, "copies": 3 * N_CASES - 5}
    assert found.is_one_answer


def test_the_order_of_cases_and_who_is_first_changes_nothing() -> None:
    texts = drawn()
    texts[:, 3] = texts[:, 1]
    turned = effective_draws(answers(texts[::-1]))
    assert np.array_equal(turned.marks[::-1], effective_draws(answers(texts)).marks)
