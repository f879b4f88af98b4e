"""The cases of a comparison that broke, were fixed or are unstable: one row for each, the furthest moved first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.contract.comparison import CaseOutcome, Comparison, OutcomeCounts
from evalboard.wording.outcomes import explain_marks
from frontend.compare import filters, pair_address
from frontend.templatetags.numbers import points
from runs.compare import case_outcomes, outcome_rows

PAGE_ROWS = 150


@dataclass(frozen=True, slots=True)
class OutcomeLine:
    """`baseline` and `candidate` say how often the case was right, or its mean in points; `url` is its gravest pair."""

    row: CaseOutcome
    baseline: str
    candidate: str
    url: str


def part(report: Comparison, active: Mapping[str, str], page: int) -> dict[str, Any]:
    """Return what the case list shows for `?outcome=`, and for `?look=` beside it."""
    runs = report.run_ids
    look = pair_address.parse_look(active)
    outcomes = case_outcomes(
        outcome=active["outcome"], baseline=runs[0], candidate=runs[1], repeats=report.repeats, look=look
    )
    n_pages = max(-(-len(outcomes.cases) // PAGE_ROWS), 1)
    page = min(max(page, 1), n_pages)
    shown = outcomes.cases[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    counts = OutcomeCounts(**outcomes.counts) if outcomes.counts else None
    return {
        "comparison": report,
        "active": active,
        "outcome_lines": tuple(_line(report, active, row) for row in outcome_rows(report.id, shown)),
        "n_outcomes": len(outcomes.cases),
        "look": look,
        "marks": explain_marks(active["outcome"], getattr(counts, f"{active['outcome']}_by_chance", None)),
        "page": {"page": page, "n_pages": n_pages},
        "filters": filters.list_filters(report, active, counts),
        "previous_url": filters.list_url(report, active, page=page - 1) if page > 1 else "",
        "next_url": filters.list_url(report, active, page=page + 1) if page < n_pages else "",
        "all_url": filters.list_url(report, {}),
    }


def _line(report: Comparison, active: Mapping[str, str], row: CaseOutcome) -> OutcomeLine:
    repeats = row.pair.repeats if row.pair else report.repeats or (1, 1)
    at = row.pair.at if row.pair else None
    url = pair_address.pair_url(*report.run_ids, row.case, repeats=repeats, at=at, filters=active)
    return OutcomeLine(row, _right(row.scores_baseline), _right(row.scores_candidate), url)


def _right(scores: tuple[float | None, ...]) -> str:
    """ "3 of 5"; "62.5 points" where scores are graded."""
    known = [score for score in scores if score is not None]
    if set(known) <= {0.0, 100.0}:
        return f"{known.count(100.0)} of {len(known)}"
    return f"{points(sum(known) / len(known))} points"
