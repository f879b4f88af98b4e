"""What a change says of other cases, by hand."""

import math
from pathlib import Path

import numpy as np
import pytest

from bench import measured_table, simulated_groups
from evalboard.core.release.reach import count_groups, find_reach
from evalboard.core.stats.quantiles import normal_quantile, student_quantile

ALONE = [""] * 800
PAGE = Path(__file__).resolve().parents[2] / "docs" / "verdict.md"


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
    assert found.low < 100 * (-10 / 802 - student_quantile(0.95, 79) * se)  # two groups are added
    assert found.low < alone.low
    assert (found.n_groups, found.n_groups_changed, found.is_concentrated) == (80, 1, True)


def test_groups_in_which_nothing_moved_do_not_make_the_interval_vanish() -> None:
    found = find_reach(np.zeros(100), [f"g{case // 10}" for case in range(100)])
    assert found is not None
    assert found.low < 0 < found.high
    assert not found.is_concentrated


def test_two_groups_are_added_so_that_a_few_that_did_not_move_promise_nothing() -> None:
    """20 groups of 4 in which nothing moved; with one more that rises and one that falls N is 88."""
    found = find_reach(np.zeros(80), [f"g{case // 4}" for case in range(80)])
    assert found is not None
    half = 100 * student_quantile(0.95, 21) * math.sqrt(22 / 21 * (4**2 + 4**2) / 88**2)
    assert (found.low, found.high) == (pytest.approx(-half), pytest.approx(half))
    assert half > 11


@pytest.mark.parametrize(("largest", "added"), [(0.0, 0.1), (0.05, 0.1), (0.4, 0.4)])
def test_groups_that_are_added_to_graded_scores_move_as_far_as_any_case(largest: float, added: float) -> None:
    """12 groups of 40 cases: N is 560."""
    moves = np.zeros(480)
    moves[0] = largest
    groups = [f"g{case // 40}" for case in range(480)]
    found, pass_fail = find_reach(moves, groups, is_graded=True), find_reach(moves, groups)
    assert found is not None
    assert pass_fail is not None
    centre = largest / 560
    off = (largest - 40 * centre) ** 2 + 11 * (40 * centre) ** 2 + 1600 * 2 * (added**2 + centre**2)
    assert found.high == pytest.approx(100 * (centre + student_quantile(0.95, 13) * math.sqrt(14 / 13 * off) / 560))
    assert found.high < pass_fail.high


@pytest.mark.parametrize(("n_groups", "is_known"), [(9, False), (10, True)])
def test_fewer_than_ten_groups_say_nothing_of_others(n_groups: int, is_known: bool) -> None:
    groups = [f"g{case % n_groups}" for case in range(60)]
    assert (find_reach(np.zeros(60), groups) is not None) == is_known
    assert count_groups(groups) == n_groups


def test_cases_without_groups_are_no_few_groups() -> None:
    assert find_reach(np.zeros(6), [""] * 6) is not None
    assert (count_groups([""] * 6), count_groups(["a", "b"]), count_groups(["a", "a", "", ""])) == (None, None, 3)


@pytest.mark.parametrize(("largest", "expected"), [(50, False), (51, True)])
def test_a_group_more_than_five_times_as_large_as_the_median_is_said(largest: int, expected: bool) -> None:
    groups = ["large"] * largest + [f"g{case % 20}" for case in range(200)]
    found = find_reach(np.zeros(len(groups)), groups)
    assert found is not None
    assert found.is_uneven is expected


def test_a_case_without_a_group_is_one_by_itself() -> None:
    found = find_reach(np.zeros(14), ["a", "a", *[""] * 10, "b", "b"])
    assert found is not None
    assert found.n_groups == 12


@pytest.mark.parametrize("n_suites", [60, pytest.param(500, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("claim", simulated_groups.CLAIMS, ids=lambda claim: claim.situation)
def test_intervals_of_groups_cover_the_true_change(claim: simulated_groups.GroupsClaim, n_suites: int) -> None:
    if claim.at_least is not None:
        assert claim.measure(n_suites) >= claim.at_least - 0.03


@pytest.mark.parametrize("claim", simulated_groups.CLAIMS, ids=lambda claim: claim.situation)
def test_the_page_has_what_was_measured(claim: simulated_groups.GroupsClaim) -> None:
    table = measured_table.table_of(PAGE.read_text(encoding="utf-8"))
    [line] = [line for line in table.splitlines() if line.startswith(f"| {claim.situation} |")]
    share = float(line.split(" | ")[1].removesuffix(" %")) / 100
    assert claim.at_least is None or share >= claim.at_least


@pytest.mark.parametrize(("moves", "groups"), [(np.zeros(5), ["a"] * 5), (np.zeros(1), [""]), (np.zeros(0), [])])
def test_one_group_says_nothing_of_others(moves: np.ndarray, groups: list[str]) -> None:
    assert find_reach(moves, groups) is None


def test_the_order_of_cases_changes_no_bit() -> None:
    rng = np.random.default_rng(8)
    moves = rng.normal(0, 0.2, 300).clip(-1, 1)
    groups = [f"g{case % 37}" if case % 5 else "" for case in range(300)]
    order = rng.permutation(300)
    assert find_reach(moves[order], [groups[case] for case in order]) == find_reach(moves, groups)
