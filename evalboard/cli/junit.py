"""JUnit XML, as CI servers read it: a testsuite for each suite, a testcase for each case."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from evalboard.cli.results import FAILED, MISSING, PASSED, CaseResult, SuiteResult

# What CI servers still show well. Cases that did not pass come first; the rest is counted.
MAX_CASES = 2_000
MAX_TEXT_CHARS = 2_000  # of one testcase
# What XML 1.0 has no place for, escaped or not: control characters, halves of pairs, and two that are no characters.
NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def render_document(results: Sequence[SuiteResult]) -> str:
    """Return one document with at most MAX_CASES testcases in each testsuite."""
    root = ElementTree.Element("testsuites", name="evalboard")
    for result in results:
        _add_suite(root, result)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_suite(root: ElementTree.Element, result: SuiteResult) -> None:
    shown = result.cases[:MAX_CASES]
    counts = {outcome: sum(case.outcome == outcome for case in shown) for outcome in (FAILED, MISSING)}
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=_clean(result.suite),
        tests=str(len(shown)),
        failures=str(counts[FAILED]),
        errors=str(counts[MISSING]),
        skipped="0",
    )
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in {**result.facts, "n_cases": str(result.n_cases), "url": result.url}.items():
        ElementTree.SubElement(properties, "property", name=name, value=_clean(value))
    for case in shown:
        _add_case(suite, result, case)
    if n_left := result.n_cases - len(shown):
        left = result.cases[MAX_CASES:]
        passed = "; all of them passed" if len(left) == n_left and all(one.outcome == PASSED for one in left) else ""
        rest = f"{n_left:,} further cases are not listed here{passed}. {result.url}"
        ElementTree.SubElement(suite, "system-out").text = _clean(rest)


def _add_case(suite: ElementTree.Element, result: SuiteResult, case: CaseResult) -> None:
    element = ElementTree.SubElement(suite, "testcase", classname=_clean(result.suite), name=_clean(case.case))
    if case.outcome == PASSED:
        return
    tag, kind = (
        ("error", "missing") if case.outcome == MISSING else ("failure", "regressed" if result.is_gate else "failed")
    )
    problem = ElementTree.SubElement(element, tag, type=kind, message=_clean(case.why))
    problem.text = _clean("\n".join(filter(None, (case.why, case.reason[:MAX_TEXT_CHARS], case.url))))


def _clean(text: str) -> str:
    """Replace characters that XML cannot contain (controls, lone surrogates) by their codes."""
    return NO_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
