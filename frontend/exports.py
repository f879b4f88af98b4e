"""Where a page's content is to be had as a file: the API's addresses, with the filters that the page has on."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from runs.selectors.comparison import ComparisonReport
from runs.selectors.run import RunReport

AT_WORK = ("queued", "running")
CHANGED = {"yes": "1", "no": "0"}  # as pages and as the API say it


@dataclass(frozen=True, slots=True)
class Export:
    label: str
    url: str


def of_run(report: RunReport, *, query: str, only: str) -> tuple[Export, ...]:
    """The run whole, and the cases that its list shows; nothing before a repeat has ended."""
    if all(line.status in AT_WORK for line in report.repeats):
        return ()
    run_id = report.row.id
    filters = {"query": query, "only": only}
    return (
        Export("run with its traces", reverse("api:run_export", args=[run_id])),
        Export("these cases as CSV", _at(reverse("api:cases_csv", args=[run_id]), filters)),
        Export("as JSONL", _at(reverse("api:cases_jsonl", args=[run_id]), filters)),
    )


def of_comparison(report: ComparisonReport, asked: Mapping[str, str]) -> tuple[Export, ...]:
    """All pairs that the filters of the page let through, not its one page of them."""
    if not report.progress.is_finished:
        return ()
    sides = {"baseline": str(report.baseline.run_id), "candidate": str(report.candidate.run_id)}
    repeat = "" if report.repeats is None else f"{report.repeats[0]},{report.repeats[1]}"
    kept = {name: value for name, value in asked.items() if name not in ("q", "changed")}
    named = {"query": asked.get("q", ""), "changed": CHANGED.get(asked.get("changed", ""), "")}
    filters = {**sides, "repeat": repeat, **kept, **named}
    return (
        Export("these pairs as CSV", _at(reverse("api:pairs_csv"), filters)),
        Export("as JSONL", _at(reverse("api:pairs_jsonl"), filters)),
    )


def _at(address: str, filters: Mapping[str, str]) -> str:
    query = urlencode({name: value for name, value in filters.items() if value}, safe=",")
    return f"{address}?{query}" if query else address
