"""Which pair stands for a case, and what the pairs of a list look like together."""

from typing import Any

from evalboard.core.compare import AlikeRows, ChosenPair, choose_gravest, cluster_pairs, count_looks


def alike(case: int, *, n: int, first: int, **changes: Any) -> AlikeRows:
    known = {"consequence": 0, "cause": "near_tie", "numeric": "", "flip_position": 3, "movement": 0.5}
    tokens = {"token_baseline": 1, "token_candidate": 2}
    return AlikeRows(case_index=case, n=n, first=first, **{**known, **tokens, **changes})


def test_the_gravest_pairs_come_before_the_most_and_the_most_before_the_first() -> None:
    rows = [
        alike(0, n=4, first=1, consequence=9),
        alike(0, n=1, first=9, flip_position=5),
        alike(0, n=2, first=7),
        alike(0, n=2, first=5, flip_position=4, movement=None),
        alike(2, n=1, first=20, cause="backend_changed", numeric="larger_shift"),
    ]
    chosen = choose_gravest(rows)
    assert chosen == choose_gravest(reversed(rows))
    assert chosen == {
        0: ChosenPair(5, 2, 9, "near_tie", "near_tie", 1, 2, 0.0),
        2: ChosenPair(20, 1, 1, "backend_changed", "larger_shift", 1, 2, 0.5),
    }
    assert count_looks(chosen.values()) == [("larger_shift", 1), ("near_tie", 1)]


def test_a_cluster_has_a_reason_where_its_first_cases_have_one() -> None:
    def pair(row: int, reason: str, token: int | None = 2) -> ChosenPair:
        return ChosenPair(row, 1, 1, "near_tie", "near_tie", 1, token, 0.0, reason)

    one, two = [pair(row, "Wrong.") for row in range(4)], [pair(5, "Wrong.", 3), pair(6, "Late.", 3)]
    clusters = cluster_pairs([*two, None, pair(7, "", None), *one, pair(8, "Late.")])
    assert [(each.token_candidate, each.n_cases, each.reason) for each in clusters] == [(2, 5, "Wrong."), (3, 2, "")]
