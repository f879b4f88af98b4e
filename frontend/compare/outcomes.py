"""The list of broken, fixed or unstable cases: a row each with both answers, largest change first."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalboard.contract.compare import SIDES, Comparison, OutcomeCounts
from evalboard.contract.pair import TracePair
from evalboard.contract.treatments import Terms
from evalboard.core.compare import LOADED_BATCHES
from evalboard.wording.outcomes import explain_marks, explain_passes
from frontend.compare import charts, filters, pair_address
from frontend.shell.addresses import case_url
from frontend.templatetags.drawing import common_prefix
from runs.compare import (
    ALL_CASES,
    SCORE_CHANGED,
    Neighbours,
    OutcomeList,
    OutcomeRow,
    outcome_clusters,
    outcome_neighbours,
    outcome_page,
)

PAGE_ROWS, MIXED_ROWS = 50, 10  # a page of several backends has more to read above its list
TAGS_SHOWN = 5
# Said of the cases of a list: "No case …".
SAID = {
    "broken": "is broken",
    "fixed": "is fixed",
    "unstable": "is unstable",
    "changed": "changed its score by less than broken and fixed cases do",
    "other_text": "has another text and the same score",
    "same_text": "has the same text in every repeat",
    "unscored": "lacks a score",
    "missing": "lacks a response",
    SCORE_CHANGED: "changed its score",
    ALL_CASES: "is there",
}


@dataclass(frozen=True, slots=True)
class OutcomeLine:
    """A case in a list of changes.

    look: what the numbers of its pair say, "" where no pair differs. url: of that pair. case_url: of the case over all
    runs.
    """

    row: OutcomeRow
    look: str
    url: str
    case_url: str


def part(report: Comparison, active: Mapping[str, str], page: int) -> dict[str, Any]:
    """Return the case list for `?outcome=`, with `look`, `cause`, `q` and `compact` as options."""
    limit = int(active.get("rows", MIXED_ROWS if report.mixed_sides else PAGE_ROWS))
    buckets = _find_buckets(report, active.get("backend", ""))
    listed = outcome_page(
        replace(_list(report.id, report.run_ids, report.terms, active), buckets=buckets), page=page, limit=limit
    )
    counts = OutcomeCounts(**listed.counts) if listed.counts else None
    return {
        "comparison": report,
        "active": active,
        "outcome_lines": tuple(_line(report, active, row) for row in listed.rows),
        "id_prefix": common_prefix([row.shown.outcome.case for row in listed.rows]),
        "bar": charts.count_parts(report, pair_address.lists_of(report)),
        "tabs": filters.backend_tabs(report, active),
        "sorts": filters.sort_links(report, active),
        "hidden": active.get("hide", "").replace(",", " "),
        "view_links": filters.view_links(report, active, limit),
        "n_outcomes": listed.n,
        "said": SAID[active["outcome"]],
        "look": pair_address.parse_look(active),
        "is_compact": "compact" in active,
        "compact_url": filters.list_url(report, _with_compact(active)),
        "marks": explain_marks(
            getattr(counts, f"{active['outcome']}_by_chance", None),
            can_load_move=_can_load_move(report),
        ),
        "passes_note": ""
        if "look" in active
        else explain_passes(report.sides, (row.shown.outcome for row in listed.rows)),
        "page": {"page": listed.page, "n_pages": listed.n_pages},
        "filters": filters.list_filters(report, active, counts),
        "n_pairs": sum(count.n_pairs for count in report.causes),
        "look_filters": filters.look_filters(report, active, listed.looks),
        "previous_url": filters.list_url(report, active, page=listed.page - 1) if listed.page > 1 else "",
        "next_url": filters.list_url(report, active, page=listed.page + 1) if listed.page < listed.n_pages else "",
        "all_url": filters.list_url(report, {"show": "pairs"}),
        "kept_by_form": tuple(
            (name, active[name])
            for name in ("outcome", "look", "cause", "backend", *pair_address.VIEW)
            if name in active
        ),
    }


def _can_load_move(report: Comparison) -> bool:
    buckets = (*report.sides.baseline.buckets, *report.sides.candidate.buckets)
    return any(bucket.batch_class in LOADED_BATCHES for bucket in buckets)


def find_neighbours(pair: TracePair, active: Mapping[str, str]) -> Neighbours:
    """Return where `n` and `p` lead from a case of an outcome's list: along that list, as it is narrowed."""
    assert pair.comparison is not None  # noqa: S101 - the caller has one
    return outcome_neighbours(_list(pair.comparison, pair.run_ids, pair.terms, active), case_id=pair.case)


def clusters_of_broken(report: Comparison) -> dict[str, Any]:
    """Return the clusters among the broken cases; nothing where fewer than two broke."""
    if report.outcomes is None or report.outcomes.broken < 2 or not report.progress.is_finished:
        return {}
    groups = outcome_clusters(report.id, outcome="broken")
    tags = [(tag, n, filters.list_url(report, {"outcome": "broken", "q": tag})) for tag, n in groups.tags[:TAGS_SHOWN]]
    return {"broken_clusters": groups.clusters, "n_broken_clusters": groups.n, "broken_tags": tags}


def _find_buckets(report: Comparison, pair: str) -> tuple[int, int] | None:
    """Return the buckets of a pair of letters, "A-B"; None for none, or unknown ones."""
    ids = {bucket.backend: int(bucket.id) for side in SIDES for bucket in getattr(report.sides, side).buckets}
    ours, _, theirs = pair.partition("-")
    return (ids[ours], ids[theirs]) if ours in ids and theirs in ids else None


def _list(comparison_id: int, runs: tuple[int, int], terms: Terms, active: Mapping[str, str]) -> OutcomeList:
    """Return which cases the filters of an address choose."""
    look, says, query = pair_address.parse_look(active), active.get("cause", ""), active.get("q", "")
    sort = active.get("sort", "")
    return OutcomeList(
        comparison_id, runs, active["outcome"], at_look=look, look=says, query=query, terms=terms, sort=sort
    )


def _with_compact(active: Mapping[str, str]) -> dict[str, str]:
    others = {name: value for name, value in active.items() if name != "compact"}
    return others if "compact" in active else {**others, "compact": "1"}


def _line(report: Comparison, active: Mapping[str, str], row: OutcomeRow) -> OutcomeLine:
    case = row.shown.outcome
    repeats, at = (case.pair.repeats, case.pair.at) if case.pair else (report.repeats or (1, 1), None)
    url = pair_address.pair_url(*report.run_ids, case.case, repeats=repeats, at=at, filters=active, terms=report.terms)
    look = (case.pair.numeric or case.pair.cause) if case.pair else ""
    return OutcomeLine(row, look, url, case_url(report.sides.baseline.suite.slug, case.case))
