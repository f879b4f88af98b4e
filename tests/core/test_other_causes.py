"""What else could explain a result: each warning and reason answers a question, and the gravest decides it."""

from collections.abc import Sequence
from typing import Any

import pytest

from evalboard.contract.release import CAUSES, Gate, OtherCause, ReleaseWarning
from evalboard.core.release import other_causes
from evalboard.core.release.other_causes import CAUSE_OF, find_other_causes
from evalboard.wording.comparability import BLOCKS
from evalboard.wording.other_causes import OTHER_CAUSES, write_other_cause
from evalboard.wording.release_verdict import CLAIMS, REASONS
from evalboard.wording.release_warnings import WARNINGS
from tests.frontend import release_stage as staged

ABOUT_THE_DECISION = {"earlier_rules", "policy_changed", "waived_baseline"}
TAKEN = set(CLAIMS) - {"not_settled"}  # reasons of a verdict that was reached


def causes(
    *gates: Gate, warnings: Sequence[ReleaseWarning] = (), verdict: str | None = None, treatment: str = "model"
) -> dict[str, OtherCause]:
    states = find_other_causes(gates, warnings, verdict or gates[0].verdict, treatment)
    return {each.code: write_other_cause(each) for each in states}


def refused(code: str, **changes: Any) -> Gate:
    return staged.gate(verdict="not_comparable", reasons=(staged.note(code, "Because."),), **changes)


def test_every_warning_is_evidence_for_a_question_or_about_the_decision() -> None:
    assert set(WARNINGS) - set(CAUSE_OF) == ABOUT_THE_DECISION
    assert set(CAUSE_OF) <= set(WARNINGS)


def test_every_reason_that_is_no_measured_change_answers_a_question() -> None:
    about_change = set(BLOCKS) & set(other_causes.REASONS)  # of a comparison that may not be made
    assert about_change - set(WARNINGS) >= {"prompts_unknown", "suite_changed", "mixed_fingerprint", "stack_changed"}
    assert set(other_causes.REASONS) == about_change | set(REASONS) - TAKEN


def test_every_code_has_words_of_its_own_and_at_most_seven() -> None:
    silent = {"worth_a_look", "sampled", "targeted", "repeats_kept", "repeats_left_out", *other_causes.JUDGED}
    silent -= {*other_causes.SAID_OF_OK}
    assert {*other_causes.REASONS, *CAUSE_OF} - set(OTHER_CAUSES) == silent  # those only say how it was judged
    assert max(len(str(row.text).split()) for row in OTHER_CAUSES.values()) <= 7


@pytest.mark.parametrize(
    ("kind", "states"),
    [
        ("ship", {"noise": "ok"}),
        ("no_ship", {"noise": "ok"}),
        ("inconclusive", {"noise": "doubt"}),
        ("noisy", {"noise": "no"}),
        ("suite_too_small", {"noise": "doubt"}),
        ("not_comparable", {"noise": "unknown", "server": "no"}),
    ],
)
def test_the_verdict_answers_the_noise_and_the_rest_is_well_where_nothing_speaks_of_it(
    kind: str, states: dict[str, str]
) -> None:
    report = staged.of_kind(kind)
    made = causes(*report.gates, verdict=report.verdict)
    assert {code: each.state for code, each in made.items()} == {**dict.fromkeys(CAUSES, "ok"), **states}


def test_another_server_is_no_other_cause_where_it_is_what_is_judged() -> None:
    gate = staged.of_kind("ship").gates[0]
    judged = staged.warning("stack_judged", "The stack is judged.")
    made = causes(gate, warnings=(judged,), treatment="stack")
    assert (made["server"].state, made["server"].text) == ("ok", "It differs; that is what is judged")
    same = staged.warning("stack_unchanged", "The stack is the same.")
    assert causes(gate, warnings=(same,), treatment="stack")["server"].state == "doubt"


def test_a_scorer_that_judges_both_sides_is_not_called_the_same() -> None:
    gate = staged.of_kind("ship").gates[0]
    made = causes(gate, warnings=(staged.warning("scorer_shared", "The suite's scorer changed."),))["prompts"]
    assert (made.state, made.text) == ("ok", "The new scorer judges both sides")
    alike = causes(gate)["prompts"].text
    for code in ("paired_by_id", "policy_changed"):
        assert causes(gate, warnings=(staged.warning(code, "So.", severity="info"),))["prompts"].text == alike


def test_a_warning_that_could_not_change_the_verdict_is_no_doubt() -> None:
    gate = staged.of_kind("no_ship").gates[0]
    light, heavy = (staged.warning("load_differs", "Load.", severity=severity) for severity in ("info", "warning"))
    assert causes(gate, warnings=(light,))["server"].state == "ok"
    made = causes(gate, warnings=(light, heavy))["server"]
    assert (made.state, made.text, made.because) == ("doubt", "The servers’ load differed", ("load_differs",))


def test_the_gravest_sign_decides_and_all_are_named() -> None:
    gate = refused("mixed_fingerprint")
    made = causes(gate, warnings=(staged.warning("pins_broken", "Pins."),))["server"]
    assert (made.state, made.because) == ("no", ("mixed_fingerprint", "pins_broken"))


def test_who_says_of_themselves_who_they_are_leaves_a_doubt_whatever_the_verdict() -> None:
    gate = staged.of_kind("ship").gates[0]
    made = causes(gate, warnings=(staged.warning("reported", "Self-reported.", severity="info"),))
    assert (made["identity"].state, made["identity"].text) == ("doubt", "Who answered is self-reported")
    assert made["server"].state == "ok"  # a doubt about who answered is none about the server
    nameless = causes(refused("unknown_stack"))
    assert (nameless["identity"].state, nameless["server"].state) == ("unknown", "unknown")
    unread = causes(refused("prompts_unknown"))
    assert (unread["prompts"].state, unread["server"].state) == ("unknown", "ok")


def test_a_side_with_missing_answers_leaves_a_doubt_though_no_change_was_measured() -> None:
    side = staged.side(62, (80.0,), status="incomplete")
    gate = refused("rebaseline", candidate=side)
    assert causes(gate)["missing"].state == causes(gate, refused("rebaseline"))["missing"].state == "doubt"
    beside = gate.model_copy(update={"tier": "advisory"})
    assert causes(refused("rebaseline"), beside)["missing"].state == "ok"


def test_a_verdict_that_missing_answers_leave_open_says_nothing_of_noise() -> None:
    made = causes(staged.gate(verdict="inconclusive", reasons=(staged.note("incomplete", "Answers are missing."),)))
    assert (made["missing"].state, made["noise"].state, made["noise"].text) == ("no", "unknown", "Not decided yet")


def test_gates_that_did_not_give_the_verdict_raise_no_doubt() -> None:
    worse, open_ = staged.of_kind("no_ship").gates[0], staged.gate(position=1, suite="refusals")
    assert causes(worse, open_, verdict="no_ship")["noise"].state == "ok"
    beside = refused("suite_changed", tier="advisory")
    assert causes(refused("stack_changed"), beside, verdict="not_comparable")["prompts"].state == "ok"


def test_without_a_verdict_nothing_is_known() -> None:
    made = causes(staged.gate(verdict=None, reasons=()))
    assert {each.state for each in made.values()} == {"unknown"}
