"""A share of shifted responses is claimed only where chance does not give it; the chance is exact."""

import math
from fractions import Fraction

import pytest

from evalboard.core.whole_run import binomial_tail, read_whole_run


@pytest.mark.parametrize(("n", "at_least"), [(0, 0), (1, 1), (10, 0), (10, 3), (50, 1), (200, 9), (200, 200)])
def test_the_tail_is_exact(n: int, at_least: int) -> None:
    chance = Fraction(1, 100)
    wanted = sum(math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(at_least, n + 1))
    assert binomial_tail(n, at_least, 0.01) == pytest.approx(float(wanted), rel=1e-9)


def test_the_tail_of_a_large_run_neither_overflows_nor_takes_long() -> None:
    assert binomial_tail(500_000, 5_000, 0.01) == pytest.approx(0.5, abs=0.01)
    assert binomial_tail(500_000, 100_000, 0.01) == 0.0
    assert binomial_tail(500_000, 1, 0.01) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("n_pairs", "n_larger", "share"),
    [
        pytest.param(800, 8, None, id="as-many-as-noise-gives"),
        pytest.param(800, 18, None, id="p-just-above"),
        pytest.param(800, 20, 0.025, id="p-just-below"),
        pytest.param(800, 48, 0.06, id="six-percent"),
        pytest.param(1, 1, None, id="one-pair-is-an-anecdote"),
        pytest.param(0, 0, None, id="nothing-known"),
    ],
)
def test_a_share_is_claimed_where_the_binomial_test_says_so(n_pairs: int, n_larger: int, share: float | None) -> None:
    whole = read_whole_run(n_pairs, n_larger)
    assert whole.share == share
    assert (whole.p_value < 0.001) == (share is not None)


def test_the_sentence_says_share_and_counts() -> None:
    assert read_whole_run(800, 48).sentence == (
        "The backend or weights differ for about 6 % of responses: "
        "48 of 800 pairs moved further than noise explains (p < 0.001)."
    )
    assert read_whole_run(1200, 3).sentence == (
        "No sign that backend or weights differ for some responses: 3 of 1,200 pairs moved further than noise explains."
    )


def test_impossible_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2 pairs"):
        read_whole_run(2, 3)
