"""Suites, how their scores moved, and their cases."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from frontend import charts, findings, history, plotly
from frontend.paging import Page, offset_of, page_of
from runs import selectors
from runs.access import READ, requires
from runs.selectors.suite import BucketHistory, HistoryPoint, SuiteReport

CASES_PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class BucketRows:
    """A bucket's runs, newest first, each with its small ruler on the scale that all of them share."""

    bucket: BucketHistory
    shape: int
    rows: tuple[tuple[HistoryPoint, charts.Ruler], ...]


@requires(READ)
@require_safe
def suites(request: HttpRequest) -> HttpResponse:
    return render(request, "frontend/suites.html", {"suites": selectors.suite_rows()})


@requires(READ)
@require_safe
def suite(request: HttpRequest, slug: str) -> HttpResponse:
    report = selectors.suite_report(slug, with_cases=False)
    scale = charts.scale_for(
        (value for bucket in report.buckets for point in bucket.points for value in point.points),
        least=4 * report.points_per_case,
    )
    page = {
        "suite": report,
        "finding": findings.of_suite(report),
        "caption": findings.of_history(report),
        "scorer": findings.of_scorer(report),
        "figure": history.figure(report),
        "style_ids": plotly.style_ids(),
        "rotations": history.rotations(report.buckets),
        "scale": scale,
        "buckets": _bucket_rows(report, scale),
    }
    return render(request, "frontend/suite.html", page)


def _bucket_rows(report: SuiteReport, scale: charts.Scale) -> tuple[BucketRows, ...]:
    return tuple(
        BucketRows(
            bucket=bucket,
            shape=shape % charts.N_SHAPES,
            rows=tuple(
                (point, charts.ruler(point.points, scale, is_small=True))
                for point in sorted(bucket.points, key=lambda point: (point.at, point.run_id), reverse=True)
            ),
        )
        for shape, bucket in enumerate(report.buckets)
    )


@requires(READ)
@require_safe
def version(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    report = selectors.suite_report(slug, version=number)
    query = request.GET.get("q", "").strip()
    wanted = query.casefold()
    cases = tuple(
        case
        for case in report.cases
        if wanted in case.case_id.casefold()
        or wanted in case.prompt.casefold()
        or any(wanted in tag.casefold() for tag in case.tags)
    )
    page: Page = page_of(cases, offset=offset_of(request), limit=CASES_PER_PAGE)
    kept = urlencode({"q": query}) if query else ""
    return render(
        request, "frontend/suite_version.html", {"suite": report, "page": page, "query": query, "query_string": kept}
    )
