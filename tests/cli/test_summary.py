"""The Markdown that CI shows: what it says, how large it gets, and that nothing in it is markup of a model's."""

from collections.abc import Iterator
from typing import Any

import pytest

from evalboard.cli import results, summary
from evalboard.cli.release import print_release
from evalboard.cli.results import FAILED, MISSING, CaseResult, SuiteResult
from evalboard.client.answers import Answer
from evalboard.contract.response import CaseOfRun
from tests.cli import answers
from tests.cli.test_markdown import NASTY, plain, seen

SAID = "Run 3 finished: 75.0 to 87.5 points over 2 repeats."


def case(name: str = "sea", **changes: Any) -> CaseResult:
    known = {"outcome": FAILED, "score": 0.0, "baseline": 100.0, "why": "Fell.", "reason": "red is not blue"}
    return CaseResult(case=name, url=f"{answers.URL}/runs/3/repeats/1/cases/{name}/", **{**known, **changes})


def result(*cases: CaseResult, is_gate: bool = True) -> SuiteResult:
    return SuiteResult("colours", 8, cases, {}, f"{answers.URL}/releases/9/", is_gate=is_gate)


def release_page(*cases: CaseResult, **changes: Any) -> summary.SummaryPage:
    return summary.build_release_page(answers.release(**changes).value, [result(*cases)])


def words(page: str) -> str:
    return plain("\n".join(seen(page).cells))


def test_a_release_is_verdict_sentence_suites_steps_warnings_and_cases() -> None:
    page = summary.render_summary(release_page(case()))
    assert page.startswith("## ✘ No&#45;ship: colours\n")
    said = words(page)
    for part in (
        "colours scored 50.0 against 100.0.",
        "−50.0 [−60.0, −40.0]",
        "colours: 1 case got worse",
        "red is not blue",
        "More on its page",
    ):
        assert part in said
    assert "next: Look at the 4 cases that broke&#46;" in page
    assert "warning: Below 200 cases" in page
    assert f"]({answers.URL}/runs/3/repeats/1/cases/sea/)" in page
    assert f"]({answers.URL}/releases/9/)" in page


def test_a_warning_that_could_not_change_the_verdict_is_info_in_summary_and_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    warnings = [answers.warning("Read from a log.", "info"), answers.warning("A pin is broken.")]
    page = summary.render_summary(release_page(warnings=warnings))
    assert "- info: Read from a log&#46;\n- warning: A pin is broken&#46;" in page
    print_release(answers.release(warnings=warnings).value)
    assert capsys.readouterr().err == "info: Read from a log.\nwarning: A pin is broken.\n"


def test_what_is_known_of_each_computation_is_said_with_its_suite_where_there_are_several() -> None:
    known = {
        "answer": "two",
        "is_one_bucket": True,
        "is_steady": True,
        "n_cases": 8,
        "n_apart": 4,
        "chance": None,
        "shift": None,
        "noise": None,
        "text": "Something has changed.",
    }
    two = answers.gate(computation=known)
    assert "Something has changed&#46;" in summary.render_summary(release_page(gates=[two]))
    unknown = answers.gate(suite="shapes", computation={**known, "answer": "unknown", "text": "Nobody knows."})
    page = summary.render_summary(release_page(gates=[two, unknown]))
    assert "colours&#58; Something has changed&#46;" in page
    assert "Nobody knows" not in page


@pytest.mark.parametrize(
    ("verdict", "title"),
    [
        ("ship", "✔ Ship"),
        ("no_ship", "✘ No&#45;ship"),
        ("inconclusive", "◐ Inconclusive"),
        ("not_comparable", "≠ Not comparable"),
    ],
)
def test_no_verdict_is_told_by_a_colour(verdict: str, title: str) -> None:
    assert summary.render_summary(release_page(verdict=verdict)).startswith(f"## {title}: colours\n")


def test_a_lean_is_called_one_and_never_a_verdict() -> None:
    gate = answers.gate(verdict="inconclusive", leaning="no_ship")
    judged = answers.release(gate, verdict="inconclusive")
    page = summary.render_summary(summary.build_release_page(judged.value, [result()], lean="no_ship"))
    assert page.startswith("## ✘ Tendency&#58; no&#45;ship: colours\n")
    assert "A tendency, not a verdict" in words(page)
    assert "inconclusive" not in words(page)


def test_a_run_is_its_end_its_repeats_and_what_failed() -> None:
    found = result(case(why="Right in 0 of 2 repeats, 0.0 points.", baseline=None), is_gate=False)
    page = summary.render_summary(
        summary.build_run_page(answers.run().value, found, sentence=SAID, note="No lean is given.")
    )
    said = words(page)
    assert page.startswith("## colours: run 3 finished\n")
    for part in (SAID, "No lean is given.", "87.5", "colours: 1 case failed", "red is not blue"):
        assert part in said


def test_a_missing_response_is_told_apart() -> None:
    lost = case("moon", outcome=MISSING, why="1 of 5 responses are missing: timeout.", score=None, reason="")
    said = words(summary.render_summary(release_page(case(), lost)))
    assert "colours: 1 case got worse, 1 case without every response" in said
    assert "1 of 5 responses are missing: timeout." in said


@pytest.mark.parametrize("text", NASTY)
def test_whatever_a_case_says_the_page_is_built_as_it_is(text: str) -> None:
    tame = seen(summary.render_summary(release_page(case("sea"), summary="Tame.")))
    wild = seen(summary.render_summary(release_page(case(text, reason=text, why=text), summary=text)))
    assert wild.tags == tame.tags


def test_a_summary_has_room_for_so_much_and_counts_the_rest() -> None:
    worst = [case("|" * 200 + str(number), reason="<" * 5_000) for number in range(9_000)]
    warnings = [answers.warning("&" * 5_000)] * 50
    page = summary.render_summary(release_page(*worst, summary="*" * 50_000, warnings=warnings))
    assert len(page.encode()) <= summary.MAX_SUMMARY_BYTES
    page = summary.render_summary(release_page(*worst))
    assert len(page.encode()) <= summary.MAX_SUMMARY_BYTES
    n_shown = page.count("/repeats/1/cases/")
    assert n_shown > 20
    assert f"{9_000 - n_shown:,} more on " in page


def test_of_ordinary_cases_fifty_are_shown() -> None:
    page = summary.render_summary(release_page(*(case(f"case-{number}") for number in range(120))))
    assert page.count("/repeats/1/cases/") == summary.MAX_SUMMARY_CASES
    assert "70 more on " in page


def test_a_comment_begins_with_its_suites_marker_and_fits() -> None:
    worst = [case("|" * 200 + str(number), reason="<" * 5_000) for number in range(500)]
    warnings = [answers.warning("@" * 5_000)] * 50
    body = summary.render_comment(release_page(*worst, summary="@" * 50_000, warnings=warnings))
    assert body.splitlines()[0] == "<!-- evalboard: colours -->"
    assert len(body.encode()) <= summary.MAX_COMMENT_BYTES + 200


def test_each_suite_has_a_marker_of_its_own_and_a_release_of_several_has_one() -> None:
    several = answers.release(answers.gate(suite="shapes"), answers.gate())
    page = summary.build_release_page(several.value, [result(), result()])
    assert summary.render_comment(page).splitlines()[0] == "<!-- evalboard: colours shapes -->"


def test_a_page_without_a_case_that_failed_has_no_list() -> None:
    assert "got worse" not in summary.render_summary(release_page())


class Rows:
    """What the server has of the cases of runs, by the run's id."""

    def __init__(self, **cases: list[Answer[CaseOfRun]]) -> None:
        self._cases = cases

    def cases(self, run_id: str) -> Iterator[Answer[CaseOfRun]]:
        return iter(self._cases[f"r{run_id}"])


def test_a_case_of_a_run_failed_if_some_repeat_is_below_one() -> None:
    lost = answers.case("c", None, 1, errors=("timeout",))
    rows = [answers.case("a", 1, 1), answers.case("b", 1, 0.5), lost, answers.case("d", None, None)]
    found = results.collect_run_results(Rows(r3=rows), answers.run().value)  # type: ignore[arg-type]
    assert [(one.case, one.outcome, one.why) for one in found.cases] == [
        ("b", "failed", "Right in 1 of 2 repeats, 75.0 points."),
        ("c", "missing", "1 of 2 responses are missing: timeout."),
        ("d", "missing", "2 of 2 responses have no score."),
        ("a", "passed", ""),
    ]


def test_a_case_of_a_gate_failed_if_the_verdict_counts_it_as_broken() -> None:
    """One that was wrong before is no failure of this candidate's."""
    case = answers.case
    ours = [case("sea", 1, 1), case("old", 0, 0), case("lost", 1, 1)]
    theirs = [case("old", 0, 0), case("sea", 0, 0), case("lost", None, 1, errors=("timeout",)), case("new", 1, 1)]
    found = results.collect_gate_results(Rows(r1=ours, r3=theirs), answers.parsed_gate(), answers.URL)  # type: ignore[arg-type]
    assert [(one.case, one.outcome, one.why) for one in found.cases] == [
        ("sea", "failed", "Fell to 0.0 points from 100.0 of the baseline."),
        ("lost", "missing", "1 of 2 responses are missing: timeout."),
        ("old", "passed", ""),
        ("new", "passed", ""),
    ]
