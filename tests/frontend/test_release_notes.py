"""Each warning is evidence for a question; one that could change the verdict leads and says what it would take."""

import pytest

from evalboard.core.release import find_other_causes
from evalboard.wording.other_causes import write_other_cause
from evalboard.wording.release_warnings import weigh
from frontend.release.notes import Remark, cause_ticks, decision_notes
from frontend.shell.charts.changes import plate
from tests.frontend import release_stage as staged


def weighed(report, *warnings):
    """The release with these warnings, each weighed by its row as the read does."""
    made = (line.model_copy(update=weigh(line.code, report.gates[line.gate], report.verdict)) for line in warnings)
    return report.model_copy(update={"warnings": tuple(made)})


def remarks(report) -> list[Remark]:
    """What the strip says in all, question by question."""
    causes = find_other_causes(report.gates, report.warnings, report.verdict, report.treatment)
    asked = report.model_copy(update={"other_causes": tuple(map(write_other_cause, causes))})
    return [note for tick in cause_ticks(asked, {}, None) for note in tick.remarks] + list(decision_notes(asked))


def heavy(report) -> list[Remark]:
    return [note for note in remarks(report) if note.is_heavy and not note.text.startswith("It is open")]


def warn(code, gate=0, **changes):
    return staged.warning(code, "A claim of so many words. And the rest.", gate, **changes)


def severity(kind, code):
    """The severity of a warning on the first gate of a release of a kind."""
    report = staged.of_kind(kind)
    return weigh(code, report.gates[0], report.verdict)["severity"]


def test_the_same_warning_of_several_suites_is_said_once_and_names_them_all():
    report = staged.of_kind("several")
    worth = "One case is worth 3.3 points here."
    warnings = tuple(
        staged.warning("few_cases", f"{gate.suite}: {worth}", gate.position, alike=worth) for gate in report.gates[:3]
    )
    said = [note.text for note in remarks(weighed(report, *warnings))]
    assert "toolcalls: One case is worth 3.3 points here." in said
    assert "refusals: One case is worth 3.3 points here. The same holds for json-extract." in said


def test_the_same_warning_of_several_runs_names_the_runs():
    words = "Run {}, the {}, has 5 repeats by one engine process, so its noise hides what a fresh start changes."
    warnings = tuple(
        staged.warning("one_process", words.format(run, side), run=run, alike="5 repeats")
        for run, side in (("61", "baseline"), ("62", "candidate"))
    )
    [note] = heavy(staged.report(warnings=warnings))
    assert note.text == f"{words.format(61, 'baseline')} The same holds for run 62."


def test_points_to_spare_are_those_between_the_interval_and_the_limit():
    assert staged.of_kind("no_ship").gates[0].points_to_spare == pytest.approx(0.9)
    assert staged.of_kind("ship").gates[0].points_to_spare == pytest.approx(0.4)
    assert staged.of_kind("inconclusive").gates[0].points_to_spare == 0
    assert staged.of_kind("not_comparable").gates[0].points_to_spare is None


def test_noise_is_that_of_both_means():
    assert staged.gate().points_of_noise == pytest.approx(1.96 * (2 * 0.4**2 / 5) ** 0.5)
    unmeasured = staged.gate(candidate=staged.side(62, (80.0,), noise=staged.noise(None)))
    assert unmeasured.points_of_noise is None


def test_noise_that_cannot_reach_the_limit_is_good_to_know():
    assert severity("no_ship", "one_process") == "info"  # 0.5 of noise, and 0.9 to spare
    assert severity("no_ship", "load_differs") == "warning"  # no repeat shows a load
    assert severity("ship", "one_process") == "warning"  # 0.4 to spare
    assert severity("inconclusive", "one_process") == "warning"


def test_a_lucky_pass_is_a_matter_of_a_ship_alone():
    assert severity("ship", "candidates_tried") == "warning"
    assert severity("no_ship", "candidates_tried") == "info"


def test_how_it_was_judged_could_change_nothing():
    assert severity("ship", "imported") == severity("inconclusive", "imported") == "info"


def test_a_code_that_no_rule_has_any_more_weighs_as_far_as_it_could():
    report = staged.of_kind("inconclusive")
    assert weigh("gone", report.headline, report.verdict) == {"severity": "warning", "must_act": None}


def test_a_warning_that_could_change_the_word_leads_its_question():
    light, weighty = warn("pins_broken", severity="info", alike="a"), warn("load_differs", alike="b")
    made = [note for note in remarks(staged.report(warnings=(light, weighty))) if note.text.startswith("A claim")]
    assert [note.is_heavy for note in made] == [True, False]


def test_a_warning_about_the_decision_stands_below_the_questions():
    report = staged.report(warnings=(warn("policy_changed"), warn("load_differs")))
    assert [note.text for note in decision_notes(report)] == ["A claim of so many words. And the rest."]


def test_a_gate_that_does_not_decide_cannot_change_the_word():
    made = staged.report(staged.of_kind("no_ship").gates[0], staged.shipping())
    assert heavy(weighed(made, warn("pins_broken", gate=1, run="63"))) == []
    [note] = heavy(weighed(made, warn("pins_broken", run="62")))
    assert note.size == "It would have to explain 0.9 points to change the verdict."
    assert (note.url, note.link) == ("/runs/62/", "Run 62")


def test_a_wide_reach_is_said_once_with_both_its_ends():
    small = staged.of_kind("suite_too_small")
    [wide] = [note for note in remarks(weighed(small, warn("reach_wide"))) if "For new cases" in note.text]
    assert "cannot rule out a drop of 9.3" in wide.text


def test_where_too_few_groups_changed_nothing_estimates_new_cases():
    """ "Too few to estimate new cases" stands there, so neither the strip nor the ruler has an estimate."""
    gate = staged.of_kind("suite_too_small").gates[0]
    few = gate.model_copy(update={"reach": gate.reach.model_copy(update={"is_concentrated": True})})
    words, rows = (
        [" ".join(note.text for note in remarks(staged.report(each))) for each in (gate, few)],
        [[row.kind for row in plate(each).rows] for each in (gate, few)],
    )
    assert [("new cases" in text.lower()) for text in words] == [True, False]
    assert [("reach" in kinds) for kinds in rows] == [True, False]


def test_a_ship_without_any_change_claims_none():
    [noise] = [tick for tick in cause_ticks(staged.of_kind("ship"), {}, None) if tick.cause.code == "noise"]
    assert (noise.subject, noise.word, noise.cause.text) == ("Noise", "OK", "A drop over your limit is unlikely")


def test_how_many_were_tried_is_never_left_out():
    tried = [note.text for note in remarks(staged.report()) if "candidates" in note.text]
    assert tried == ["3 candidates were judged against this baseline. The more you try, the likelier a lucky one."]
