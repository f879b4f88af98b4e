"""The list of a run's cases: its filters, and the columns next to them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from evalboard.contract.run import Run
from frontend.shell.addresses import Export, filtered_url
from frontend.shell.lists import ListView, parse_number, read_view
from runs.run import CaseLists, Pick
from runs.store import RowWindow

AT_WORK = ("queued", "running")
CASES_PER_PAGE = 25
# Each case is one of the first, so that their counts add up; what a case may be beside that comes after the hairline.
KINDS = {"unstable": "unstable", "failed_alike": "failed", "passed": "passed", "incomplete": "incomplete"}
OTHERS = {"likely": "likely to flip", "missing": "missing", "left_out": "cached or rerouted", "failed": "failed at all"}
OTHERS |= {"cut": "cut", "filtered": "filtered", "refused": "refused", "empty": "empty", "unknown": "unknown ending"}
FILTERS = {"": "all", **KINDS, **OTHERS, "differ": "differ by backend"}
SAMPLED = {**FILTERS, "unstable": "differ between draws"}


@dataclass(frozen=True, slots=True)
class RunCaseFilter:
    """One filter. n: cases that it lists under the search; is_apart: preceded by a hairline."""

    label: str
    n: int
    url: str
    is_on: bool
    is_apart: bool = False


def parse_pick(request: HttpRequest) -> Pick:
    """Return which cases the page is to list, one more than it shows."""
    only = request.GET.get("only", "")
    view = read_view(request.GET, size=CASES_PER_PAGE)
    return Pick(
        query=request.GET.get("q", "").strip()[:200],
        only=only if only in FILTERS else "",
        offset=view.offset,
        limit=view.size,
        bucket=parse_number(request.GET.get("bucket", ""), digits=9),
    )


def part(run: Run, pick: Pick, lists: CaseLists) -> dict[str, object]:
    """Return what the list shows; `lists` has it first."""
    view = ListView({}, "", pick.limit, pick.offset, _active(pick), {}, anchor="cases")
    return {
        "cases": view.page(RowWindow(tuple(lists.rows[0]), lists.counts[pick.only])),
        "query": pick.query,
        "only": pick.only,
        "bucket": pick.bucket,
        "exports": _exports(run, pick),
        "only_words": FILTERS[pick.only],
        "filters": tuple(_filters(pick, lists, SAMPLED if run.draws.is_sampled else FILTERS)),
        "is_searched": lists.is_searched,
    }


def _active(pick: Pick) -> dict[str, str]:
    values = {"q": pick.query, "only": pick.only, "bucket": "" if pick.bucket is None else str(pick.bucket)}
    values["size"] = "" if pick.limit == CASES_PER_PAGE else str(pick.limit)
    return {name: value for name, value in values.items() if value}


def _filters(pick: Pick, lists: CaseLists, labels: Mapping[str, str]) -> Iterator[RunCaseFilter]:
    """Yield the exclusive filters, then the additional ones, without empty ones.

    For a run of several buckets, only cases with differing scores are counted over all of them.
    """
    if lists.letters:
        yield from _filters_by_backend(pick, lists)
    else:
        yield _filter(pick, "", FILTERS[""], lists.counts)
    if lists.letters and pick.bucket is None:
        return
    on = f" on {lists.letters.get(pick.bucket or 0, '?')}" if lists.letters else ""
    for name in KINDS:
        if lists.counts[name] or pick.only == name:
            yield _filter(pick, name, f"{labels[name]}{on}", lists.counts)
    is_apart = True
    for name in OTHERS if not lists.letters else ():
        if pick.only == name or (lists.counts[name] and name != "failed"):  # which the kinds say better
            yield _filter(pick, name, labels[name], lists.counts, is_apart=is_apart)
            is_apart = False


def _filters_by_backend(pick: Pick, lists: CaseLists) -> Iterator[RunCaseFilter]:
    whole = replace(pick, only="", bucket=None)
    n_all = lists.n_cases
    yield _filter(replace(whole, only=pick.only), "differ", FILTERS["differ"], lists.counts)
    yield RunCaseFilter(FILTERS[""], n_all, _url(whole), pick.only == "" and pick.bucket is None)
    for bucket, letter in lists.letters.items():
        own = replace(whole, bucket=bucket)
        is_on = pick.bucket == bucket and not pick.only
        n = lists.n_answered[bucket]
        yield RunCaseFilter(f"answered by {letter}", n, _url(own), is_on, is_apart=bucket == next(iter(lists.letters)))


def _filter(pick: Pick, only: str, label: str, counts: Mapping[str, int], *, is_apart: bool = False) -> RunCaseFilter:
    return RunCaseFilter(label, counts[only], _url(replace(pick, only=only)), only == pick.only, is_apart)


def _url(pick: Pick) -> str:
    return f"?{urlencode(_active(pick))}#cases"


def _exports(run: Run, pick: Pick) -> tuple[Export, ...]:
    """Return the run whole, and the cases that its list shows; nothing before a repeat has ended.

    A list by bucket is of the page alone.
    """
    if all(line.status in AT_WORK for line in run.repeats):
        return ()
    run_id = int(run.id)
    whole = Export("run with its traces", reverse("api:run_export", args=[run_id]))
    if pick.bucket is not None or pick.only == "differ":
        return (whole,)
    filters = {"query": pick.query, "only": pick.only}
    return (
        whole,
        Export("these cases as CSV", filtered_url(reverse("api:cases_csv", args=[run_id]), filters)),
        Export("as JSONL", filtered_url(reverse("api:cases_jsonl", args=[run_id]), filters)),
    )
