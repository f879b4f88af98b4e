"""Answers that are no draws: out of a cache, or after a fallback."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evalboard.core.release import verdict
from evalboard.core.release.gate import GateQuestion
from evalboard.core.release.sides import choose_common_look
from evalboard.core.stats import COPIED, live_answers
from tests.core.questions import PAIRED, STRICT, question, reasons, runs, warnings

CACHED, FALLBACK, RETRIED = (live_answers.make_mark([name]) for name in live_answers.MARKS)


def marked(mark: int, where: Any, n_cases: int = 800, k: int = 5) -> NDArray[np.uint8]:
    marks = np.zeros((n_cases, k), np.uint8)
    marks[where] = mark
    return marks


def unsteady(seed: int = 1, n_cases: int = 800, k: int = 5) -> NDArray[np.float64]:
    """Scores of which every eighth case flips by itself."""
    scores = runs(*[n_cases // 2] * k, n_cases=n_cases)
    scores[::8] = np.random.default_rng(seed).integers(0, 2, scores[::8].shape)
    return scores


def one_draw_in_five(n_cases: int = 800) -> GateQuestion:
    """A candidate of which each case was answered once, and four times out of the cache."""
    candidate = unsteady(2, n_cases)
    candidate[:, 1:] = candidate[:, :1]
    return question(unsteady(1, n_cases), candidate, marks_candidate=marked(CACHED, np.s_[:, 1:], n_cases))


def test_marks_come_back_by_name_in_one_order() -> None:
    assert live_answers.list_mark_names(live_answers.make_mark(["retried", "cached", "cached"])) == (
        "cached",
        "retried",
    )
    assert live_answers.list_mark_names(0) == ()
    with pytest.raises(ValueError, match="not in tuple"):
        live_answers.make_mark(["lucky"])


def test_what_was_tried_again_is_a_draw_and_each_answer_is_counted_once() -> None:
    marks = np.array([[CACHED | FALLBACK, RETRIED], [FALLBACK, 0]], np.uint8)
    assert live_answers.is_left_out(marks).tolist() == [[True, False], [True, False]]
    assert live_answers.count_left_out(np.ones((2, 2)), marks) == {"cached": 1, "fallback": 1}


def test_a_side_has_the_draws_that_its_noise_is_divided_by() -> None:
    scores = np.ones((4, 5))
    assert live_answers.read_draws(scores).n_draws == 5
    # One case in four with 2 draws of 5: 4 / (3/5 + 1/2) = 3.6.
    few = live_answers.read_draws(scores, marked(CACHED, np.s_[0, 2:], 4))
    assert (few.n_draws, few.is_missing.any()) == (4, False)
    none = live_answers.read_draws(scores, marked(CACHED, np.s_[:, :], 4))
    assert (none.n_draws, none.scores.shape) == (0, (4, 0))


def test_a_repeat_of_cached_answers_is_no_repeat() -> None:
    once = live_answers.read_draws(np.ones((4, 5)), marked(CACHED, np.s_[:, 1:], 4))
    assert (once.n_draws, once.scores.shape) == (1, (4, 1))


@pytest.mark.parametrize("policy", [STRICT, PAIRED])
def test_one_draw_and_four_cached_answers_ship_nothing(policy: Any) -> None:
    found = verdict.judge_gate(one_draw_in_five(), policy)
    assert (found.verdict, [line.code for line in found.reasons]) == ("inconclusive", ["cached"])
    assert reasons(found)[0] == (
        "3,200 responses of the candidate came from a cache. Such answers do not show the model's own noise. "
        "Without them the candidate has 1 repeat and the baseline 5, and a verdict takes 5."
    )
    assert [line.code for line in found.next] == ["run_uncached"]
    assert (found.k_baseline, found.k_candidate, found.look) == (5, 1, None)
    assert (found.candidate.noise.sd_points, found.candidate.noise.disagreement_rate) == (None, None)
    assert (found.missing.n_candidate, found.missing.low) == (0, None)


def test_a_whole_log_out_of_a_cache_has_no_draw() -> None:
    found = verdict.judge_gate(question(unsteady(), unsteady(), marks_baseline=marked(CACHED, np.s_[:, :])), PAIRED)
    assert (found.verdict, found.reasons[0].code, found.difference) == ("inconclusive", "cached", None)
    assert "the candidate has 5 repeats and the baseline 0" in reasons(found)[0]


def test_a_few_of_them_are_left_out_with_a_warning_and_the_rest_decides() -> None:
    candidate = unsteady(2)
    marks = marked(CACHED, np.s_[:40, 1]) | marked(FALLBACK, np.s_[700, :])
    candidate[live_answers.is_left_out(marks)] = 1 - candidate[live_answers.is_left_out(marks)]  # whatever they say
    found = verdict.judge_gate(question(unsteady(), candidate, marks_candidate=marks), PAIRED)
    without = unsteady(2)
    without[live_answers.is_left_out(marks)] = np.nan
    clean = verdict.judge_gate(question(unsteady(), without), PAIRED)
    assert (found.look, found.n_cases_judged, found.difference) == (5, 799, clean.difference)
    assert (found.low, found.high) == (clean.low, clean.high)
    assert found.verdict == "ship"
    assert warnings(found, "cached") == [
        "40 responses of the candidate came from a cache and 5 from a fallback. The verdict leaves them out. "
        "1 case has no other answer."
    ]
    assert (found.missing.n_candidate, found.missing.low) == (0, None)  # nothing of them is missing
    assert (clean.missing.n_candidate, clean.missing.low is None) == (45, False)


def test_more_than_one_case_in_a_hundred_without_a_draw_decides_nothing() -> None:
    asked = question(unsteady(), unsteady(2), marks_candidate=marked(FALLBACK, np.s_[:9, :]))
    found = verdict.judge_gate(asked, PAIRED)
    assert (found.verdict, found.reasons[0].code) == ("inconclusive", "fallback")
    assert reasons(found)[0] == (
        "45 responses of the candidate came from a fallback. Such answers do not show the model's own noise. "
        "Without them 9 of 800 cases have no answer on at least one side. A verdict needs 99 % of the cases."
    )
    assert [line.code for line in found.next] == ["pin_backend"]
    eight = question(unsteady(), unsteady(2), marks_candidate=marked(FALLBACK, np.s_[:8, :]))
    assert verdict.judge_gate(eight, PAIRED).verdict == "ship"


def test_a_missing_response_beside_a_cached_one_is_still_filled_both_ways() -> None:
    candidate, marks = unsteady(2), marked(CACHED, np.s_[0, :4])
    candidate[0, 4] = np.nan
    found = verdict.judge_gate(question(unsteady(), candidate, marks_candidate=marks), PAIRED)
    assert found.missing.n_candidate == 1
    assert found.missing.low is not None
    assert found.low is not None
    assert found.missing.low < found.low


def test_fewer_draws_of_some_cases_widen_the_interval() -> None:
    marks = marked(CACHED, np.s_[::4, 3:])
    candidate = unsteady(2)
    whole, fewer = (
        verdict.judge_gate(question(unsteady(), candidate, **given), PAIRED)
        for given in ({}, {"marks_candidate": marks})
    )
    assert whole.low is not None
    assert fewer.low is not None
    assert whole.high is not None
    assert fewer.high is not None
    assert fewer.look is None or fewer.high - fewer.low > whole.high - whole.low


def test_copies_are_the_reason_where_repeats_are_too_few_as_well() -> None:
    marks = marked(live_answers.make_mark([COPIED]), np.s_[:, 1:], k=3)
    found = verdict.judge_gate(question(unsteady(k=3), unsteady(2, k=3), marks_candidate=marks), PAIRED)
    assert reasons(found) == [
        "The 3 repeats of the candidate count as one sample. The others are copies. "
        "A verdict takes 5 samples on each side."
    ]
    assert (found.next[-1].code, found.next[-1].facts) == ("add_repeats", {"repeats": 5})


def test_what_a_cache_answers_is_no_reason_where_repeats_are_too_few_anyway() -> None:
    asked = question(unsteady(k=3), unsteady(2, k=3), marks_candidate=marked(CACHED, np.s_[0, 1:], k=3))
    found = verdict.judge_gate(asked, PAIRED)
    assert found.reasons[0].code == "too_few_repeats"
    assert "cached" in [line.code for line in found.warnings]


def test_a_checkpoint_needs_as_many_draws_among_its_own_repeats_of_each_side() -> None:
    """Six repeats with one answer of each case that is no draw are five draws; they may be no checkpoint of five."""
    whole = live_answers.read_draws(np.ones((8, 6)))
    early, late = (np.zeros((8, 6), np.uint8) for _ in range(2))
    early[:4, 0] = early[4:, 1] = late[:, 5] = CACHED
    for marks, look in ((late, 5), (early, None)):
        lacking = live_answers.read_draws(np.ones((8, 6)), marks)
        assert lacking.n_draws == 5
        assert choose_common_look(PAIRED, [whole, lacking]) == look
