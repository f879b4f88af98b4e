"""Suites, how their scores moved and against what, and their cases."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from frontend import baseline_bands, baseline_lines, charts, history, plotly, suite_words
from frontend.baseline_bands import Band
from frontend.forms import BaselineForm
from frontend.paging import Page, offset_of, page_of
from runs import selectors
from runs.access import READ, requires
from runs.selectors.judged import JudgedLine
from runs.selectors.suite import BucketHistory, HistoryPoint, SuiteReport
from runs.selectors.suite_noise import BucketNoise
from runs.selectors.suite_standing import SuiteStanding, suite_standing

CASES_PER_PAGE = 100


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in one bucket, with its small ruler on the scale that all of them share, its baseline shaded."""

    point: HistoryPoint
    ruler: charts.Ruler
    band: charts.RulerBand | None
    judged: tuple[JudgedLine, ...]


@dataclass(frozen=True, slots=True)
class BucketRows:
    """A bucket's runs, newest first. `current`: the runs of it that are current baselines; `expired`: one that was."""

    bucket: BucketHistory
    shape: int
    noise: BucketNoise | None
    current: tuple[int, ...]
    is_expired: bool
    rows: tuple[RunLine, ...]


@requires(READ)
@require_safe
def suites(request: HttpRequest) -> HttpResponse:
    return render(request, "frontend/suites.html", {"suites": selectors.suite_rows()})


@requires(READ)
@require_safe
def suite(request: HttpRequest, slug: str) -> HttpResponse:
    return suite_page(request, slug)


def suite_page(request: HttpRequest, slug: str, *, form: BaselineForm | None = None, status: int = 200) -> HttpResponse:
    """The page of a suite; `form` is one that asks for a baseline and was refused."""
    report = selectors.suite_report(slug, with_cases=False)
    standing = suite_standing(report)
    zones = baseline_bands.bands(report.buckets, standing)
    eligible = baseline_lines.eligible(report, standing)
    scale = charts.scale_for(_shown(report, zones), least=4 * report.points_per_case)
    page = {
        "suite": report,
        "standing": standing,
        "finding": suite_words.of_suite(report, standing),
        "caption": suite_words.of_history(report, standing),
        "scorer": suite_words.of_scorer(report),
        "figure": history.figure(report, standing),
        "style_ids": plotly.style_ids(),
        "bands": zones,
        "rotations": baseline_bands.rotations(report.buckets, standing),
        "scale": scale,
        "buckets": _bucket_rows(report, standing, zones, scale),
        "baselines": baseline_lines.lines(standing, eligible),
        "form": form or BaselineForm(runs=eligible, initial={"run": request.GET.get("run", "")}),
        "is_setting": "run" in request.GET,
        "eligible": eligible,
    }
    return render(request, "frontend/suite.html", page, status=status)


def _shown(report: SuiteReport, zones: Sequence[Band]) -> list[float]:
    points = [value for bucket in report.buckets for point in bucket.points for value in point.points]
    return points + [end for band in zones for end in (band.low, band.high)]


def _bucket_rows(
    report: SuiteReport, standing: SuiteStanding, zones: Sequence[Band], scale: charts.Scale
) -> tuple[BucketRows, ...]:
    """Those at work last first, and what has expired after them."""
    shapes = baseline_bands.shapes_of(report.buckets, standing)
    held = [row for row in standing.baselines if row.is_current and not row.is_expired]
    expired = {row.run.bucket_id for row in standing.baselines if row.is_expired}
    current = {row.run.bucket_id for row in held}
    found = [
        BucketRows(
            bucket=bucket,
            shape=shapes[bucket.bucket_id] % charts.N_SHAPES,
            noise=standing.noise.get(bucket.bucket_id),
            current=tuple(row.run.id for row in held if row.run.bucket_id == bucket.bucket_id),
            is_expired=bucket.bucket_id in expired - current,
            rows=tuple(
                _line(point, bucket, standing, zones, scale)
                for point in sorted(bucket.points, key=lambda point: (point.at, point.run_id), reverse=True)
            ),
        )
        for bucket in report.buckets
    ]
    return tuple(sorted(found, key=lambda rows: (rows.is_expired, -rows.rows[0].point.run_id)))


def _line(
    point: HistoryPoint, bucket: BucketHistory, standing: SuiteStanding, zones: Sequence[Band], scale: charts.Scale
) -> RunLine:
    band = baseline_bands.band_of(zones, point, bucket)
    shaded = charts.ruler_band(band.low, band.high, scale, is_expired=band.is_expired) if band else None
    return RunLine(
        point=point,
        ruler=charts.ruler(point.points, scale, is_small=True),
        band=shaded,
        judged=standing.judged.get(point.run_id, ()),
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
