"""The ledger adds up: to the difference exactly, and to the shown difference in shown tenths."""

import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from evalboard.core.compare.cause import CAUSE_CODES, CAUSES
from evalboard.core.compare.known_pair import RequestSettings
from evalboard.core.compare.ledger import (
    NO_LEDGER,
    PARTS,
    SPLIT_CAUSES,
    Ledger,
    find_look,
    make_ledger,
    round_to_tenths,
)
from evalboard.core.compare.pairing import pair_runs
from evalboard.core.compare.side_columns import judge_by_other
from evalboard.core.stats import difference_points
from evalboard.wording.numbers import signed
from tests.core.questions import ASKED

NAN = math.nan
PAGE = (Path(__file__).resolve().parents[2] / "docs" / "divergence.md").read_text()


def ledger(
    baseline: list,
    candidate: list,
    causes: list[str],
    alike: list | None = None,
    looks: list[str] | None = None,
    baseline_alike: list | None = None,
) -> Ledger:
    """The ledger of scores where each case has one cause, and looks like one. alike: by the other side's scorer."""
    ours, theirs = np.array(baseline, np.float64), np.array(candidate, np.float64)
    pairing = pair_runs(~np.isnan(ours), ~np.isnan(theirs))
    codes, seen = (
        np.array([PARTS.index(each[case]) for case in pairing.cases], np.uint8) for each in (causes, looks or causes)
    )
    by_other = tuple(None if each is None else np.array(each, np.float64) for each in (baseline_alike, alike))
    return make_ledger(ours, theirs, pairing, codes, seen, by_other)


def test_five_repeats_against_three() -> None:
    found = ledger(
        [[1, 1, 1, 1, 1], [1, 1, 0, 1, 1], [0, 0, 0, 0, 0]],
        [[0, 0, 0], [1, 0, 1], [1, 1, 0]],
        ["backend_changed", "near_tie", "whitespace"],
    )
    points = {row.cause: row.points for row in found.rows}
    assert points == pytest.approx({"backend_changed": -100 / 3, "near_tie": -400 / 90, "whitespace": 200 / 9})
    assert found.score.difference == pytest.approx(400 / 9 - 60)


def test_the_change_is_the_one_that_a_verdict_judges() -> None:
    """To the bit, of runs whose means are no binary fractions: a subtraction of means misses it by a hair."""
    rng = np.random.default_rng(7)
    for _ in range(50):
        ours, theirs = rng.integers(0, 2, (60, 5)).astype(float), rng.integers(0, 2, (60, 3)).astype(float)
        assert ledger(ours.tolist(), theirs.tolist(), ["near_tie"] * 60).score.difference == difference_points(
            ours, theirs
        )


def test_a_row_and_its_parts_know_the_noise_of_the_cases_that_they_count() -> None:
    ours, theirs = np.ones((4, 1)), np.array([[0.0], [0.0], [1.0], [0.0]])
    pairing = pair_runs(~np.isnan(ours), ~np.isnan(theirs))
    codes = np.full(4, PARTS.index("model_changed"), np.uint8)
    looks = np.array([PARTS.index(look) for look in ("near_tie", "length", "near_tie", "near_tie")], np.uint8)
    [row] = make_ledger(ours, theirs, pairing, codes, looks, noise_of=lambda cases: float(cases.sum())).rows
    assert (row.noise, {part.cause: part.noise for part in row.parts}) == (4.0, {"near_tie": 3.0, "length": 1.0})
    assert [row.noise for row in make_ledger(ours, theirs, pairing, codes, looks).rows] == [None]


def test_the_pages_own_example_is_what_the_code_gives() -> None:
    """docs/divergence.md: a table of two cases, and the rows that follow from it."""
    cases = re.findall(r"^\| `(\w+)` \| ([\d, ]+) \| ([\d, ]+) \| (\w+) \|$", PAGE, re.MULTILINE)
    rows = re.findall(r"^\| (\w+) \| (\d+) \| ([+−][\d.]+) \| ([+−]?[\d.]+) \| ([+−]?[\d.]+) \|$", PAGE, re.MULTILINE)
    assert len(cases) == 4
    baseline, candidate = ([[float(score) for score in case[side].split(",")] for case in cases] for side in (1, 2))
    found = ledger(baseline, candidate, [case[3] for case in cases])
    written = [(cause, int(n), *(float(value.replace("−", "-")) for value in points)) for cause, n, *points in rows]
    assert written == [
        (row.cause, row.n_cases, round(row.points, 2), round(row.gained, 2), round(row.lost, 2)) for row in found.rows
    ]


@st.composite
def scored(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n, a, b = draw(st.integers(0, 6)), draw(st.integers(0, 5)), draw(st.integers(0, 5))
    scores = st.sampled_from([0.0, 1.0, NAN]) | st.floats(0, 1)
    sides = [draw(arrays.arrays(np.float64, (n, k), elements=scores)) for k in (a, b, b)]
    return sides[0], sides[1], sides[2]


@given(scored(), st.randoms(use_true_random=False))
def test_the_rows_sum_to_the_difference_of_the_means_whatever_is_missing(
    sides: tuple[np.ndarray, np.ndarray, np.ndarray], random
) -> None:
    baseline, candidate, alike = sides
    pairing = pair_runs(~np.isnan(baseline), ~np.isnan(candidate))
    codes = np.array([random.randrange(len(CAUSES)) for _ in range(len(pairing))], np.uint8)
    looks = np.array([random.randrange(len(PARTS)) for _ in range(len(pairing))], np.uint8)
    by_candidate = np.where(np.isnan(baseline), np.nan, 1 - baseline)
    for other_scorer in ((None, None), (None, alike), (by_candidate, None), (by_candidate, alike)):
        found = make_ledger(baseline, candidate, pairing, codes, looks, other_scorer)
        means = exact_means(baseline, candidate)
        if means is None:
            assert found == NO_LEDGER
            continue
        assert found.score.difference == pytest.approx(float(means[1] - means[0]), abs=1e-9)
        assert sum(row.points for row in found.rows) == pytest.approx(found.score.difference, abs=1e-9)
        assert all(row.points == pytest.approx(row.gained + row.lost, abs=1e-9) for row in found.rows)
        assert all(row.lost <= 0 <= row.gained for row in found.rows)
        assert all(row.parts for row in found.rows if row.cause in SPLIT_CAUSES)
        for row in found.rows:
            for name in ("points", "gained", "lost") if row.parts else ():
                whole = getattr(row, name)
                assert sum(getattr(part, name) for part in row.parts) == pytest.approx(whole, abs=1e-9)


def exact_means(baseline: np.ndarray, candidate: np.ndarray) -> tuple[Fraction, Fraction] | None:
    """Both sides' points by the definition, in fractions."""
    cases = [
        case for case in range(len(baseline)) if all((~np.isnan(side[case])).any() for side in (baseline, candidate))
    ]
    if not cases:
        return None
    means = []
    for side in (baseline, candidate):
        known = [[Fraction(score) for score in side[case].tolist() if not math.isnan(score)] for case in cases]
        means.append(100 * sum((sum(scores) / len(scores) for scores in known), Fraction(0)) / len(cases))
    return means[0], means[1]


@given(scored(), st.randoms(use_true_random=False))
def test_no_digit_depends_on_the_order_of_cases(sides: tuple[np.ndarray, np.ndarray, np.ndarray], random) -> None:
    order = list(range(len(sides[0])))
    random.shuffle(order)
    found = []
    for baseline, candidate in ((sides[0], sides[1]), (sides[0][order], sides[1][order])):
        pairing = pair_runs(~np.isnan(baseline), ~np.isnan(candidate))
        # A cause that depends on the scores only, so that it moves with its case.
        moved = candidate[pairing.cases, pairing.candidate_repeats] > baseline[pairing.cases, pairing.baseline_repeats]
        codes = np.where(moved, CAUSE_CODES["backend_changed"], CAUSE_CODES["near_tie"]).astype(np.uint8)
        found.append(make_ledger(baseline, candidate, pairing, codes, codes))
    assert found[0] == found[1]


def test_gains_and_losses_of_a_cause_are_kept_apart_and_cases_counted_once() -> None:
    found = ledger([[0, 1], [1, 1], [1, 1]], [[1, 0], [0, 0], [1, 1]], ["near_tie"] * 3)
    (row,) = found.rows
    assert (row.cause, row.n_cases) == ("near_tie", 2)
    assert (row.gained, row.lost, row.points) == pytest.approx((50 / 3, -50, -100 / 3))


def test_points_of_another_stack_are_split_by_what_its_pairs_look_like() -> None:
    found = ledger(
        [[1, 1], [1, 1], [0, 0], [1, 1]],
        [[0, 0], [0, 1], [1, 1], [0, 0]],
        ["backend_changed", "backend_changed", "backend_changed", "near_tie"],
        looks=["larger_shift", "near_tie", "near_tie", "near_tie"],
    )
    tie, changed = found.rows[1], found.rows[0]
    assert (changed.cause, changed.points, tie.cause, tie.parts) == ("backend_changed", -12.5, "near_tie", ())
    parts = [(part.cause, part.n_cases, part.points, part.gained, part.lost) for part in changed.parts]
    assert parts == [("near_tie", 2, 12.5, 25.0, -12.5), ("larger_shift", 1, -25.0, 0.0, -25.0)]


def test_confounded_points_stand_apart_whatever_the_cause() -> None:
    found = ledger([[1], [1]], [[0], [0]], ["prompt_mismatch"] * 2, looks=["confounded", "prompt_mismatch"])
    parts = [(part.cause, part.points) for part in found.rows[0].parts]
    assert parts == [("prompt_mismatch", -50.0), ("confounded", -50.0)]
    assert PARTS[find_look("model_changed", "near_tie", is_confounded=True)] == "confounded"
    assert PARTS[find_look("model_changed", None, is_confounded=False)] == "unknown"


def test_what_another_scorer_moved_goes_to_the_scorer_and_the_rest_to_the_cause() -> None:
    """0 → 1, of which the new scorer alone gave 0.75; and 1 → 0.5, which the other scorer has not read."""
    found = ledger([[0.0], [1.0]], [[1.0], [0.5]], ["near_tie", "larger_shift"], [[0.25], [NAN]])
    points = {row.cause: row.points for row in found.rows}
    assert points == pytest.approx({"near_tie": 12.5, "larger_shift": -25, "scorer": 37.5})
    assert found.score.difference == pytest.approx(25)


def test_the_baseline_by_the_candidates_scorer_says_the_same() -> None:
    """A team tries its new parser on the baseline's answers; the old one is on no worker any more."""
    found = ledger([[0.0], [1.0]], [[1.0], [0.0]], ["near_tie", "near_tie"], baseline_alike=[[0.75], [NAN]])
    assert {row.cause: row.points for row in found.rows} == {"near_tie": -37.5, "scorer": 37.5}


SCORES = st.sampled_from([0.0, 0.25, 1.0])


@given(arrays.arrays(np.float64, (3, 6, 2), elements=SCORES), st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_the_scorers_points_are_in_the_ledger_or_in_the_warning_and_nowhere_twice(
    scores: np.ndarray, places: list[int]
) -> None:
    """Until the baseline is judged by the candidate's scorer the ledger has them, then the shift of its setup."""
    own, other, theirs = scores
    causes = [("near_tie", "larger_shift", "whitespace", "length")[place] for place in places]
    parted = ledger(own.tolist(), theirs.tolist(), causes, baseline_alike=other.tolist())
    fields = {"setup": ASKED, "settings": RequestSettings(512, (), 0.0, False, {}, False)}
    scorer = SimpleNamespace(digest="0" * 64, spec={"default": {"kind": "exact"}, "cases": {}})
    setup = judge_by_other(fields, scorer, own, other)["setup"]
    shift = setup.scorer_shift
    assert (setup.scorer_digest, shift.own_digest) == (scorer.digest, ASKED.scorer_digest)
    assert shift.n_cases == np.count_nonzero((own != other).any(axis=1))
    shared = ledger(other.tolist(), theirs.tolist(), causes)
    points = {row.cause: row.points for row in parted.rows}
    assert points.pop("scorer", 0.0) == pytest.approx(shift.points)
    assert {row.cause: row.points for row in shared.rows if abs(row.points) > 1e-9} == pytest.approx(
        {cause: moved for cause, moved in points.items() if abs(moved) > 1e-9}
    )
    assert shared.score.difference == pytest.approx(parted.score.difference - shift.points)
    two = judge_by_other({**fields, "setup": replace(ASKED, served=ASKED.served * 2)}, scorer, own, other)
    assert two["setup"].scorer_shift.points is None, "no number is made of two buckets"


def test_a_case_missing_on_one_side_is_in_no_mean() -> None:
    found = ledger([[1, 1], [1, NAN]], [[NAN, NAN], [0, 1]], ["error", "near_tie"])
    assert (found.score.baseline, found.score.candidate) == (100, 50)
    assert [row.cause for row in found.rows] == ["near_tie"]


def test_causes_that_moved_nothing_have_no_row() -> None:
    assert ledger([[1], [0]], [[1], [0]], ["near_tie", "larger_shift"]).rows == ()


def test_a_cause_too_few_is_refused() -> None:
    pairing = pair_runs(np.ones((2, 1), np.bool_), np.ones((2, 1), np.bool_))
    with pytest.raises(ValueError, match="one cause and one look for each pair"):
        make_ledger(np.ones((2, 1)), np.ones((2, 1)), pairing, np.zeros(1, np.uint8), np.zeros(2, np.uint8))


@pytest.mark.parametrize(
    ("points", "difference", "tenths"),
    [
        pytest.param([-33.3333, -4.4444, 22.2222], -15.5556, [-33.3, -4.5, 22.2], id="thirds"),
        pytest.param([0.04, 0.04, 0.04], 0.12, [0.1, 0.0, 0.0], id="many-small"),
        pytest.param([0.05, -0.05], 0.0, [0.1, -0.1], id="half-and-half"),
        pytest.param([-0.4], -0.4, [-0.4], id="one"),
        pytest.param([-2.15], -2.15, [-2.2], id="a-half-as-elsewhere"),
        pytest.param([-1.0, -1.15], -2.15, [-1.0, -1.2], id="a-half-of-two"),
        pytest.param([], 0.0, [], id="none"),
    ],
)
def test_shown_tenths(points: list[float], difference: float, tenths: list[float]) -> None:
    assert round_to_tenths(points, difference) == pytest.approx(tenths)


@given(st.lists(st.floats(-100, 100), max_size=13))
def test_shown_tenths_add_up_to_the_shown_difference_and_stay_near(points: list[float]) -> None:
    difference = math.fsum(points)
    shown = round_to_tenths(points, difference)
    if points:
        assert signed(math.fsum(shown)) == signed(difference)
    assert all(abs(tenth - value) < 0.1 + 1e-6 for tenth, value in zip(shown, points, strict=True))


@given(st.lists(st.lists(st.floats(-100, 100), min_size=1, max_size=6), min_size=1, max_size=6))
def test_shown_parts_add_up_to_their_shown_row(rows: list[list[float]]) -> None:
    points = [math.fsum(row) for row in rows]
    for row, tenths in zip(rows, round_to_tenths(points, math.fsum(points)), strict=True):
        shown = round_to_tenths(row, tenths)
        assert sum(shown) == pytest.approx(tenths, abs=1e-9)
        assert all(abs(tenth - value) < 0.2 for tenth, value in zip(shown, row, strict=True))
