"""JUnit XML, read back as a CI server reads it."""

import re
import xml.etree.ElementTree as ElementTree

from hypothesis import given
from hypothesis import strategies as st

from evalboard.cli import junit
from evalboard.cli.results import FAILED, MISSING, PASSED, CaseResult, SuiteResult

URL = "http://board.example/runs/3/"


def case(name: str = "sky", outcome: str = PASSED, **changes: object) -> CaseResult:
    known: dict[str, object] = {"score": 100.0, "baseline": None, "why": "", "reason": "", "url": f"{URL}{name}"}
    return CaseResult(case=name, outcome=outcome, **{**known, **changes})  # type: ignore[arg-type]


def result(*cases: CaseResult, n_cases: int | None = None, is_gate: bool = False) -> SuiteResult:
    n = len(cases) if n_cases is None else n_cases
    return SuiteResult("colours", n, cases, {"run": "3", "status": "finished"}, URL, is_gate=is_gate)


def read(*results: SuiteResult) -> list[ElementTree.Element]:
    """The testsuites of a document."""
    root = ElementTree.fromstring(junit.render_document(results))  # noqa: S314  our own
    assert root.tag == "testsuites"
    return list(root)


def test_a_suite_is_a_testsuite_and_a_case_a_testcase() -> None:
    wrong = case("sea", FAILED, why="Right in 0 of 5 repeats, 0.0 points.", reason="red is not blue")
    [suite] = read(result(wrong, case("moon", MISSING, why="1 of 5 responses are missing."), case()))
    assert suite.attrib == {"name": "colours", "tests": "3", "failures": "1", "errors": "1", "skipped": "0"}
    assert [(each.get("classname"), each.get("name")) for each in suite.iter("testcase")] == [
        ("colours", "sea"),
        ("colours", "moon"),
        ("colours", "sky"),
    ]
    [failure] = suite.iter("failure")
    assert (failure.get("type"), failure.get("message")) == ("failed", wrong.why)
    assert failure.text == f"{wrong.why}\nred is not blue\n{URL}sea"
    [error] = suite.iter("error")
    assert (error.get("type"), error.get("message")) == ("missing", "1 of 5 responses are missing.")
    known = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert known == {"run": "3", "status": "finished", "n_cases": "3", "url": URL}
    assert suite.find("system-out") is None


def test_against_a_baseline_a_failure_is_a_case_that_got_worse() -> None:
    [suite] = read(result(case("sea", FAILED, baseline=100.0, score=0.0, why="Fell."), is_gate=True))
    assert [each.get("type") for each in suite.iter("failure")] == ["regressed"]


def test_so_many_testcases_and_no_more_and_the_rest_is_counted() -> None:
    broken = case("sea", FAILED, why="Fell.")
    cases = (broken, *(case(f"case-{number}") for number in range(junit.MAX_CASES + 4)))
    [suite] = read(result(*cases, n_cases=len(cases)))
    assert (suite.get("tests"), suite.get("failures")) == (str(junit.MAX_CASES), "1")
    assert len(list(suite.iter("testcase"))) == junit.MAX_CASES
    assert suite.findtext("system-out") == f"5 further cases are not listed here; all of them passed. {URL}"
    [suite] = read(result(broken, n_cases=30_000))
    assert suite.findtext("system-out") == f"29,999 further cases are not listed here. {URL}"


def test_a_case_of_thousands_of_characters_is_cut() -> None:
    [suite] = read(result(case("sea", FAILED, why="Fell.", reason="x" * 1_000_000)))
    assert len(next(suite.iter("failure")).text or "") < junit.MAX_TEXT_CHARS + 200


@given(st.text(st.characters(codec=None), min_size=1, max_size=80))
def test_whatever_a_model_says_the_document_can_be_read(text: str) -> None:
    [suite] = read(result(case(text, FAILED, why=text, reason=text)))
    [failure] = suite.iter("failure")
    # What XML has no place for is shown by its code; a carriage return is a line's end to it.
    shown = re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", lambda c: f"\\u{ord(c[0]):04x}", text)
    lines = shown.replace("\r\n", "\n").replace("\r", "\n")
    assert (failure.text or "").startswith(lines)
    assert len(list(suite.iter("testcase"))) == 1
