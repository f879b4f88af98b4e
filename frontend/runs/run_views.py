"""One run: what happened, and whether it can be trusted."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from evalboard.contract.response import CaseOfRun
from evalboard.contract.run import Run
from evalboard.core.verdict import has_enough_cases
from frontend.compare import comparing
from frontend.runs import noise_table, progress, words
from frontend.runs.charts import shard_row
from frontend.runs.forms import RepeatsForm, RescoreForm
from frontend.shell import charts
from frontend.shell.addresses import Export, filtered_url
from frontend.shell.lists import OffsetPage, parse_offset, window_page
from runs.access import READ, requires
from runs.baselines import baselines_with
from runs.run import Pick, judged, live_report, run_page, run_rows

AT_WORK = ("queued", "running")
CASES_PER_PAGE = 25
UNSTABLE, LIKELY = Pick(only="unstable", limit=12), Pick(only="likely", limit=6)
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
PARTS = {"progress": "runs/_live.html"}


@dataclass(frozen=True, slots=True)
class CaseFilter:
    label: str
    url: str
    is_on: bool


@requires(READ)
@require_safe
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    part = request.GET.get("part")
    if part is None:
        pick = _pick(request)
        report, lists = run_page(run_id, (pick, UNSTABLE, LIKELY))
        return render(request, "runs/page.html", _live(report) | _rest(request, report, pick, lists))
    if part not in PARTS:
        raise Http404
    report = live_report(run_id)
    has_news = request.GET.get("told", "") != last_event_at(report)
    response = render(request, PARTS[part], _live(report) | {"is_part": True, "has_news": has_news})
    if report.is_terminal or request.GET.get("stage", stage(report)) != stage(report):
        response["HX-Refresh"] = "true"  # the rest of the page is no longer true
    response["Cache-Control"] = "no-store"
    return response


def stage(run: Run) -> str:
    """Return what the parts of the page depend on that polling does not bring up to date."""
    n_ended = sum(line.status not in ("queued", "running") for line in run.every_repeat)
    cancelling = "-cancelling" if run.is_cancel_wanted else ""
    return f"{run.status}-{n_ended}-{len(run.processes)}{cancelling}"


def last_event_at(run: Run) -> str:
    """Return how far the history goes that a page shows; it is sent again when it goes further."""
    return run.events[-1].at.isoformat() if run.events else ""


def _live(run: Run) -> dict[str, object]:
    under_way = () if run.is_terminal else progress.at_work(run.every_repeat)
    in_vain = () if run.is_terminal else progress.tried_again(run.every_repeat)
    scored = [value for value in run.drawn_points if value is not None]
    scale = charts.scale_for(scored, least=4 * run.points_per_case)
    return {
        "run": run,
        "stage": stage(run),
        "finding": words.describe_run(run),
        "is_deserted": any(warning.code == words.DESERTED for warning in run.warnings),
        "banners": tuple(warning for warning in run.warnings if warning.code != SAID_IN_THE_FINDING),
        "has_strays": any(bucket.strays for bucket in run.buckets),
        "at_work": under_way[:SHARDS_NAMED],
        "n_at_work": len(under_way),
        "n_workers": progress.n_workers(under_way),
        "tried_again": in_vain[:SHARDS_NAMED],
        "n_tried_again": len(in_vain),
        "story": progress.story(run.events),
        "told": last_event_at(run),
        "shard_rows": tuple(shard_row(line) for line in run.every_repeat),
        "targeted_words": words.describe_targeted(run),
        "ruler": charts.ruler(run.drawn_points, scale) if scored and run.n_buckets < 2 else None,
        "n_scored": len(scored),
        "part_done": run.progress.n_done / max(run.progress.n_total, 1),
        "announced_percent": 10 * (10 * run.progress.n_done // max(run.progress.n_total, 1)),
    }


def _pick(request: HttpRequest) -> Pick:
    """Return which cases the page is to list, one more than it shows."""
    only = request.GET.get("only", "")
    return Pick(
        query=request.GET.get("q", "").strip(),
        only=only if only in dict(FILTERS) else "",
        offset=parse_offset(request),
        limit=CASES_PER_PAGE + 1,
    )


def _rest(request: HttpRequest, run: Run, pick: Pick, lists: Sequence[tuple[CaseOfRun, ...]]) -> dict[str, object]:
    rows, unstable, likely = lists
    query, only = pick.query, pick.only
    has_more = len(rows) > CASES_PER_PAGE
    cases: OffsetPage = window_page(rows, offset=pick.offset, limit=CASES_PER_PAGE, has_more=has_more)
    return {
        "unstable": unstable,
        "likely": likely,
        "likely_finding": words.describe_likely_flips(run),
        "noise_finding": words.describe_noise(run),
        "draws_finding": words.describe_draws(run),
        "noise_rows": noise_table.rows(run.buckets),
        "cases": cases,
        "cases_query": urlencode({name: value for name, value in (("q", query), ("only", only)) if value}),
        "query": query,
        "only": only,
        "exports": _exports(run, query=query, only=only),
        "only_words": dict(FILTERS)[only],
        "filters": tuple(_filter(value, label, query, only) for value, label in FILTERS),
        "processes": words.describe_processes(run),
        "curl": curl(request, run),
        **_standing(run),
        "may_be_compared": comparing.may_be_compared(run),
        "others": comparing.others(run.row, run_rows(suite=run.suite.slug, limit=RUNS_LOOKED_AT)),
        "repeat_pairs": comparing.repeat_pairs(run),
        "repeats_form": RepeatsForm(),
        "rescore_form": RescoreForm(),
    }


def _standing(run: Run) -> dict[str, object]:
    """Return what the run is to others: a baseline, a side of releases; and what it may become."""
    baselines = baselines_with(run.row)
    is_fit = run.status == "finished" and run.n_buckets == 1
    has_ended = run.status in ("finished", "incomplete")
    return {
        "baselines": baselines,
        "judged": judged([int(run.id)]).get(int(run.id), ()),
        "may_be_judged": has_ended and has_enough_cases(run.n_cases_unscored, run.suite.n_cases),
        "may_be_baseline": is_fit and not any(line.is_current and not line.is_expired for line in baselines),
    }


def _filter(value: str, label: str, query: str, only: str) -> CaseFilter:
    query_string = urlencode({name: part for name, part in (("q", query), ("only", value)) if part})
    return CaseFilter(label, f"?{query_string}#cases", value == only)


def curl(request: HttpRequest, run: Run) -> str:
    """Return the same run asked for again, as a command for a shell."""
    quoted = json.dumps(run.request_body, ensure_ascii=False).replace("'", "'\\''")
    lines = (
        f"curl -X POST {request.build_absolute_uri('/api/v1/runs/')}",
        '-H "Authorization: Bearer $EVALBOARD_TOKEN"',
        "-H 'Content-Type: application/json'",
        f"-d '{quoted}'",
    )
    return " \\\n  ".join(lines)


def _exports(run: Run, *, query: str, only: str) -> tuple[Export, ...]:
    """Return the run whole, and the cases that its list shows; nothing before a repeat has ended."""
    if all(line.status in AT_WORK for line in run.repeats):
        return ()
    run_id = int(run.id)
    filters = {"query": query, "only": only}
    return (
        Export("run with its traces", reverse("api:run_export", args=[run_id])),
        Export("these cases as CSV", filtered_url(reverse("api:cases_csv", args=[run_id]), filters)),
        Export("as JSONL", filtered_url(reverse("api:cases_jsonl", args=[run_id]), filters)),
    )
