"""Forced scorings: request them for a run or a comparison's sides, and show each."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.contract.forced import ForcedAnswer, ForcedScoring
from frontend.forced import words
from frontend.shell import addresses
from frontend.shell.findings import Headline
from frontend.shell.forms import once, posted_from, reporting
from frontend.shell.live import answer_progress
from runs import acts
from runs.access import READ, RUN, requires
from runs.catalogue import read as catalogue
from runs.forced import create_forced, create_forced_pair
from runs.forced import read as selector
from runs.run import run_report
from runs.work import unclaimed_reason

SHOWN = 25  # scorings of a run, and answers of a scoring
PARTS = {"progress": "forced/_live.html"}


@requires(READ, post=RUN)
@require_http_methods(["GET", "HEAD", "POST"])
@once
def run_scorings(request: HttpRequest, run_id: int) -> HttpResponse:
    """The scorings of a run, what another takes, and asking for it."""
    if request.method == "POST":
        with reporting(request):
            scoring = create_forced(
                run_id=run_id,
                endpoint=request.POST.get("endpoint", ""),
                profile=request.POST.get("profile") or None,
                user=request.user,
            )
            messages.success(request, f"Forced scoring {scoring.pk} is queued; this page follows it.")
            return redirect("forced", forced_id=scoring.pk)
        return redirect("run_forced", run_id=run_id)
    page = {
        "run": run_report(run_id),
        "offer": acts.can_on_runs("force", [run_id], request.user),
        "cost": selector.forced_cost(run_id),
        "scorings": selector.forced_rows(run_id, limit=SHOWN),
        "endpoints": [row for row in catalogue.endpoint_rows() if row.engine == "vllm"],
        "profiles": catalogue.profile_rows(),
    }
    return render(request, "forced/of_run.html", page)


@requires(RUN)
@posted_from("compare", "baseline", "candidate")
@once
def score_both(request: HttpRequest, baseline: int, candidate: int) -> HttpResponse:
    with reporting(request):
        create_forced_pair(baseline_id=baseline, candidate_id=candidate, user=request.user)
        messages.success(request, "Both sides are scored on both stacks; the result will appear here.")
    return redirect("compare", baseline=baseline, candidate=candidate)


@requires(READ)
@require_safe
def forced(request: HttpRequest, forced_id: int) -> HttpResponse:
    scoring = selector.forced_row(forced_id)
    part = request.GET.get("part")
    if part is not None:
        if part not in PARTS:
            raise Http404
        return answer_progress(request, PARTS[part], _live(scoring), is_over=scoring.is_terminal)
    numbers = words.list_parts(scoring)
    page = {
        **_live(scoring),
        "numbers": numbers,
        "has_figures": any(part.figure for part in numbers),
        "worst": [_row(scoring, each) for each in selector.worst_answers(forced_id, limit=SHOWN)],
        "failed": [_row(scoring, each) for each in selector.failed_answers(forced_id, limit=SHOWN)],
    }
    return render(request, "forced/page.html", page)


def _live(scoring: ForcedScoring) -> dict[str, object]:
    n_claims = 1 if scoring.is_reported or scoring.by_bucket else 2
    claims, rest = scoring.reading[:n_claims], scoring.reading[n_claims:]
    finding = Headline(" ".join(claims), " ".join(rest)) if claims else None
    return {
        "scoring": scoring,
        "finding": finding,
        "nobody": unclaimed_reason(scoring.endpoint) if scoring.status == "queued" and scoring.endpoint else "",
        "part_done": scoring.n_done / max(scoring.n_answers, 1),
    }


def _row(scoring: ForcedScoring, answer: ForcedAnswer) -> dict[str, object]:
    """An answer with the address of its response's page, at the token that is furthest off."""
    at = answer.figures.worst_at if answer.figures and answer.figures.worst_log_ratio else None
    url = addresses.response_url(int(scoring.run), answer.repeat, answer.case)
    return {"of": answer, "url": url if at is None else f"{url}?at={at}"}


urlpatterns = [
    path("runs/<int:run_id>/forced/", run_scorings, name="run_forced"),
    path("forced/<int:forced_id>/", forced, name="forced"),
    path("compare/<int:baseline>/<int:candidate>/forced/", score_both, name="forced_pair"),
]
