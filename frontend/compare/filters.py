"""The filters above a comparison's list of cases, and their addresses."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.urls import reverse

from evalboard.contract.compare import Comparison, OutcomeCounts
from evalboard.core.stats import CASE_OUTCOMES
from frontend.compare import pair_address
from frontend.compare.causes import MARKS, PART_MARKS, CauseMark
from frontend.compare.charts import label_parts
from frontend.shell.addresses import Export, filtered_url
from frontend.templatetags.pairs import backend_words
from runs.compare import ALL_CASES

CHANGED = {"yes": "1", "no": "0"}  # as pages and as the API say it

OF_PAIRS = ("cause", "changed", "cluster")
KEPT = ("tag", "backend", "q")


@dataclass(frozen=True, slots=True)
class PairFilter:
    """One choice; `n` is how many cases or pairs it shows. key: its part of the bar, "" if it is none."""

    label: str
    url: str
    is_on: bool
    n: int | None = None
    mark: CauseMark | None = None
    key: str = ""


def list_filters(
    report: Comparison, active: Mapping[str, str], outcomes: OutcomeCounts | None
) -> tuple[PairFilter, ...]:
    """Return cases by what became of them; in the list of pairs of responses what differs in them too."""
    lasting = {name: active[name] for name in KEPT if name in active and "outcome" not in active}
    lasting |= {"show": "pairs"}
    is_all = not {"outcome", *OF_PAIRS} & active.keys()
    n_all = sum(count.n_pairs for count in report.causes)
    changed = active.get("changed") == "yes" and "cause" not in active
    filters = _part_filters(report, active, outcomes)
    if "outcome" in active:
        return tuple(filters)
    filters.append(PairFilter("all pairs that differ", list_url(report, lasting), is_all, n_all))
    n_changed = sum(count.n_score_changed for count in report.causes)
    filters.append(
        PairFilter("pairs whose score changed", list_url(report, lasting | {"changed": "yes"}), changed, n_changed)
    )
    for count in report.causes:
        url = list_url(report, lasting | {"cause": count.cause})
        mark = MARKS[count.cause]
        filters.append(PairFilter(mark.label, url, active.get("cause") == count.cause, count.n_pairs, mark))
    if "cluster" in active:
        filters.append(PairFilter("one cluster", list_url(report, lasting | {"cluster": active["cluster"]}), True))
    return tuple(filters)


def look_filters(report: Comparison, active: Mapping[str, str], counts: Mapping[str, int]) -> tuple[PairFilter, ...]:
    """Return a filter per numeric cause, with its number of cases; the active one switches off."""
    filters = []
    for look, n in counts.items():
        is_on = active.get("cause") == look
        others = {name: value for name, value in active.items() if name != "cause"}
        mark = PART_MARKS.get(look, MARKS["unknown"])
        filters.append(
            PairFilter(mark.label, list_url(report, others if is_on else {**others, "cause": look}), is_on, n, mark)
        )
    return tuple(filters)


def outcome_links(report: Comparison) -> tuple[PairFilter, ...]:
    """Return the lists of cases that are not empty, for the sentence that names them: "3 broken, 1 fixed"."""
    if report.outcomes is None:
        return ()
    filters = zip(label_parts(report), _part_filters(report, {}, report.outcomes), strict=False)
    return tuple(replace(each, label=part) for part, each in filters if part in CASE_OUTCOMES and each.n)


def backend_tabs(report: Comparison, active: Mapping[str, str]) -> tuple[PairFilter, ...]:
    """Return a tab for all and one for each pair of backends, if a side has several backends."""
    if not report.mixed_sides or len(report.backends) < 2:
        return ()
    others = {name: value for name, value in active.items() if name != "backend"}
    tabs = [PairFilter("all backends", list_url(report, others), "backend" not in active)]
    for pair in report.backends:
        key = "-".join(pair)
        url = list_url(report, {**others, "backend": key})
        tabs.append(PairFilter(backend_words(pair), url, active.get("backend") == key))
    return tuple(tabs)


def sort_links(report: Comparison, active: Mapping[str, str]) -> dict[str, PairFilter]:
    """Return the order that each column's head leads to; "passes" is the usual one."""
    others = {name: value for name, value in active.items() if name != "sort"}
    orders = {"passes": "", "case": "case", "flip": "flip"}
    return {
        column: PairFilter(
            column, list_url(report, others | ({"sort": sort} if sort else {})), active.get("sort", "") == sort
        )
        for column, sort in orders.items()
    }


def view_links(report: Comparison, active: Mapping[str, str], n_rows: int) -> tuple[PairFilter, ...]:
    """Return the columns that can be hidden, and the page sizes; n_rows: of this page."""
    hidden = [name for name in active.get("hide", "").split(",") if name]
    others = {name: value for name, value in active.items() if name != "hide"}
    links = []
    for name, label in pair_address.COLUMNS.items():
        rest = [each for each in (*hidden, name) if not (each == name and name in hidden)]
        url = list_url(report, others | ({"hide": ",".join(rest)} if rest else {}))
        links.append(PairFilter(label, url, name not in hidden))
    sizes = (
        PairFilter(f"{n} rows", list_url(report, {**active, "rows": n}), n == str(n_rows))
        for n in pair_address.PAGE_SIZES
    )
    return (*links, *sizes)


def list_url(report: Comparison, active: Mapping[str, str], *, page: int = 1) -> str:
    """Return the address of the comparison's page with these filters."""
    query = dict(active) | ({"page": str(page)} if page > 1 else {})
    return pair_address.comparison_url(*report.run_ids, repeats=report.repeats, filters=query, terms=report.terms)


def _part_filters(report: Comparison, active: Mapping[str, str], outcomes: OutcomeCounts | None) -> list[PairFilter]:
    """Return a filter for each part of the cases that is not empty, which add up to the last one, all.

    outcomes: by the first so many repeats, where the address says so; else those of all.
    """
    lasting = _select_lasting(active, "q", "backend", *pair_address.VIEW)
    looked = _select_lasting(active, "look") | lasting
    filters = []
    for part, label in label_parts(report).items():
        is_on, is_judged = active.get("outcome") == part, part in CASE_OUTCOMES
        n = getattr(outcomes if is_judged and outcomes is not None else report.parts, part)
        url = list_url(report, {"outcome": part} | (looked if is_judged else lasting))
        filters.append(PairFilter(label, url, is_on, n, key=part.replace("_", "-")))
    url = list_url(report, {"outcome": ALL_CASES} | lasting)
    return [*filters, PairFilter("all", url, active.get("outcome") == ALL_CASES, report.counts.n_cases)]


def _select_lasting(active: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: active[name] for name in names if name in active and "outcome" in active}


def exports(report: Comparison, active: Mapping[str, str]) -> tuple[Export, ...]:
    """Return links to all pairs that pass the page's filters."""
    if not report.progress.is_finished:
        return ()
    sides = {"baseline": report.baseline, "candidate": report.candidate}
    alike = {name: active.get(name, "") for name in ("cause", "tag", "backend", "cluster")}
    named = {"query": active.get("q", ""), "changed": CHANGED.get(active.get("changed", ""), "")}
    filters = {**sides, **report.terms.query, "repeat": report.repeat or "", **alike, **named}
    return (
        Export("these pairs as CSV", filtered_url(reverse("api:pairs_csv"), filters)),
        Export("as JSONL", filtered_url(reverse("api:pairs_jsonl"), filters)),
    )
