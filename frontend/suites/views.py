"""Suites, how their scores moved and against what, and their cases."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalboard.contract.figures import BucketNoise
from evalboard.contract.suite import BucketHistory, HistoryRow
from frontend.shell.charts import marks
from frontend.shell.charts.axes import Scale, scale_for
from frontend.shell.lists import read_view
from frontend.suites import baselines, history, words, worth
from frontend.suites.baselines import BaselinePeriod
from frontend.suites.forms import BaselineForm
from runs import acts
from runs.access import READ, requires
from runs.catalogue import ENGINES
from runs.catalogue.read import decoding_profiles, endpoint_slugs
from runs.run import JudgedLine
from runs.store import RowWindow
from runs.suites import (
    SUITE_ORDERS,
    SuiteReport,
    SuiteStanding,
    cases_report,
    cases_worth,
    suite_report,
    suite_rows,
    suite_standing,
)
from runs.uploads import open_uploads

CASES_PER_PAGE, SUITES_PER_PAGE = 100, 50
LIST_PART = "list"


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in one bucket, with its small ruler on the scale that all of them share, its baseline shaded."""

    point: HistoryRow
    ruler: marks.Ruler
    band: marks.RulerBand | None
    judged: tuple[JudgedLine, ...]


@dataclass(frozen=True, slots=True)
class BucketRows:
    """A bucket's runs, newest first. current: runs that are baselines; expired: one that was."""

    bucket: BucketHistory
    shape: int
    noise: BucketNoise | None
    current: tuple[int, ...]
    is_expired: bool
    rows: tuple[RunLine, ...]


@requires(READ)
@require_safe
def suites(request: HttpRequest) -> HttpResponse:
    uploads = open_uploads()
    view = read_view(request.GET, orders=SUITE_ORDERS, default="slug", size=SUITES_PER_PAGE)
    page = {
        "list": view.slice(suite_rows()),
        "part_url": view.url(part=LIST_PART, offset=str(view.offset or "")),
        "uploads": uploads,
        "is_moving": any(upload.status != "failed" for upload in uploads),
    }
    if request.GET.get("part") == LIST_PART:
        answer = render(request, "suites/_list.html", page)
        answer.headers["Cache-Control"] = "no-store"
        return answer
    return render(request, "suites/list.html", page)


@requires(READ)
@require_safe
def suite(request: HttpRequest, slug: str) -> HttpResponse:
    return suite_page(request, slug)


def suite_page(request: HttpRequest, slug: str, *, form: BaselineForm | None = None, status: int = 200) -> HttpResponse:
    """Return the page of a suite; `form` is one that asks for a baseline and was refused."""
    report = suite_report(slug)
    standing = suite_standing(report)
    focused = _focused(request, report)
    shown = report if focused is None else replace(report, buckets=(focused,))
    zones = baselines.bands(report.buckets, standing)
    eligible = baselines.list_eligible(report, standing)
    scale = scale_for(_shown(shown, zones), least=4 * report.suite.points_per_case)
    page = {
        "suite": report.suite,
        "versions": report.versions,
        "standing": standing,
        "finding": words.describe_suite(report, standing),
        "caption": words.describe_history(report, standing),
        "scorer": words.describe_scorer(report.suite),
        "figure": history.figure(report, standing, only=focused),
        "focused": focused,
        "all_buckets": _bucket_rows(report, standing, zones, scale),
        "bands": zones,
        "rotations": baselines.rotations(report.buckets, standing),
        "scale": scale,
        "buckets": _bucket_rows(shown, standing, zones, scale),
        "baselines": (lines := baselines.group_baselines(standing, eligible)),
        "again": acts.find_open(
            "again", [line.current.run_id for line in lines if line.current.is_expired], request.user
        ),
        "form": form or BaselineForm(runs=eligible, initial={"run": request.GET.get("run", "")}),
        "is_setting": "run" in request.GET,
        "at_once": _at_once(request, report),
        "worth": worth.describe_worth(report.suite, cases_worth(report)),
        "eligible": eligible,
    }
    return render(request, "suites/page.html", page, status=status)


def _at_once(request: HttpRequest, report: SuiteReport) -> dict[str, str] | None:
    """Return the fields of a run that one press starts, None if no endpoint is obvious.

    It runs as the newest run did, or on the only endpoint.
    """
    runs = [(point.run_id, point.endpoint, point.profile) for bucket in report.buckets for point in bucket.runs]
    known = endpoint_slugs(ENGINES)
    _, endpoint, profile = max(runs, default=(0, "", "pinned"))
    endpoint = request.GET.get("endpoint", endpoint) or (known[0] if len(known) == 1 else "")
    if endpoint not in known or profile not in decoding_profiles():
        return None
    return {"suite": report.suite.slug, "endpoint": endpoint, "profile": profile, "repeats": "5"}


def _focused(request: HttpRequest, report: SuiteReport) -> BucketHistory | None:
    """Return the bucket named by `?bucket=`, None for all or an unknown id."""
    wanted = request.GET.get("bucket", "")
    return next((bucket for bucket in report.buckets if str(bucket.bucket_id) == wanted), None)


def _shown(report: SuiteReport, zones: Sequence[BaselinePeriod]) -> list[float]:
    points = [value for bucket in report.buckets for point in bucket.runs for value in point.points]
    return points + [end for band in zones for end in (band.low, band.high)]


def _bucket_rows(
    report: SuiteReport, standing: SuiteStanding, zones: Sequence[BaselinePeriod], scale: Scale
) -> tuple[BucketRows, ...]:
    """Return the most recently active buckets first, expired ones last."""
    shapes = baselines.choose_shapes(report.buckets, standing)
    holding = [row for row in standing.baselines if row.is_current and not row.is_expired]
    expired = {row.bucket_id for row in standing.baselines if row.is_expired}
    current = {row.bucket_id for row in holding}
    lines = [
        BucketRows(
            bucket=bucket,
            shape=shapes[bucket.bucket_id] % marks.N_SHAPES,
            noise=standing.noise.get(bucket.bucket_id),
            current=tuple(row.run_id for row in holding if row.bucket_id == bucket.bucket_id),
            is_expired=bucket.bucket_id in expired - current,
            rows=tuple(
                _line(point, bucket, standing, zones, scale)
                for point in sorted(bucket.runs, key=lambda point: (point.date, point.run_id), reverse=True)
            ),
        )
        for bucket in report.buckets
    ]
    return tuple(sorted(lines, key=lambda rows: (rows.is_expired, -rows.rows[0].point.run_id)))


def _line(
    point: HistoryRow,
    bucket: BucketHistory,
    standing: SuiteStanding,
    zones: Sequence[BaselinePeriod],
    scale: Scale,
) -> RunLine:
    band = baselines.find_band(zones, point, bucket)
    shaded = marks.ruler_band(band.low, band.high, scale, is_expired=band.is_expired) if band else None
    return RunLine(
        point=point,
        ruler=marks.ruler(point.points, scale, is_small=True),
        band=shaded,
        judged=standing.judged.get(point.run_id, ()),
    )


@requires(READ)
@require_safe
def version(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    query = request.GET.get("q", "").strip()
    view = read_view(request.GET, size=CASES_PER_PAGE, active={"q": query}, anchor="cases")
    report = cases_report(slug, version=number, query=query, offset=view.offset, limit=view.size)
    page = view.page(RowWindow(report.cases, report.n_cases))
    return render(
        request,
        "suites/version.html",
        {"suite": report.suite, "page": page, "query": query},
    )
