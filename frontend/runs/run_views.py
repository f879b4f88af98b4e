"""One run: what happened, and whether it can be trusted."""

import json

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evalboard.contract.run import Run
from evalboard.core.release import has_enough_cases
from evalboard.wording import run as wording
from evalboard.wording.labels import describe_labels
from evalboard.wording.numbers import count_samples
from frontend.compare import comparing
from frontend.runs import case_list, charts, folds, looking_at, progress, words
from frontend.runs.charts import shard_row
from frontend.runs.forms import RepeatsForm, RescoreForm
from frontend.shell.charts.axes import scale_for
from frontend.shell.charts.marks import ruler
from frontend.shell.findings import parts_of
from frontend.shell.live import answer_progress
from runs import acts
from runs.access import READ, requires
from runs.baselines import baselines_beside
from runs.catalogue.read import endpoint_slugs
from runs.judging import judgings_of
from runs.labels import run_labels
from runs.models import RunRecord
from runs.run import CaseLists, judged, live_report, run_page, run_rows

SHARDS_NAMED = 6
RUNS_LOOKED_AT = 20  # of the suite, for the runs that this one may be compared with
JUDGED_SHOWN = 1  # releases; the others are folded
PARTS = {"progress": "runs/_live.html"}


@requires(READ)
@require_safe
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    part = request.GET.get("part")
    if part is None:
        pick = case_list.parse_pick(request)
        report, lists, record = run_page(run_id, [pick])
        shown = _live(report) | case_list.part(report, pick, lists) | _rest(request, report, lists, record)
        return render(request, "runs/page.html", shown)
    if part not in PARTS:
        raise Http404
    report = live_report(run_id)
    has_news = request.GET.get("told", "") != last_event_at(report)
    is_over = report.is_terminal or request.GET.get("stage", stage(report)) != stage(report)
    return answer_progress(request, PARTS[part], _live(report) | {"has_news": has_news}, is_over=is_over)


def stage(run: Run) -> str:
    """Return what the parts of the page depend on that polling does not bring up to date."""
    n_ended = sum(line.status not in ("queued", "running") for line in run.every_repeat)
    cancelling = "-cancelling" if run.is_cancel_wanted else ""
    trouble = f"-{run.trouble.code}" if run.trouble else ""
    begun = "-begun" if run.progress.n_done else ""
    paused = f"-{run.waiting_for.until:%H%M%S}" if run.waiting_for else ""
    return f"{run.status}-{n_ended}-{len(run.processes)}{begun}{cancelling}{trouble}{paused}"


def last_event_at(run: Run) -> str:
    """Return the time of the last shown history event, to poll for later ones."""
    return run.events[-1].at.isoformat() if run.events else ""


def _live(run: Run) -> dict[str, object]:
    under_way = () if run.is_terminal else progress.at_work(run.every_repeat)
    in_vain = () if run.is_terminal else progress.tried_again(run.every_repeat)
    scored = [value for value in run.drawn_points if value is not None]
    scale = scale_for(scored, least=4 * run.points_per_case)
    return {
        "run": run,
        "stage": stage(run),
        "finding": words.describe_run(run),
        "samples": count_samples(run.noise.n_draws or 0.0),
        "is_deserted": any(warning.code == words.DESERTED for warning in run.warnings),
        "pauses": wording.PAUSES,
        "stops": progress.list_stops(run) if run.trouble else (),
        "is_bare": run.trouble is not None
        and not run.progress.n_done
        and not run.buckets,  # there is nothing else to show of it
        "banners": tuple(
            warning
            for warning in run.warnings
            if warning.severity == "warning"
            and warning.code not in (*looking_at.SAID_ELSEWHERE, *_in_the_head(run))
            and (run.progress.n_done or warning.must_act == "operator")
        ),
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
        "ruler": ruler(run.drawn_points, scale) if scored and run.n_buckets < 2 else None,
        "n_scored": len(scored),
        "part_done": run.progress.n_done / max(run.progress.n_total, 1),
        "announced_percent": 10 * (10 * run.progress.n_done // max(run.progress.n_total, 1)),
    }


def _in_the_head(run: Run) -> tuple[str, ...]:
    """Return the warnings that the head of a run in trouble says."""
    return ("endpoint_rests", "failed", "cancelled", words.DESERTED) if run.trouble else ()


def _rest(request: HttpRequest, run: Run, lists: CaseLists, record: RunRecord) -> dict[str, object]:
    backends = charts.draw_backends(run)
    [record] = acts.with_surroundings([record])
    known, offers = acts.surroundings(record), acts.offers_of(record, request.user)
    baseline, baselines = baselines_beside(run.row)
    noise_rows = folds.noise_rows(run.buckets)
    added = [item for part in (parts_of("imported_run", run) if run.source else ()) for item in part.items]
    return {
        "result": charts.draw_result(run, baseline),
        "backends": backends,
        "axis": charts.draw_axis(backends, run),
        "banner": looking_at.describe_banner(backends) if backends else "",
        "items": looking_at.list_items(run, backends, lists.counts.get("differ", 0), added),
        "fact_lines": wording.describe_course(run),
        "folds": folds.summarise(run, backends, len(noise_rows)),
        "noise_finding": words.describe_noise(run),
        "draws_finding": words.describe_draws(run),
        "noise_rows": noise_rows,
        "processes": words.describe_processes(run),
        "curl": curl(request, run),
        "baselines": baselines,
        **_standing(run),
        "acts": offers,
        "may_try": run.waiting_for is not None and acts.can("try_now", record.endpoint, request.user),
        "unavailable": progress.unavailable(offers),
        "endpoints": endpoint_slugs() if offers["again"] else (),
        "labels": describe_labels(run_labels(int(run.id))) if run.is_terminal and known.has_labels else "",
        "others": comparing.others(run.row, run_rows(suite=run.suite.slug, limit=RUNS_LOOKED_AT)),
        "repeat_pairs": comparing.repeat_pairs(run),
        "judgings": judgings_of(int(run.id)) if known.has_judging else (),
        "repeats_form": RepeatsForm(initial={"have": run.n_repeats}),
        "rescore_form": RescoreForm(),
    }


def _standing(run: Run) -> dict[str, object]:
    """Return the run's roles: side of releases, or what it may become."""
    lines = judged([int(run.id)]).get(int(run.id), ())
    return {
        "judged": lines[:JUDGED_SHOWN],
        "judged_before": lines[JUDGED_SHOWN:],
        "has_enough_cases": has_enough_cases(run.n_cases_unscored, run.suite.n_cases),
    }


def curl(request: HttpRequest, run: Run) -> str:
    """Return a shell command that requests the same run again."""
    quoted = json.dumps(run.request_body, ensure_ascii=False).replace("'", "'\\''")
    lines = (
        f"curl -X POST {request.build_absolute_uri('/api/v1/runs/')}",
        '-H "Authorization: Bearer $EVALBOARD_TOKEN"',
        "-H 'Content-Type: application/json'",
        f"-d '{quoted}'",
    )
    return " \\\n  ".join(lines)
