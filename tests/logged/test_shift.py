"""`--fail-on shift` of logs: one build against itself is green, a build whose logprobs moved is red."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from evalboard.cli.diff_limits import find_reached, judge_comparison
from evalboard.importers.records import LoggedResponse, LoggedRun
from evalboard.logged.comparing import LogComparison
from evalboard.logged.memory import LogStore
from tests.logged.test_same_as_server import NOW, drawn, edit
from tests.nightly import few

N = 12  # comparisons; 150 of one build against itself gave none that was red


def moved(logged: LoggedRun, by: float) -> LoggedRun:
    """The log of another computation: each case's logprobs moved, by the same in every repeat."""

    def move(one: LoggedResponse) -> LoggedResponse:
        assert one.positions is not None
        steps = [random.Random(f"{one.case_id} {at}").gauss(0, by) for at in range(len(one.positions))]
        return replace(one, positions=replace(one.positions, logprobs=one.positions.logprobs + steps))

    return edit(logged, move)


def is_red(ours: LoggedRun, theirs: LoggedRun) -> bool:
    store = LogStore(now=NOW)
    made = LogComparison(store, store.add(ours, source="1" * 64), store.add(theirs, source="2" * 64), at=NOW)
    return bool(find_reached([("shift", "")], judge_comparison(made.comparison))[0])


def alternatives_too(logged: LoggedRun, by: float) -> LoggedRun:
    """The same where the chosen token's own alternative moved with it, as servers write it."""

    def move(one: LoggedResponse) -> LoggedResponse:
        assert one.positions is not None
        others = one.positions.other_logprobs.copy()
        others[::2] = one.positions.logprobs
        return replace(one, positions=replace(one.positions, other_logprobs=others))

    return edit(moved(logged, by), move)


@pytest.mark.parametrize(
    ("make", "n_red"),
    few(
        [
            pytest.param(lambda seed: drawn(seed), 0, id="itself"),
            pytest.param(lambda seed: alternatives_too(drawn(seed), 0.02), N, id="a build that moved"),
        ],
        1,
    ),
)
def test_shift_is_red_for_another_computation_alone(make: Callable[[int], LoggedRun], n_red: int) -> None:
    assert sum(is_red(drawn(1000 + 2 * seed), make(1001 + 2 * seed)) for seed in range(N)) == n_red
