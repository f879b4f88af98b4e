"""A bisect names what was planted: exactly, from nothing but what each step shows."""

from collections.abc import Callable, Iterable
from itertools import combinations

import numpy as np
import pytest

from bench.simulated_bisects import SITUATIONS, Planted, measure
from evalboard.contract.lab_kinds import FieldState, StepAnswer
from evalboard.core.lab import Bisected, find_chance, judge_steps, plan_more_steps, plan_steps, take_common

Step = frozenset[str]
Flips = Callable[[Step, int], bool]
FIELDS = ("attention", "batching", "dtype", "eager", "template")
N_CASES = 12


def bisect(
    fields: Iterable[str], flips: Flips, *, other: Callable[[Step, int], bool] = lambda step, case: False
) -> tuple[Bisected, int]:
    """Take every step that a bisect asks for; how it ends, and how many steps it took."""
    fields = tuple(fields)
    answers: dict[Step, list[StepAnswer]] = {}
    steps = plan_steps(fields)
    while steps:
        for step in steps:
            answers[step] = [
                StepAnswer.OTHER
                if other(step, case)
                else StepAnswer.CANDIDATE
                if flips(step, case)
                else StepAnswer.BASELINE
                for case in range(N_CASES)
            ]
        steps = plan_more_steps(fields, answers)
    return judge_steps(fields, answers), len(answers)


def states(bisected: Bisected) -> dict[str, FieldState]:
    return {each.name: each.state for each in bisected.fields}


@pytest.mark.parametrize("seed", range(20))
def test_of_three_fields_the_one_that_matters_is_the_cause(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fields = rng.choice(FIELDS, 3, replace=False).tolist()
    planted, bystander = fields[0], fields[1]
    touched = set(np.flatnonzero(rng.random(N_CASES) < 0.2).tolist())  # where another field alone gives a third answer
    bisected, n_steps = bisect(
        fields,
        lambda step, case: planted in step,
        other=lambda step, case: step == {bystander} and case in touched,
    )
    assert states(bisected) == {name: "cause" if name == planted else "cleared" for name in fields}
    assert [(set(each.fields), len(each.cases)) for each in bisected.blamed] == [({planted}, N_CASES)]
    assert n_steps == 8
    own = next(each for each in bisected.fields if each.name == planted)
    assert (own.n_made, own.n_undone) == (N_CASES, N_CASES)


@pytest.mark.parametrize("seed", range(20))
def test_of_three_fields_two_that_matter_only_together_are_named_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    fields = rng.choice(FIELDS, int(rng.integers(3, 6)), replace=False).tolist()
    pair = frozenset(fields[:2])
    bisected, _ = bisect(fields, lambda step, case: pair <= step)
    assert states(bisected) == {name: "together" if name in pair else "cleared" for name in fields}
    assert [(each.fields, len(each.cases)) for each in bisected.blamed] == [(pair, N_CASES)]
    assert not bisected.unexplained


def test_every_pair_and_triple_of_five_fields_is_named() -> None:
    for size in (2, 3, 4, 5):
        for planted in map(frozenset, combinations(FIELDS, size)):
            bisected, _ = bisect(FIELDS, lambda step, case, planted=planted: planted <= step)
            assert [each.fields for each in bisected.blamed] == [planted]


def test_three_of_six_fields_are_found_by_what_undoing_them_removes() -> None:
    planted = frozenset({"dtype", "eager", "worker"})
    bisected, n_steps = bisect((*FIELDS, "worker"), lambda step, case: planted <= step)
    assert [each.fields for each in bisected.blamed] == [planted]
    assert n_steps == 16  # both sides, each field both ways, the three both ways


def test_two_fields_each_of_which_is_enough_are_either() -> None:
    planted = frozenset({"dtype", "eager"})
    bisected, _ = bisect(FIELDS, lambda step, case: bool(planted & step))
    assert [(each.fields, each.is_either) for each in bisected.blamed] == [(planted, True)]
    assert {name for name, state in states(bisected).items() if state == "either"} == planted
    by_name = {each.name: each for each in bisected.fields}
    assert (by_name["dtype"].n_made, by_name["dtype"].n_undone) == (N_CASES, 0)


def test_fields_that_share_the_flips_are_each_a_part() -> None:
    bisected, n_steps = bisect(FIELDS, lambda step, case: ("dtype" if case < 8 else "template") in step)
    assert states(bisected)["dtype"] == states(bisected)["template"] == "part"
    assert [(set(each.fields), len(each.cases)) for each in bisected.blamed] == [({"dtype"}, 8), ({"template"}, 4)]
    assert n_steps == 12  # no pair is tried


def test_one_that_needs_any_of_two_others_is_found_in_pairs() -> None:
    bisected, _ = bisect(FIELDS, lambda step, case: "dtype" in step and bool(step & {"eager", "batching"}))
    assert {each.fields for each in bisected.blamed} == {
        frozenset({"dtype", "eager"}),
        frozenset({"batching", "dtype"}),
    }


def test_one_field_alone_takes_two_steps() -> None:
    bisected, n_steps = bisect(["dtype"], lambda step, case: "dtype" in step)
    assert (n_steps, states(bisected)) == (2, {"dtype": "cause"})


def test_two_fields_that_matter_only_together_take_four_steps() -> None:
    bisected, n_steps = bisect(["dtype", "eager"], lambda step, case: len(step) == 2)
    assert (n_steps, set(states(bisected).values())) == (4, {"together"})


def test_what_does_not_come_again_is_blamed_on_nothing() -> None:
    nothing, n_steps = bisect(FIELDS, lambda step, case: False)
    assert (nothing.reproduced, nothing.blamed, n_steps) == ((), (), 12)
    assert set(states(nothing).values()) == {"not_tried"}
    always, _ = bisect(FIELDS, lambda step, case: True)
    assert (always.reproduced, always.blamed) == ((), ())


def test_what_follows_no_rule_stays_open() -> None:
    one, _ = bisect(FIELDS, lambda step, case: len(step) in (4, 5) or step == {"dtype"}, other=lambda s, c: len(s) == 2)
    assert one.unexplained == tuple(range(N_CASES))
    assert states(one)["dtype"] == "open"


CANDIDATE, BASELINE, MISSING = StepAnswer.CANDIDATE, StepAnswer.BASELINE, StepAnswer.MISSING


def test_an_answer_counts_where_all_decodings_of_a_step_give_it() -> None:
    ends = {
        frozenset[str](): [[BASELINE, BASELINE, BASELINE], [BASELINE, CANDIDATE, MISSING]],
        frozenset({"dtype"}): [[CANDIDATE, CANDIDATE, CANDIDATE]] * 2,
        frozenset({"eager"}): [],
    }
    assert list(take_common(ends).values()) == [(BASELINE, MISSING, MISSING), (CANDIDATE,) * 3, ()]
    assert find_chance(["dtype"], ends) == (1,)  # a call that failed is none
    assert find_chance(["dtype"], {}) == ()


def test_one_case_alone_convicts_nobody_where_answers_are_chance() -> None:
    fields = ("dtype", "eager", "template")
    answers = {
        step: [CANDIDATE if "dtype" in step else BASELINE, CANDIDATE if "eager" in step else BASELINE]
        for step in plan_steps(fields)
    }
    assert len(judge_steps(fields, answers).blamed) == 2
    careful = judge_steps(fields, answers, min_cases=2)
    assert (careful.blamed, careful.unexplained) == ((), (0, 1))
    assert states(careful)["dtype"] == "open"


@pytest.mark.parametrize("planted", SITUATIONS, ids=lambda planted: planted.situation)
def test_chance_blames_no_field_and_hides_no_cause(planted: Planted) -> None:
    wrong, right, _ = measure(planted, n=200)
    assert wrong <= 0.10
    assert right == 1.0 or not planted.cause
    assert measure(planted, n=20)[1] == 1.0 or not planted.cause


def test_steps_decoded_once_blame_an_innocent_field_by_chance() -> None:
    assert measure(SITUATIONS[0], n=100, is_once=True)[0] > 0.4


def test_a_step_that_failed_convicts_nobody() -> None:
    fields = ("dtype", "eager", "template")
    answers = {step: [StepAnswer.CANDIDATE if "dtype" in step else StepAnswer.BASELINE] for step in plan_steps(fields)}
    answers[frozenset(fields) - {"dtype"}] = []
    bisected = judge_steps(fields, answers)
    assert bisected.blamed == ()
    dtype = next(each for each in bisected.fields if each.name == "dtype")
    assert (dtype.state, dtype.n_made, dtype.n_undone) == ("not_tried", 1, None)
    assert judge_steps(fields, {}).reproduced is None
