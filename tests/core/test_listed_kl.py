"""KL by the tokens that both sides list: at most the whole, 0 of equal answers, and only until these part."""

import numpy as np
import pytest

from evalboard.core.compare import sum_listed_kl
from evalboard.core.trace import NO_TOKEN, TokenTrace


def trace(chosen: list[int], listed: list[list[tuple[int, float]]]) -> TokenTrace:
    k = max(map(len, listed))
    ids, logprobs = np.full((len(chosen), k), NO_TOKEN, np.int32), np.full((len(chosen), k), np.nan, np.float32)
    for at, row in enumerate(listed):
        for place, (token, chance) in enumerate(row):
            ids[at, place], logprobs[at, place] = token, np.log(chance)
    own = [dict(row)[token] for token, row in zip(chosen, listed, strict=True)]
    return TokenTrace(np.array(chosen, np.int32), np.log(np.array(own, np.float32)), ids, logprobs)


def test_two_whole_distributions_have_their_kl() -> None:
    ours, theirs = trace([1], [[(1, 0.75), (2, 0.25)]]), trace([1], [[(2, 0.5), (1, 0.5)]])
    kl, n = sum_listed_kl(ours, theirs)
    assert (kl, n) == (pytest.approx(0.75 * np.log(1.5) + 0.25 * np.log(0.5), abs=1e-4), 1)
    assert sum_listed_kl(ours, ours) == (pytest.approx(0, abs=1e-9), 1)


def test_what_not_both_list_counts_as_one_token() -> None:
    ours, theirs = trace([1], [[(1, 0.6), (2, 0.3)]]), trace([1], [[(1, 0.2), (3, 0.7)]])
    assert sum_listed_kl(ours, theirs)[0] == pytest.approx(0.6 * np.log(3) + 0.4 * np.log(0.5), abs=1e-4)


def test_positions_after_the_parting_are_not_counted() -> None:
    row = [(1, 0.5), (2, 0.5)]
    ours, theirs = trace([1, 1, 1], [row] * 3), trace([1, 2, 1], [row, row, [(1, 0.9), (2, 0.1)]])
    assert sum_listed_kl(ours, theirs) == (pytest.approx(0, abs=1e-9), 2)
    assert sum_listed_kl(ours, trace([1], [[(3, 0.5), (1, 0.5)][::-1]])) == (pytest.approx(0, abs=1e-6), 1)
    assert sum_listed_kl(trace([1], [[(1, 0.5)]]), trace([2], [[(2, 0.5)]])) == (0.0, 0)
