"""Like divergences stand together, the largest first, and histograms have bins that people can read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.compare.clusters import MAX_BINS, Parted, find_clusters, histogram


def test_37_of_41_split_on_one_quote_against_the_other() -> None:
    parted = [Parted(case, "near_tie", b'"', b"'") for case in range(37)]
    parted += [Parted(case, "near_tie", b" the", b" a") for case in range(37, 41)]
    parted += [Parted(50, "sampler_fault", b'"', b"'")]
    clusters = find_clusters(reversed(parted))
    assert [(found.cause, found.tokens[0], found.n_cases, found.n_of_cause) for found in clusters] == [
        ("near_tie", b'"', 37, 41),
        ("near_tie", b" the", 4, 41),
        ("sampler_fault", b'"', 1, 1),
    ]
    assert clusters[0].cases == tuple(range(37))


def test_repeats_of_a_case_count_once() -> None:
    (found,) = find_clusters([Parted(7, "near_tie", b"a", b"b")] * 5)
    assert (found.n_cases, found.cases, found.n_of_cause) == (1, (7,), 1)


def test_the_sides_are_not_mixed_up_and_an_ended_side_is_not_an_empty_token() -> None:
    parted = [Parted(0, "length", b"a", None), Parted(1, "length", None, b"a"), Parted(2, "length", b"a", b"")]
    assert len(find_clusters(parted)) == 3


@pytest.mark.parametrize(
    ("longest", "width", "n_bins"),
    [(0, 1, 1), (1, 1, 1), (20, 1, 20), (21, 2, 11), (100, 5, 20), (101, 10, 11), (200, 10, 20), (4096, 500, 9)],
)
def test_bins_have_round_widths_and_are_not_many(longest: int, width: int, n_bins: int) -> None:
    found = histogram([0], longest)
    assert (found.width, len(found.counts)) == (width, n_bins)
    assert found.starts == tuple(range(0, width * n_bins, width))


@given(st.lists(st.integers(0, 5000)), st.integers(0, 5000))
def test_every_position_is_counted_once_in_its_bin(positions: list[int], longest: int) -> None:
    found = histogram(positions, longest)
    assert len(found.counts) <= MAX_BINS
    for start, n in zip(found.starts, found.counts, strict=True):
        assert n == sum(start <= position < start + found.width for position in positions)
    assert sum(found.counts) == len(positions)
    assert found.n_at_start == positions.count(0)


def test_no_position_at_all_makes_an_empty_histogram() -> None:
    assert histogram([], 0).counts == (0,)
