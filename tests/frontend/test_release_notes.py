"""Warnings in two weights: one that could change the word stands first and says what it would take."""

import pytest

from evalboard.contract.release import Finding
from frontend.release.notes import notes, points_of_noise, points_to_spare
from tests.frontend import release_stage as staged


def warn(code, text="A claim of so many words. And the rest.", gate=0, **changes):
    return Finding(code=code, text=text, gate=gate, alike=f"{code} {text}", **changes)


def weights(kind, *warnings):
    """The claims of both weights, on a release of a kind with these warnings."""
    made = notes(staged.of_kind(kind).model_copy(update={"warnings": warnings}))
    return [note.claim for note in made.could_change], [note.claim for note in made.good_to_know]


def test_the_same_warning_of_several_suites_is_said_once_and_names_them_all():
    report = staged.of_kind("several")
    worth = "One case is worth 3.3 points here."
    warnings = tuple(
        Finding(code="few_cases", text=f"{gate.suite}: {worth}", gate=gate.position, alike=worth)
        for gate in report.gates[:3]
    )
    made = notes(report.model_copy(update={"warnings": warnings}))
    said = [f"{note.claim} {note.rest}".strip() for note in (*made.could_change, *made.good_to_know)]
    assert "toolcalls: One case is worth 3.3 points here." in said
    assert "refusals: One case is worth 3.3 points here. The same holds for json-extract." in said


def test_the_same_warning_of_several_runs_names_the_runs():
    words = "Run {}, the {}, has 5 repeats by one engine process, so its noise hides what a fresh start changes."
    warnings = tuple(
        Finding(code="one_process", text=words.format(run, side), gate=0, run=run, alike="5 repeats")
        for run, side in (("61", "baseline"), ("62", "candidate"))
    )
    [note] = notes(staged.report(warnings=warnings)).could_change
    assert f"{note.claim} {note.rest}" == f"{words.format(61, 'baseline')} The same holds for run 62."


def test_points_to_spare_are_those_between_the_interval_and_the_limit():
    assert points_to_spare(staged.of_kind("no_ship").gates[0]) == pytest.approx(0.9)
    assert points_to_spare(staged.of_kind("ship").gates[0]) == pytest.approx(0.4)
    assert points_to_spare(staged.of_kind("inconclusive").gates[0]) == 0
    assert points_to_spare(staged.of_kind("not_comparable").gates[0]) is None


def test_noise_is_that_of_both_means():
    assert points_of_noise(staged.gate()) == pytest.approx(1.96 * (2 * 0.4**2 / 5) ** 0.5)
    unmeasured = staged.gate(candidate=staged.side(62, (80.0,), noise=staged.noise(None)))
    assert points_of_noise(unmeasured) is None


def test_noise_that_cannot_reach_the_limit_is_good_to_know():
    claim = "A claim of so many words."
    assert weights("no_ship", warn("one_process"))[0] == []  # 0.5 of noise, and 0.9 to spare
    assert weights("no_ship", warn("load_differs"))[0] == [claim]  # no repeat shows a load
    heavy, light = weights("ship", warn("one_process"))
    assert (claim in heavy, claim in light) == (True, False)  # 0.4 to spare
    assert claim in weights("inconclusive", warn("one_process"))[0]


def test_a_lucky_pass_is_a_matter_of_a_ship_alone():
    assert "A claim of so many words." in weights("ship", warn("candidates_tried"))[0]
    assert "A claim of so many words." in weights("no_ship", warn("candidates_tried"))[1]


def test_a_gate_that_does_not_decide_cannot_change_the_word():
    made = staged.report(
        staged.of_kind("no_ship").gates[0], staged.shipping(), warnings=(warn("pins_broken", gate=1, run="63"),)
    )
    assert notes(made).could_change == ()
    mine = made.model_copy(update={"warnings": (warn("pins_broken", run="62"),)})
    [note] = notes(mine).could_change
    assert note.size == "It would take 0.9 to change the word."
    assert (note.url, note.link) == ("/runs/62/", "Run 62")


def test_a_wide_reach_is_weighty_for_a_ship_and_known_of_others():
    [wide] = [note for note in notes(staged.of_kind("suite_too_small")).good_to_know if "other cases" in note.claim]
    assert "cannot rule out a drop of 9.3" in wide.rest
    small = staged.of_kind("suite_too_small")
    ship = small.model_copy(
        update={"verdict": "ship", "gates": (small.gates[0].model_copy(update={"verdict": "ship"}),)}
    )
    assert any("other cases" in note.claim for note in notes(ship).could_change)


def test_how_many_were_tried_is_never_left_out():
    tried = [note.claim for note in notes(staged.report()).good_to_know if "candidates" in note.claim]
    assert tried == ["3 candidates were judged against this baseline."]
