"""The summary of a comparison."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evalboard.core.compare import comparison
from evalboard.core.compare.cause import CAUSE_CODES
from evalboard.core.compare.comparison import (
    NO_POSITION,
    DifferingPairs,
    MatchedRuns,
    is_larger,
)
from evalboard.core.compare.ledger import find_look
from evalboard.core.compare.pairing import PAIR_KINDS, pair_runs
from evalboard.core.compare.pipeline import describe_noise
from evalboard.core.stats.numeric_noise import LogitNoise
from evalboard.wording.cause import count_larger_shifts, explain_noise

NOISE = LogitNoise(0.09, 0.0, "bfloat16")


def matched(baseline: list[list[float]], candidate: list[list[float]]) -> MatchedRuns:
    ours, theirs = np.array(baseline), np.array(candidate)
    pairs = pair_runs(~np.isnan(ours), ~np.isnan(theirs))
    return MatchedRuns(pairs, ours, theirs, (None, None), is_mixed=False, has_other_text=np.zeros(len(pairs), np.bool_))


def ints(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def differing(*rows: tuple[int, str, str, int, int, int, int]) -> DifferingPairs:
    """Rows of pair, cause, kind, onset, flip, and the two tokens at the flip. Larger shifts are those of that cause."""
    columns = list(zip(*rows, strict=True)) or [()] * 7
    shifts = [is_larger(cause, None, None, None) for cause in columns[1]]
    return DifferingPairs(
        pairs=ints(*columns[0]),
        causes=np.array([CAUSE_CODES[cause] for cause in columns[1]], np.uint8),
        looks=np.array([find_look(cause, None, is_confounded=False) for cause in columns[1]], np.uint8),
        numerics=np.array([CAUSE_CODES[cause] for cause in columns[1]], np.uint8),
        kinds=np.array([PAIR_KINDS.index(kind) for kind in columns[2]], np.uint8),
        shifts=ints(*(NO_POSITION if shift is None else shift for shift in shifts)),
        onsets=ints(*columns[3]),
        flips=ints(*columns[4]),
        tokens_baseline=ints(*columns[5]),
        tokens_candidate=ints(*columns[6]),
    )


def words(token: int) -> bytes:
    """Tokens 1 and 11 are spelled alike."""
    return str(token % 10).encode()


def summarise(sides: MatchedRuns, rows: DifferingPairs, **changes: Any) -> dict[str, Any]:
    begun = {"noise": describe_noise(NOISE), "moved": [], "blocks": []}
    every = np.ones(len(sides.pairing), np.bool_)
    known: dict[str, Any] = {"is_read": every, "is_traced": every, "words": (words, words)}
    indexes = np.arange(sides.pairing.n_cases)
    return comparison.complete_summary(
        begun, sides, rows, **known | {"case_indexes": indexes, "noise_of": lambda _: None} | changes
    )


@pytest.fixture
def five() -> MatchedRuns:
    """Five cases, one repeat each; the last one is missing on the candidate's side."""
    return matched([[1.0], [1.0], [0.0], [1.0], [1.0]], [[0.0], [1.0], [1.0], [1.0], [np.nan]])


@pytest.fixture
def rows() -> DifferingPairs:
    return differing(
        (0, "near_tie", "flipped", 3, 40, 1, 2),
        (1, "near_tie", "flipped", 40, 40, 11, 2),
        (2, "whitespace", "flipped", NO_POSITION, 7, 3, 4),
        (3, "drift_only", "drift_only", 0, NO_POSITION, NO_POSITION, NO_POSITION),
    )


def test_counts_are_all_pairs_and_the_ledger_adds_up(five: MatchedRuns, rows: DifferingPairs) -> None:
    found = summarise(five, rows)
    counts = found["counts"]
    assert {name: counts[name] for name in ("identical", "drift_only", "flipped", "text_only", "missing")} == {
        "identical": 0,
        "drift_only": 1,
        "flipped": 3,
        "text_only": 0,
        "missing": 1,
    }
    assert (counts["score_changed"], counts["flipped_score_changed"], counts["n_cases_score_changed"]) == (2, 2, 2)
    assert (counts["n_cases"], counts["n_cases_paired"], counts["n_cases_missing"]) == (5, 4, 1)
    points = {row["cause"]: row["points"] for row in found["ledger"]}
    assert points == {"near_tie": -25.0, "whitespace": 25.0}
    assert sum(points.values()) == found["score"]["difference"] == 0.0
    assert found["causes"] == [
        {"cause": "error", "n_pairs": 1, "n_score_changed": 0},
        {"cause": "whitespace", "n_pairs": 1, "n_score_changed": 1},
        {"cause": "drift_only", "n_pairs": 1, "n_score_changed": 0},
        {"cause": "near_tie", "n_pairs": 2, "n_score_changed": 1},
    ]


def test_histograms_of_flips_and_onsets_have_the_same_bins(five: MatchedRuns, rows: DifferingPairs) -> None:
    found = summarise(five, rows)
    assert found["flips"]["starts"] == found["onsets"]["starts"]
    assert (found["flips"]["n"], found["onsets"]["n"], found["onsets"]["n_at_start"]) == (3, 3, 1)
    for histogram in (found["flips"], found["onsets"]):
        assert sum(sum(line["counts"]) for line in histogram["series"]) == histogram["n"]


def test_clusters_go_by_the_bytes_of_tokens_and_keep_their_ids(five: MatchedRuns, rows: DifferingPairs) -> None:
    found = summarise(five, rows, case_indexes=np.arange(10, 15))
    first, second = found["clusters"]
    assert (first["cause"], first["tokens"], first["cases"], first["n_of_cause"]) == (
        "near_tie",
        [[1, 2], [11, 2]],
        [10, 11],
        2,
    )
    assert (second["cause"], second["n_cases"], found["n_clusters"]) == ("whitespace", 1, 2)
    assert first["key"] != second["key"]
    assert first["key"] == summarise(five, rows)["clusters"][0]["key"]


def test_larger_shifts_are_counted_by_case_and_without_established_causes() -> None:
    """Four cases, two repeats: one moved further in both, one in one, one is the same, and one has another backend."""
    sides = matched([[1.0, 1.0]] * 4, [[1.0, 1.0]] * 4)
    rows = differing(
        (0, "larger_shift", "flipped", 3, 4, 1, 2),
        (1, "larger_shift", "flipped", 3, 4, 1, 2),
        (2, "larger_shift", "flipped", 3, 4, 1, 2),
        (3, "whitespace", "flipped", 3, 4, 1, 2),
        (6, "backend_changed", "flipped", 3, 4, 1, 2),
        (7, "backend_changed", "flipped", 3, 4, 1, 2),
    )
    assert summarise(sides, rows)["larger_shifts"] == {"n_cases": 2, "n_read": 3, "n_established": 1}
    assert count_larger_shifts(2, 3, 1).startswith("The logits moved more than noise explains in 2 of 3 cases.")
    of_texts = summarise(sides, rows, is_read=np.zeros(8, np.bool_))["larger_shifts"]
    assert of_texts == {"n_cases": 2, "n_read": 2, "n_established": 1}


def test_a_summary_is_json(five: MatchedRuns, rows: DifferingPairs) -> None:
    found = summarise(five, rows)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert "usual for bfloat16" in explain_noise(found["noise"])


def test_nothing_that_differs_gives_an_empty_summary() -> None:
    same = matched([[1.0], [0.0]], [[1.0], [0.0]])
    found = summarise(same, differing())
    assert (found["ledger"], found["clusters"], found["causes"]) == ([], [], [])
    assert found["counts"]["identical"] == 2
    assert found["larger_shifts"] == {"n_cases": 0, "n_read": 2, "n_established": 0}
    assert found["flips"]["n"] == 0


def test_digests_alone_give_what_is_identical_missing_and_the_score(five: MatchedRuns) -> None:
    begun = comparison.count_by_digest(five, np.array([True, True, False, True]))
    counts = begun["counts"]
    assert (counts["identical"], counts["unread"], counts["missing"], counts["score_changed"]) == (1, 3, 1, 2)
    assert begun["score"] == {"baseline": 75.0, "candidate": 75.0, "difference": 0.0}


def test_consequences_put_lost_scores_first_and_give_the_kind_back() -> None:
    moves = (-1.0, 1.0, None, 0.0)
    found = [comparison.rank_consequence(kind, move) for move in moves for kind in comparison.GRAVEST_FIRST]
    assert found == sorted(found)
    assert found[0] == 0
    for kind in comparison.GRAVEST_FIRST:
        for move in moves:
            known = comparison.kind_by_consequence(comparison.rank_consequence(kind, move))
            assert known == (None if move is None else kind)
