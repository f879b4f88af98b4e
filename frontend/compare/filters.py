"""What can be chosen above the list of a comparison's cases, and the addresses of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.urls import reverse

from evalboard.contract.comparison import Comparison, OutcomeCounts
from evalboard.core.stats import CASE_OUTCOMES
from frontend.compare import pair_address
from frontend.compare.causes import MARKS, PART_MARKS, CauseMark
from frontend.shell.addresses import Export, filtered_url

CHANGED = {"yes": "1", "no": "0"}  # as pages and as the API say it

OF_PAIRS = ("cause", "changed", "cluster")
KEPT = ("tag", "backend", "q")


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """One choice; `n` is how many cases or pairs it shows."""

    label: str
    url: str
    is_on: bool
    n: int | None = None
    mark: CauseMark | None = None


def list_filters(
    report: Comparison, active: Mapping[str, str], outcomes: OutcomeCounts | None
) -> tuple[CaseFilter, ...]:
    """Return cases by what became of them, then pairs of responses by what differs."""
    lasting = {name: active[name] for name in KEPT if name in active and "outcome" not in active}
    lasting |= {"show": "pairs"}
    is_all = not {"outcome", *OF_PAIRS} & active.keys()
    n_all = sum(count.n_pairs for count in report.causes)
    changed = active.get("changed") == "yes" and "cause" not in active
    filters = [] if outcomes is None else _outcome_filters(report, active, outcomes)
    filters.append(CaseFilter("all pairs that differ", list_url(report, lasting), is_all, n_all))
    n_changed = sum(count.n_score_changed for count in report.causes)
    filters.append(
        CaseFilter("pairs whose score changed", list_url(report, lasting | {"changed": "yes"}), changed, n_changed)
    )
    for count in report.causes if "outcome" not in active else ():
        url = list_url(report, lasting | {"cause": count.cause})
        mark = MARKS[count.cause]
        filters.append(CaseFilter(mark.label, url, active.get("cause") == count.cause, count.n_pairs, mark))
    if "cluster" in active:
        filters.append(CaseFilter("one cluster", list_url(report, lasting | {"cluster": active["cluster"]}), True))
    return tuple(filters)


def look_filters(report: Comparison, active: Mapping[str, str], counts: Mapping[str, int]) -> tuple[CaseFilter, ...]:
    """Return what the numbers of an outcome's cases say, each with how many of them; the one that is on goes off."""
    filters = []
    for look, n in counts.items():
        is_on = active.get("cause") == look
        others = {name: value for name, value in active.items() if name != "cause"}
        mark = PART_MARKS.get(look, MARKS["unknown"])
        filters.append(
            CaseFilter(mark.label, list_url(report, others if is_on else {**others, "cause": look}), is_on, n, mark)
        )
    return tuple(filters)


def outcome_links(report: Comparison) -> tuple[CaseFilter, ...]:
    """Return the lists of cases that are not empty, for the sentence that names them: "3 broken, 1 fixed"."""
    if report.outcomes is None:
        return ()
    filters = zip(CASE_OUTCOMES, _outcome_filters(report, {}, report.outcomes), strict=True)
    return tuple(replace(each, label=outcome) for outcome, each in filters if each.n)


def list_url(report: Comparison, active: Mapping[str, str], *, page: int = 1) -> str:
    """Return the address of the comparison's page with these filters."""
    query = dict(active) | ({"page": str(page)} if page > 1 else {})
    return pair_address.comparison_url(*report.run_ids, repeats=report.repeats, filters=query)


def _outcome_filters(report: Comparison, active: Mapping[str, str], outcomes: OutcomeCounts) -> list[CaseFilter]:
    look = {name: active[name] for name in ("look", "q", "compact") if name in active and "outcome" in active}
    return [
        CaseFilter(
            f"{outcome} cases",
            list_url(report, {"outcome": outcome} | look),
            active.get("outcome") == outcome,
            getattr(outcomes, outcome),
        )
        for outcome in CASE_OUTCOMES
    ]


def exports(report: Comparison, active: Mapping[str, str]) -> tuple[Export, ...]:
    """Return all pairs that the filters of the page let through, not its one page of them."""
    if not report.progress.is_finished:
        return ()
    sides = {"baseline": report.baseline, "candidate": report.candidate}
    others = {name: value for name, value in active.items() if name not in ("q", "changed")}
    named = {"query": active.get("q", ""), "changed": CHANGED.get(active.get("changed", ""), "")}
    filters = {**sides, "repeat": report.repeat or "", **others, **named}
    return (
        Export("these pairs as CSV", filtered_url(reverse("api:pairs_csv"), filters)),
        Export("as JSONL", filtered_url(reverse("api:pairs_jsonl"), filters)),
    )
