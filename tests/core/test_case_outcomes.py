"""Cases that changed, and how many of them chance alone would change: by hand, by simulation, and as promised."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from bench import measured_table
from bench.simulated import BATCHED, SEED
from bench.simulated_outcomes import AT_MOST, SITUATIONS, WILD, Broken, measure
from evalboard.core.stats.case_outcomes import OutcomeIndexes, find_case_outcomes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verdict.md"


def passes(*n_passed: tuple[int, int], k: int = 5) -> OutcomeIndexes:
    """The outcomes of cases that passed so many of k times, on the baseline and on the candidate."""
    sides = [[[1.0] * n + [0.0] * (k - n) for n in side] for side in zip(*n_passed, strict=True)]
    return find_case_outcomes(np.array(sides[0]), np.array(sides[1]))


def test_cases_that_changed_moved_by_three_fifths_at_the_least() -> None:
    found = passes((5, 2), (3, 2), (0, 3), (3, 0), (1, 4))
    assert (found.fixed.tolist(), found.broken.tolist()) == ([2, 4], [0, 3])


def test_outcomes_come_with_the_furthest_moved_first() -> None:
    """3 of 5 less is broken and 2 of 5 is not; a case that broke is not unstable too."""
    found = passes((5, 3), (5, 2), (5, 0), (5, 4), (0, 5), (5, 5))
    assert (found.broken.tolist(), found.fixed.tolist(), found.unstable.tolist()) == ([2, 1], [4], [0, 3])


def test_of_one_repeat_no_case_is_unstable_and_no_chance_is_known() -> None:
    found = find_case_outcomes(np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]]))
    assert (found.broken.tolist(), found.fixed.tolist(), found.unstable.tolist()) == ([0], [1], [])
    assert np.isnan(found.chances).all()
    assert (found.counts.broken_by_chance, found.counts.fixed_by_chance, found.is_beyond_chance.any()) == (
        None,
        None,
        False,
    )


def test_the_chance_is_counted_from_all_ways_to_deal_the_answers() -> None:
    """Of 10 answers of which 7 are right, 21 of 252 deals give the baseline all 5 and the candidate 2."""
    found = passes((5, 2), (5, 5), (0, 0))
    [chance] = found.chances[found.broken]
    right = [sum(at < 7 for at in deal) for deal in combinations(range(10), 5)]
    assert right.count(2) == 21
    assert chance == pytest.approx(21 / 252 / 3)
    assert found.counts.broken_by_chance is not None
    assert (found.counts.broken_by_chance.n_beyond, found.counts.broken_by_chance.n_expected) == (1, 0.0)


def test_a_case_among_many_that_waver_may_be_chance() -> None:
    found = passes((5, 1), *[(3, 2), (2, 3)] * 20, *[(5, 5)] * 60)
    assert found.counts.broken_by_chance is not None
    assert (found.counts.broken_by_chance.n_beyond, found.is_beyond_chance.any()) == (0, False)
    assert found.counts.broken_by_chance.n_expected == pytest.approx((40 * 26 + 50) / 252, rel=0.05)


@pytest.mark.parametrize("k", [(5, 5), (5, 3)], ids=["as-many", "fewer"])
@pytest.mark.parametrize("graded", [False, True], ids=["pass-fail", "graded"])
def test_sides_mirror_and_no_order_changes_a_digit(k: tuple[int, int], graded: bool) -> None:
    rng = np.random.default_rng(SEED)
    chances = rng.random((200, 1))
    ours, theirs = ((rng.random((200, n)) < chances).astype(float) for n in k)
    if graded:
        ours, theirs = 0.9 * ours + 0.1 * rng.random(ours.shape), 0.9 * theirs + 0.1 * rng.random(theirs.shape)
    ours[7, 0] = np.nan
    found, order = find_case_outcomes(ours, theirs), rng.permutation(200)
    again = find_case_outcomes(ours[order][:, ::-1], theirs[order])
    mirrored = find_case_outcomes(theirs, ours)
    assert found.counts.broken_by_chance == again.counts.broken_by_chance == mirrored.counts.fixed_by_chance
    np.testing.assert_array_equal(again.chances, found.chances[order])
    np.testing.assert_array_equal(mirrored.chances, found.chances)


def test_graded_scores_have_the_chances_of_pass_and_fail() -> None:
    rng = np.random.default_rng(SEED)
    chances = rng.random((400, 1))
    ours, theirs = ((rng.random((400, 3)) < chances).astype(float) for _ in range(2))
    exact, drawn = find_case_outcomes(ours, theirs), find_case_outcomes(0.95 * ours, 0.95 * theirs)
    assert exact.counts.broken_by_chance is not None
    assert drawn.counts.broken_by_chance is not None
    assert drawn.counts.broken_by_chance.n_expected == pytest.approx(exact.counts.broken_by_chance.n_expected)


@pytest.mark.drawn
@pytest.mark.parametrize("situation", [Broken(BATCHED, 5, 4), Broken(WILD, 5, 0)], ids=lambda each: each.name)
def test_of_the_marks_few_are_chance(situation: Broken) -> None:
    found = measure(situation, 150)
    assert found.false_share <= AT_MOST + 0.04  # two standard errors of so few pairs
    assert found.n_expected == pytest.approx(found.n_by_chance, rel=0.15)


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.name)
def test_the_page_has_what_was_measured_of_cases(situation: Broken) -> None:
    table = measured_table.table_of(PAGE.read_text(encoding="utf-8"))
    [line] = [line for line in table.splitlines() if line.startswith(f"| {situation.name} | ")]
    false_share = float(line.split(" | ")[1].removesuffix(" %"))
    assert false_share <= 100 * AT_MOST


def test_of_repeats_that_give_the_same_bits_each_time_no_chance_is_counted() -> None:
    ours, theirs = np.ones((20, 5)), np.ones((20, 5))
    theirs[:3] = 0
    found = find_case_outcomes(ours, theirs, is_steady=True)
    assert (found.counts.broken, found.counts.is_in_every_repeat) == (3, True)
    assert (found.counts.broken_by_chance, found.is_beyond_chance.any(), np.isnan(found.chances).all()) == (
        None,
        False,
        True,
    )
    theirs[0, 0] = 1  # where they differ all the same, chance is counted as ever
    found = find_case_outcomes(ours, theirs, is_steady=True)
    assert found.counts.is_in_every_repeat is None
    assert found.counts.broken_by_chance is not None
