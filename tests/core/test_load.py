"""Whether two sides were decoded under one load, and the order that keeps their load alike."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench import measured_table, simulated_load
from evalboard.core.release import verdict
from evalboard.core.release.gate import GateQuestion
from evalboard.core.stats import CALLS, count_in_flight, is_in_turn, order_in_turn
from tests.core.questions import PAIRED, pinned, question, runs, served, steps, warnings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "verdict.md"
SMALL = [Counter({4: 80, 8: 720})] * 5
LARGE = [Counter({1: 80, 32: 80, 64: 640})] * 5


def loaded(baseline: object = SMALL, candidate: object = LARGE, *, batch_class: str = "mixed") -> GateQuestion:
    """No case changes; both sides batched as cases came."""
    setup = served(batch_class=batch_class)
    changes = {"loads_baseline": baseline, "loads_candidate": candidate}
    return replace(pinned(), setup_baseline=setup, setup_candidate=setup, **changes)


def test_unlike_loads_are_a_warning_with_both_sides_batches_and_a_first_step() -> None:
    judged = verdict.judge_gate(loaded(), PAIRED)
    assert judged.verdict == "ship"
    assert warnings(judged, "load_differs") == [
        "The candidate had 5.3 times the baseline's batch size on average (baseline: median 8, 80 % of responses "
        "within 4–8; candidate: median 64, 80 % of responses within 1–64, 10 % alone). Load may hide part of a "
        "change. Run both sides again, alternating."
    ]
    [dropped] = warnings(verdict.judge_gate(replace(loaded(), candidate=pinned(80).candidate), PAIRED), "load_differs")
    assert "Load may explain part of the change." in dropped
    assert [step.code for step in judged.next] == ["run_in_turn", "sign"]


def test_sides_that_took_turns_already_are_not_sent_to_take_turns() -> None:
    judged = verdict.judge_gate(replace(loaded(), is_in_turn=True), PAIRED)
    [text] = warnings(judged, "load_differs")
    assert text.endswith("They alternated, so their endpoints' load differs. Decode both at batch size 1.")
    assert [step.code for step in judged.next] == ["sign"]


@pytest.mark.parametrize("batch_class", ["alone", "invariant", "fixed-8"])
def test_a_class_that_no_load_moves_is_not_warned_of(batch_class: str) -> None:
    judged = verdict.judge_gate(loaded(batch_class=batch_class), PAIRED)
    assert "load_differs" not in {line.code for line in judged.warnings}
    assert [step.code for step in judged.next] == ["sign"]


@pytest.mark.parametrize(
    ("baseline", "candidate"),
    [
        pytest.param([], [], id="nobody knows the batches"),
        pytest.param(SMALL, [{}] * 5, id="one side is not known"),
        pytest.param(SMALL[:1], LARGE[:1], id="one repeat a side shows no scatter"),
        pytest.param(SMALL, [Counter({10: 800})] * 5, id="a third larger"),
        pytest.param(
            [Counter({2**n: 800}) for n in range(5)], [Counter({2**n: 800}) for n in (1, 2, 3, 4, 5)], id="noise"
        ),
    ],
)
def test_nobody_is_accused_without_evidence(baseline: object, candidate: object) -> None:
    assert "load_differs" not in {
        line.code for line in verdict.judge_gate(loaded(baseline, candidate), PAIRED).warnings
    }


def test_only_the_repeats_that_enter_are_looked_at() -> None:
    assert "load_differs" in {line.code for line in verdict.judge_gate(loaded(), PAIRED).warnings}
    later = loaded(SMALL + LARGE, SMALL + LARGE)
    assert "load_differs" not in {line.code for line in verdict.judge_gate(later, PAIRED).warnings}


def test_calls_to_servers_of_others_are_said_to_be_calls() -> None:
    [text] = warnings(verdict.judge_gate(replace(loaded(), loads_counted=CALLS), PAIRED), "load_differs")
    assert text.startswith(
        "The candidate had 5.3 times the baseline's calls in flight on average (baseline: median 8, "
    )
    assert "Load from other clients is unknown." in text


def wandering(**changes: object) -> GateQuestion:
    """Both sides lose and win up to 20 cases from repeat to repeat, and took no turns."""
    sides = runs(380, 390, 400, 410, 420, n_cases=800), runs(400, 404, 408, 410, 412, n_cases=800)
    setup = served(batch_class="mixed")
    known = {"setup_baseline": setup, "setup_candidate": setup, "are_apart": True}
    return question(*sides, **known | changes)


def test_whole_runs_that_move_are_not_judged_unless_the_sides_took_turns() -> None:
    judged = verdict.judge_gate(wandering(), PAIRED)
    assert (judged.verdict, [line.code for line in judged.reasons]) == ("inconclusive", ["not_in_turn"])
    assert next(step.code for step in judged.next) == "run_in_turn"
    assert "not_in_turn" not in {line.code for line in judged.warnings}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"are_apart": False}, id="nobody knows when they ran"),
        pytest.param({"setup_candidate": served(batch_class="alone")}, id="no load moves a bit on one side"),
        pytest.param({"baseline": pinned().baseline, "candidate": pinned().candidate}, id="no run moves"),
    ],
)
def test_not_every_pair_that_took_no_turns_is_told_to_take_turns(changes: dict[str, object]) -> None:
    judged = verdict.judge_gate(replace(wandering(), treatment="stack", **changes), PAIRED)
    said = {line.code for line in (*judged.reasons, *judged.warnings, *judged.next)}
    assert not said & {"not_in_turn", "run_in_turn"}


def test_before_the_first_look_it_is_a_warning() -> None:
    early = wandering()
    judged = verdict.judge_gate(
        replace(early, baseline=early.baseline[:, :3], candidate=early.candidate[:, 2:]), PAIRED
    )
    assert [line.code for line in judged.reasons] == ["too_few_repeats"]
    assert len(warnings(judged, "not_in_turn")) == 1
    assert [step.code for step in judged.next] == ["run_in_turn", "add_repeats"]


def test_logs_are_to_be_made_in_turn_and_imported_again() -> None:
    setup = replace(served(batch_class="observed"), is_logged=True)
    [first, *_] = steps(verdict.judge_gate(wandering(setup_baseline=setup, setup_candidate=setup), PAIRED))
    assert first == (
        "Both sides are from logs. Run both sides again, alternating, with the tool that made them. Then import the "
        "new logs: evalboard import LOG."
    )


@pytest.mark.parametrize("seed", range(20))
def test_calls_in_flight_are_those_that_overlap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    began = rng.integers(0, 30, 40).astype(float)  # many begin and end together
    ended = began + rng.integers(1, 8, 40)
    most = []
    for first, last in zip(began, ended, strict=True):
        # What is in flight rises when a call begins, so that the instants at which one does are all that matter.
        instants = [first, *began[(began > first) & (began < last)]]
        most.append(max(1, *(int(((began <= at) & (ended > at)).sum()) for at in instants)))
    assert count_in_flight(began.tolist(), ended.tolist()).tolist() == most


def test_calls_one_after_the_other_are_alone_and_of_none_nothing_is_said() -> None:
    assert count_in_flight([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]).tolist() == [1, 1, 1]
    assert count_in_flight([], []).tolist() == []


def test_turns_are_taken_back_and_forth() -> None:
    assert order_in_turn([3, 3]) == [(0, 0), (1, 0), (1, 1), (0, 1), (0, 2), (1, 2)]
    assert order_in_turn([1, 3]) == [(0, 0), (1, 0), (1, 1), (1, 2)]


@pytest.mark.parametrize(
    ("order", "expected"),
    [("ABBAABBAAB", True), ("ABABABABAB", True), ("AAAAABBBBB", False), ("AABB", False), ("AAAAA", False), ("", False)],
)
def test_an_order_is_in_turn_where_no_side_runs_ahead(order: str, expected: bool) -> None:
    assert is_in_turn(order) is expected


@pytest.mark.parametrize("n_pairs", [40, pytest.param(200, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("claim", simulated_load.SEEN_CLAIMS, ids=lambda claim: claim.situation)
def test_one_load_is_not_accused_and_unlike_ones_are_seen(claim: simulated_load.SeenClaim, n_pairs: int) -> None:
    share = claim.measure(n_pairs)
    assert share <= 2 * claim.at_most if claim.at_most is not None else share >= (claim.at_least or 0) - 0.05


@pytest.mark.parametrize("n_pairs", [24, pytest.param(100, marks=pytest.mark.nightly)])
def test_unlike_loads_ship_what_runs_in_turn_do_not(n_pairs: int) -> None:
    apart, in_turn = (
        simulated_load.LoadClaim(load=load, effect=9.0, look=5).measure(n_pairs) for load in simulated_load.LOADS[1::2]
    )
    assert in_turn <= 0.06 < apart


@pytest.mark.parametrize("n_pairs", [24, pytest.param(200, marks=pytest.mark.nightly)])
def test_runs_that_wander_as_a_whole_ship_less_where_the_hours_are_known(n_pairs: int) -> None:
    """The pairs are the same ones but for what is known of their hours, so that few show it."""
    claims = [each for each in simulated_load.WANDERING_CLAIMS if (each.sd, each.rho, each.look) == (1.5, 0.8, None)]
    unknown, known, in_turn = (claim.measure(n_pairs) for claim in claims)
    assert max(known, in_turn) < unknown
    assert in_turn <= 0.06 + 1 / n_pairs


@pytest.mark.parametrize(
    "claim",
    [*simulated_load.CLAIMS, *simulated_load.WANDERING_CLAIMS, *simulated_load.SEEN_CLAIMS],
    ids=lambda each: each.situation,
)
def test_the_page_has_what_was_measured(claim: simulated_load.LoadClaim | simulated_load.SeenClaim) -> None:
    table = measured_table.table_of(PAGE.read_text(encoding="utf-8"))
    [line] = [line for line in table.splitlines() if line.startswith(f"| {claim.situation} |")]
    share = float(line.split(" | ")[-2].removesuffix(" %")) / 100
    assert claim.at_most is None or share <= claim.at_most
    assert getattr(claim, "at_least", None) is None or share >= claim.at_least
    assert line.rstrip(" |").endswith(claim.aim or "%")
