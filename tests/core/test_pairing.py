"""Pairs share each case's weight exactly, whatever the numbers of repeats and whatever is missing."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from evalboard.core.compare.pairing import Pairing, count_pairs, pair_runs


def columns(found: Pairing) -> list[list[int]]:
    return [
        column.tolist()
        for column in (
            found.cases,
            found.baseline_repeats,
            found.candidate_repeats,
            found.numerators,
            found.denominators,
        )
    ]


def weigh_pairs(a: int, b: int) -> list[tuple[int, int, Fraction]]:
    """Return the pairs of one case with a and b scored repeats, with their weights."""
    pairs = pair_runs(np.ones((1, a), np.bool_), np.ones((1, b), np.bool_))
    return [(r, s, Fraction(weight, whole)) for _, r, s, weight, whole in zip(*columns(pairs), strict=True)]


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        pytest.param(2, 2, [(0, 0, "1/2"), (1, 1, "1/2")], id="as-many"),
        pytest.param(1, 3, [(0, 0, "1/3"), (0, 1, "1/3"), (0, 2, "1/3")], id="one-against-three"),
        pytest.param(2, 3, [(0, 0, "1/3"), (0, 1, "1/6"), (1, 1, "1/6"), (1, 2, "1/3")], id="two-against-three"),
        pytest.param(
            5,
            3,
            [
                (0, 0, "1/5"),
                (1, 0, "2/15"),
                (1, 1, "1/15"),
                (2, 1, "1/5"),
                (3, 1, "1/15"),
                (3, 2, "2/15"),
                (4, 2, "1/5"),
            ],
            id="five-against-three",
        ),
        pytest.param(0, 3, [], id="none"),
    ],
)
def test_pairs_are_where_the_pieces_overlap(a: int, b: int, wanted: list[tuple[int, int, str]]) -> None:
    assert weigh_pairs(a, b) == [(r, s, Fraction(weight)) for r, s, weight in wanted]


@pytest.mark.parametrize(
    ("shapes", "has_all", "is_straight"),
    [
        pytest.param(((4, 3), (4, 3)), True, True, id="as-many-and-all-there"),
        pytest.param(((4, 3), (4, 2)), True, False, id="other-numbers-of-repeats"),
        pytest.param(((4, 3), (4, 3)), False, False, id="one-score-missing"),
        pytest.param(((0, 3), (0, 3)), True, True, id="no-cases"),
    ],
)
def test_what_pairs_have_is_taken_by_case_and_repeat(
    shapes: tuple[tuple[int, int], tuple[int, int]], has_all: bool, is_straight: bool
) -> None:
    has, has_too = (np.ones(shape, np.bool_) for shape in shapes)
    if not has_all:
        has_too[1, 0] = False
    pairs = pair_runs(has, has_too)
    assert pairs.is_straight is is_straight
    values, digests = np.arange(has.size).reshape(has.shape), np.arange(2 * has_too.size).reshape(*has_too.shape, 2)
    assert pairs.take_baseline(values).tolist() == values[pairs.cases, pairs.baseline_repeats].tolist()
    assert pairs.take_candidate(digests).tolist() == digests[pairs.cases, pairs.candidate_repeats].tolist()


@given(st.integers(1, 40), st.integers(1, 40))
def test_every_repeat_has_its_share_and_there_are_few_pairs(a: int, b: int) -> None:
    found = weigh_pairs(a, b)
    assert len(found) <= a + b - 1
    for r in range(a):
        assert sum(weight for left, _, weight in found if left == r) == Fraction(1, a)
    for s in range(b):
        assert sum(weight for _, right, weight in found if right == s) == Fraction(1, b)
    assert {(s, r, weight) for r, s, weight in found} == set(weigh_pairs(b, a))


shapes = st.tuples(st.integers(0, 8), st.integers(0, 5), st.integers(0, 10))


@given(
    shapes.flatmap(lambda n: st.tuples(arrays.arrays(np.bool_, (n[0], n[1])), arrays.arrays(np.bool_, (n[0], n[2]))))
)
def test_each_case_is_paired_over_the_scores_it_has(has: tuple[np.ndarray, np.ndarray]) -> None:
    found = pair_runs(*has)
    rows = list(zip(*columns(found), strict=True))
    for case, (ours, theirs) in enumerate(zip(*has, strict=True)):
        repeats, repeats_too = np.flatnonzero(ours).tolist(), np.flatnonzero(theirs).tolist()
        wanted = [(repeats[r], repeats_too[s], weight) for r, s, weight in weigh_pairs(len(repeats), len(repeats_too))]
        assert [(r, s, Fraction(w, of)) for at, r, s, w, of in rows if at == case] == wanted
        assert found.is_paired[case] == bool(wanted)
        lost = [(r, s) for r, s, _ in weigh_pairs(len(ours), len(theirs)) if not (ours[r] and theirs[s])]
        at = found.missing_cases == case
        kept = zip(
            found.missing_baseline_repeats[at].tolist(), found.missing_candidate_repeats[at].tolist(), strict=True
        )
        assert list(kept) == lost
    assert (np.diff(found.cases) >= 0).all()


def test_a_run_is_counted_by_pairs_and_every_pair_counts_once() -> None:
    baseline = np.array([[True, True], [True, False], [False, False]])
    found = pair_runs(baseline, np.ones((3, 2), np.bool_))
    assert len(found) == 2 + 2 + 0
    counts = count_pairs(found, np.array([0, 1, 2, 3], np.uint8), np.array([False, False, True, False]))
    assert counts == {
        **{"identical": 1, "drift_only": 1, "flipped": 1, "text_only": 1},
        **{"missing": 1 + 2, "n_cases_missing": 1, "score_changed": 1},
    }


def test_sides_of_different_suites_are_refused() -> None:
    with pytest.raises(ValueError, match="same cases"):
        pair_runs(np.ones((3, 1), np.bool_), np.ones((2, 1), np.bool_))
