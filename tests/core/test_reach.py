"""What a change says of other cases, by hand."""

import math

import numpy as np
import pytest

from evalboard.core.release.reach import find_reach
from evalboard.core.stats.quantiles import normal_quantile, student_quantile

ALONE = [""] * 800


def test_two_cases_are_added_so_that_no_change_seen_is_not_none_elsewhere() -> None:
    """Σ d² = 2 over 802 cases: the standard error is sqrt(2 / 801 / 802)."""
    found = find_reach(np.zeros(800), ALONE)
    assert found is not None
    half = 100 * student_quantile(0.95, 801) * math.sqrt(2 / 801 / 802)
    assert (found.low, found.high, found.level) == (pytest.approx(-half), pytest.approx(half), 0.9)
    assert half == pytest.approx(0.29, abs=0.01)


def test_churn_of_six_percent_resolves_what_the_table_says() -> None:
    moves = np.zeros(800)
    moves[:24], moves[24:48] = 1, -1
    found = find_reach(moves, ALONE)
    assert found is not None
    assert found.resolution_points == pytest.approx(2.2, abs=0.05)
    se = math.sqrt(50 / 801 / 802)
    assert found.resolution_points == pytest.approx(100 * (normal_quantile(0.95) + normal_quantile(0.8)) * se)
    assert (found.n_groups, found.n_groups_changed, found.design_effect) == (800, 48, 1.0)
    assert not found.is_concentrated


def test_cases_of_a_group_count_as_one() -> None:
    """80 groups of 10; one group moves as a whole: its ten cases are one piece of luck."""
    moves = np.zeros(800)
    moves[:10] = -1
    groups = [f"g{case // 10}" for case in range(800)]
    found = find_reach(moves, groups)
    alone = find_reach(moves, ALONE)
    assert found is not None
    assert alone is not None
    mean = -10 / 800
    off = (-10 - 10 * mean) ** 2 + 79 * (10 * mean) ** 2
    se = math.sqrt(80 / 79 * off) / 800
    assert found.design_effect == pytest.approx((se / math.sqrt((10 + 2 - 802 * (10 / 802) ** 2) / 801 / 802)) ** 2)
    assert found.low == pytest.approx(100 * (-10 / 802 - student_quantile(0.95, 79) * se))
    assert found.low < alone.low
    assert (found.n_groups, found.n_groups_changed, found.is_concentrated) == (80, 1, True)


def test_groups_in_which_nothing_moved_do_not_make_the_interval_vanish() -> None:
    found = find_reach(np.zeros(100), [f"g{case // 10}" for case in range(100)])
    assert found is not None
    assert found.low < 0 < found.high
    assert not found.is_concentrated


def test_a_case_without_a_group_is_one_by_itself() -> None:
    found = find_reach(np.zeros(6), ["a", "a", "", "", "b", "b"])
    assert found is not None
    assert found.n_groups == 4


@pytest.mark.parametrize(("moves", "groups"), [(np.zeros(5), ["a"] * 5), (np.zeros(1), [""]), (np.zeros(0), [])])
def test_one_group_says_nothing_of_others(moves: np.ndarray, groups: list[str]) -> None:
    assert find_reach(moves, groups) is None


def test_the_order_of_cases_changes_no_bit() -> None:
    rng = np.random.default_rng(8)
    moves = rng.normal(0, 0.2, 300).clip(-1, 1)
    groups = [f"g{case % 37}" if case % 5 else "" for case in range(300)]
    order = rng.permutation(300)
    assert find_reach(moves[order], [groups[case] for case in order]) == find_reach(moves, groups)
