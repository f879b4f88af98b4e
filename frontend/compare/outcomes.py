"""The cases of a comparison that broke, were fixed or are unstable: a row each with both answers, the furthest moved
first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.contract.comparison import Comparison, OutcomeCounts
from evalboard.contract.excerpt import TellingPair
from evalboard.contract.pair import TracePair
from evalboard.wording.outcomes import explain_marks
from frontend.compare import filters, pair_address
from runs.compare import Neighbours, OutcomeRow, case_outcomes, outcome_clusters, outcome_neighbours, outcome_page

PAGE_ROWS = 50


@dataclass(frozen=True, slots=True)
class OutcomeLine:
    """`look` is what the numbers of the telling pair say, "" where no pair differs; `url` leads to that pair."""

    row: OutcomeRow
    look: str
    url: str

    @property
    def telling(self) -> TellingPair | None:
        return self.row.telling


def part(report: Comparison, active: Mapping[str, str], page: int) -> dict[str, Any]:
    """Return what the case list shows for `?outcome=`; `look`, `cause`, `q` and `compact` narrow or change it."""
    runs = report.run_ids
    look = pair_address.parse_look(active)
    outcomes = case_outcomes(
        outcome=active["outcome"], baseline=runs[0], candidate=runs[1], repeats=report.repeats, look=look
    )
    listed = outcome_page(
        report.id,
        outcomes.cases,
        look=active.get("cause", ""),
        query=active.get("q", ""),
        page=page,
        limit=PAGE_ROWS,
    )
    counts = OutcomeCounts(**outcomes.counts) if outcomes.counts else None
    return {
        "comparison": report,
        "active": active,
        "outcome_lines": tuple(_line(report, active, row) for row in listed.rows),
        "n_outcomes": listed.n,
        "look": look,
        "is_compact": "compact" in active,
        "compact_url": filters.list_url(report, _with_compact(active)),
        "marks": explain_marks(active["outcome"], getattr(counts, f"{active['outcome']}_by_chance", None)),
        "page": {"page": listed.page, "n_pages": listed.n_pages},
        "filters": filters.list_filters(report, active, counts),
        "look_filters": filters.look_filters(report, active, listed.causes),
        "previous_url": filters.list_url(report, active, page=listed.page - 1) if listed.page > 1 else "",
        "next_url": filters.list_url(report, active, page=listed.page + 1) if listed.page < listed.n_pages else "",
        "all_url": filters.list_url(report, {"show": "pairs"}),
        "kept_by_form": tuple(
            (name, active[name]) for name in ("outcome", "look", "cause", "compact") if name in active
        ),
    }


def find_neighbours(pair: TracePair, active: Mapping[str, str]) -> Neighbours:
    """Return where `n` and `p` lead from a case of an outcome's list: along that list, as it is narrowed."""
    listed = case_outcomes(
        outcome=active["outcome"],
        baseline=pair.run_ids[0],
        candidate=pair.run_ids[1],
        repeats=pair.repeats if pair.is_same_run else None,
        look=pair_address.parse_look(active),
    )
    assert pair.comparison is not None  # noqa: S101 - the caller has one
    look, query = active.get("cause", ""), active.get("q", "")
    return outcome_neighbours(pair.comparison, listed.cases, case_id=pair.case, look=look, query=query)


def clusters_of_broken(report: Comparison) -> dict[str, Any]:
    """Return the clusters among the broken cases; nothing where fewer than two broke."""
    if report.outcomes is None or report.outcomes.broken < 2 or not report.progress.is_finished:
        return {}
    runs = report.run_ids
    broken = case_outcomes(outcome="broken", baseline=runs[0], candidate=runs[1], repeats=report.repeats)
    clusters, n = outcome_clusters(report.id, broken.cases)
    return {"broken_clusters": clusters, "n_broken_clusters": n}


def _with_compact(active: Mapping[str, str]) -> dict[str, str]:
    others = {name: value for name, value in active.items() if name != "compact"}
    return others if "compact" in active else {**others, "compact": "1"}


def _line(report: Comparison, active: Mapping[str, str], row: OutcomeRow) -> OutcomeLine:
    pair = row.telling.pair if row.telling else None
    repeats = pair.repeats if pair else report.repeats or (1, 1)
    url = pair_address.pair_url(
        *report.run_ids, row.case.case, repeats=repeats, at=pair.at if pair else None, filters=active
    )
    return OutcomeLine(row, (pair.numeric or pair.cause) if pair else "", url)
