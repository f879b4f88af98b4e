"""The cases of a comparison that broke, were fixed or are unstable: one row for each, the furthest moved first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frontend import compare_filters, pair_address
from frontend.templatetags.numbers import points
from runs import selectors, services
from runs.selectors.comparison import ComparisonReport, OutcomeCounts
from runs.selectors.outcome_list import OutcomeCase
from runs.services.case_outcomes import CaseOutcome, CaseScores

PAGE_ROWS = 150


@dataclass(frozen=True, slots=True)
class OutcomeLine:
    """`baseline` and `candidate` say how often the case was right, or its mean in points; `url` is its gravest pair."""

    of: OutcomeCase
    baseline: str
    candidate: str
    url: str


def part(report: ComparisonReport, asked: Mapping[str, str], page: int) -> dict[str, Any]:
    """What the case list shows for `?outcome=`, and for `?look=` beside it."""
    runs = report.baseline.run_id, report.candidate.run_id
    look = pair_address.asked_look(asked)
    found = services.case_outcomes(
        outcome=asked["outcome"], baseline=runs[0], candidate=runs[1], repeats=report.repeats, look=look
    )
    n_pages = max(-(-len(found.cases) // PAGE_ROWS), 1)
    page = min(max(page, 1), n_pages)
    shown = found.cases[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    known = selectors.outcome_cases(report.id, [case.case_index for case in shown])
    counts = OutcomeCounts(**found.counts) if found.counts else None
    return {
        "comparison": report,
        "asked": asked,
        "outcome_lines": tuple(_line(report, asked, case, known[case.case_index]) for case in shown),
        "n_outcomes": len(found.cases),
        "look": look,
        "page": {"page": page, "n_pages": n_pages},
        "filters": compare_filters.of_report(report, asked, counts),
        "previous_url": compare_filters.at(report, asked, page=page - 1) if page > 1 else "",
        "next_url": compare_filters.at(report, asked, page=page + 1) if page < n_pages else "",
        "all_url": compare_filters.at(report, {}),
    }


def _line(report: ComparisonReport, asked: Mapping[str, str], found: CaseOutcome, of: OutcomeCase) -> OutcomeLine:
    pair = of.pair
    repeats = (pair.repeat_baseline, pair.repeat_candidate) if pair else report.repeats or (1, 1)
    runs = report.baseline.run_id, report.candidate.run_id
    url = pair_address.of_pair(*runs, of.case_id, repeats=repeats, at=pair.at if pair else None, kept=asked)
    return OutcomeLine(of, _right(found.baseline), _right(found.candidate), url)


def _right(scores: CaseScores) -> str:
    """ "3 of 5"; "62.5 points" where scores are graded."""
    known = [score for score in scores if score is not None]
    if set(known) <= {0.0, 1.0}:
        return f"{known.count(1.0)} of {len(known)}"
    return f"{points(100 * sum(known) / len(known))} points"
