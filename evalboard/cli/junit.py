"""JUnit XML, as CI servers read it: a testsuite for each suite, a testcase for each case."""

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

from evalboard.cli.results import FAILED, MISSING, PASSED, CaseResult, SuiteResult

# What CI servers still show well. Cases that did not pass come first; the rest is counted.
MOST_CASES = 2_000
LONGEST_TEXT = 2_000  # characters of one testcase's text
# Everything that XML 1.0 has no place for, escaped or not.
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(results: Sequence[SuiteResult]) -> str:
    """One document, at most MOST_CASES testcases in each testsuite."""
    root = ElementTree.Element("testsuites", name="evalboard")
    for result in results:
        _add_suite(root, result)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_suite(root: ElementTree.Element, result: SuiteResult) -> None:
    shown = result.cases[:MOST_CASES]
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
        left = result.cases[MOST_CASES:]
        passed = "; all of them passed" if len(left) == n_left and all(one.outcome == PASSED for one in left) else ""
        said = f"{n_left:,} further cases are not listed here{passed}. {result.url}"
        ElementTree.SubElement(suite, "system-out").text = _clean(said)


def _add_case(suite: ElementTree.Element, result: SuiteResult, case: CaseResult) -> None:
    element = ElementTree.SubElement(suite, "testcase", classname=_clean(result.suite), name=_clean(case.case))
    if case.outcome == PASSED:
        return
    tag, kind = (
        ("error", "missing") if case.outcome == MISSING else ("failure", "regressed" if result.is_gate else "failed")
    )
    found = ElementTree.SubElement(element, tag, type=kind, message=_clean(case.why))
    found.text = _clean("\n".join(filter(None, (case.why, case.reason[:LONGEST_TEXT], case.url))))


def _clean(text: str) -> str:
    """What XML cannot hold shown by its code: a control character out of a model's answer, half of a pair."""
    return NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
