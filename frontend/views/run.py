"""One run: what happened, and whether it can be trusted."""

import json
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalboard.core.verdict import is_enough
from frontend import charts, comparing, exports, findings, noise_table, progress
from frontend.forms import RepeatsForm, RescoreForm
from frontend.paging import Page, offset_of, window
from runs import selectors
from runs.access import READ, requires
from runs.selectors.imported import import_of
from runs.selectors.judged import judged
from runs.selectors.run import RunReport

CASES_PER_PAGE = 25
UNSTABLE_SHOWN = 12
LIKELY_SHOWN = 6
SHARDS_NAMED = 6
RUNS_LOOKED_AT = 20  # of the suite, for the runs that this one may be compared with
SAID_IN_THE_FINDING = "coarse_suite"
FILTERS = (
    ("", "all"),
    ("unstable", "unstable"),
    ("likely", "likely to flip"),
    ("failed", "failed"),
    ("missing", "missing"),
    ("left_out", "cached or rerouted"),
    ("passed", "passed"),
)
PARTS = {"progress": "frontend/_live.html"}


@dataclass(frozen=True, slots=True)
class CaseFilter:
    label: str
    url: str
    is_on: bool


@requires(READ)
@require_safe
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    report = selectors.run_report(run_id)
    part = request.GET.get("part")
    if part is None:
        return render(request, "frontend/run.html", _live(report) | _rest(request, report))
    if part not in PARTS:
        raise Http404
    has_news = request.GET.get("told", "") != told(report)
    response = render(request, PARTS[part], _live(report) | {"is_part": True, "has_news": has_news})
    if report.row.is_terminal or request.GET.get("stage", stage(report)) != stage(report):
        response["HX-Refresh"] = "true"  # the rest of the page is no longer true
    response["Cache-Control"] = "no-store"
    return response


def stage(report: RunReport) -> str:
    """What the parts of the page depend on that polling does not bring up to date."""
    n_ended = sum(line.status not in ("queued", "running") for line in report.repeats)
    asked_to_end = "-cancelling" if report.is_cancel_wanted else ""
    return f"{report.row.status}-{n_ended}-{len(report.processes)}{asked_to_end}"


def told(report: RunReport) -> str:
    """How far the history goes that a page shows; it is sent again when it goes further."""
    return report.events[-1].at.isoformat() if report.events else ""


def _live(report: RunReport) -> dict[str, object]:
    under_way = () if report.row.is_terminal else progress.at_work(report.repeats)
    in_vain = () if report.row.is_terminal else progress.tried_again(report.repeats)
    scored = [value for value in report.row.drawn_points if value is not None]
    scale = charts.scale_for(scored, least=4 * report.points_per_case)
    return {
        "run": report,
        "row": report.row,
        "stage": stage(report),
        "finding": findings.of_run(report),
        "is_deserted": any(warning.code == findings.DESERTED for warning in report.warnings),
        "banners": tuple(warning for warning in report.warnings if warning.code != SAID_IN_THE_FINDING),
        "at_work": under_way[:SHARDS_NAMED],
        "n_at_work": len(under_way),
        "n_workers": progress.n_workers(under_way),
        "tried_again": in_vain[:SHARDS_NAMED],
        "n_tried_again": len(in_vain),
        "story": progress.story(report.events),
        "told": told(report),
        "shard_rows": tuple(charts.shard_row(line) for line in report.repeats),
        "ruler": charts.ruler(report.row.drawn_points, scale) if scored and report.row.n_buckets < 2 else None,
        "n_scored": len(scored),
        "part_done": report.progress.n_done / max(report.progress.n_total, 1),
        "announced_percent": 10 * (10 * report.progress.n_done // max(report.progress.n_total, 1)),
    }


def _rest(request: HttpRequest, report: RunReport) -> dict[str, object]:
    run_id = report.row.id
    query = request.GET.get("q", "").strip()
    only = request.GET.get("only", "")
    if only not in dict(FILTERS):
        only = ""
    offset = offset_of(request)
    rows = selectors.case_rows(run_id, query=query, only=only, offset=offset, limit=CASES_PER_PAGE + 1)
    cases: Page = window(rows, offset=offset, limit=CASES_PER_PAGE, has_more=len(rows) > CASES_PER_PAGE)
    return {
        "unstable": selectors.case_rows(run_id, only="unstable", limit=UNSTABLE_SHOWN),
        "likely": selectors.case_rows(run_id, only="likely", limit=LIKELY_SHOWN),
        "likely_finding": findings.of_likely(report),
        "noise_finding": findings.of_noise(report),
        "noise_rows": noise_table.rows(report.buckets),
        "cases": cases,
        "cases_query": urlencode({name: value for name, value in (("q", query), ("only", only)) if value}),
        "query": query,
        "only": only,
        "exports": exports.of_run(report, query=query, only=only),
        "only_words": dict(FILTERS)[only],
        "filters": tuple(_filter(value, label, query, only) for value, label in FILTERS),
        "processes": findings.of_processes(report),
        "broken_pins": tuple(pin for pin in report.pins if not pin.held),
        "other_scores": tuple(line for line in report.scores if not line.is_own),
        "curl": curl(request, report),
        **_standing(report),
        "may_be_compared": comparing.may_be_compared(report),
        "others": comparing.others(report.row, selectors.run_rows(suite=report.row.suite, limit=RUNS_LOOKED_AT)),
        "repeat_pairs": comparing.repeat_pairs(report),
        "repeats_form": RepeatsForm(),
        "rescore_form": RescoreForm(),
    }


def _standing(report: RunReport) -> dict[str, object]:
    """What the run is to others: a baseline, a side of releases; and what it may become."""
    row = report.row
    baselines = tuple(found for found in selectors.baseline_rows(row.suite) if found.run.id == row.id)
    is_fit = row.status == "finished" and row.n_buckets == 1
    has_ended = row.status in ("finished", "incomplete")
    return {
        "baselines": baselines,
        "judged": judged([row.id]).get(row.id, ()),
        "source": import_of(row.id),
        "may_be_judged": has_ended and is_enough(report.n_cases_unscored, report.n_cases),
        "may_be_baseline": is_fit and not any(found.is_current and not found.is_expired for found in baselines),
    }


def _filter(value: str, label: str, query: str, only: str) -> CaseFilter:
    asked = urlencode({name: part for name, part in (("q", query), ("only", value)) if part})
    return CaseFilter(label, f"?{asked}#cases", value == only)


def curl(request: HttpRequest, report: RunReport) -> str:
    """The same run asked for again, as a command for a shell."""
    quoted = json.dumps(report.asked, ensure_ascii=False).replace("'", "'\\''")
    lines = (
        f"curl -X POST {request.build_absolute_uri('/api/v1/runs/')}",
        '-H "Authorization: Bearer $EVALBOARD_TOKEN"',
        "-H 'Content-Type: application/json'",
        f"-d '{quoted}'",
    )
    return " \\\n  ".join(lines)
