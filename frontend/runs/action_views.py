"""What people do to a run. Each is one service call; its refusal becomes words on the run's page."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evalboard.core.errors import NotFound
from evalboard.core.scoring import is_judged, scores_here
from evalboard.wording.numbers import counted
from evalboard.wording.run import describe_try
from frontend.runs.forms import RepeatsForm, RescoreForm
from frontend.shell.forms import PlainForm, once, posted_from, refuse, reporting, show_queued
from frontend.shell.lists import parse_number
from runs import acts
from runs import run as run_slice
from runs.access import ADMIN, RUN, requires
from runs.models import JudgingRecord
from runs.run import cancel_run, complete_run, delete_run, run_again, run_report
from runs.suites import rescore_run
from runs.work import try_endpoint


@requires(RUN)
@posted_from("run", "run_id")
def cancel(request: HttpRequest, run_id: int) -> HttpResponse:
    return _act(request, run_id, partial(cancel_run, run_id=run_id), "Cancelling. Stored responses and scores stay.")


@requires(RUN)
@posted_from("run", "run_id", at="again")
@once
def again(request: HttpRequest, run_id: int) -> HttpResponse:
    order: dict[str, Any] = {"run_id": run_id, "endpoint": request.POST.get("endpoint") or None}
    with reporting(request):
        then = f"it has the settings of run {run_id}"
        return show_queued(request, [run_again(**order, user=request.user)], then)
    return redirect("run", run_id=run_id)


@requires(RUN)
@posted_from("endpoint", "endpoint")
def try_now(request: HttpRequest, endpoint: str) -> HttpResponse:
    """Let the next call of a paused endpoint go at once, from its page or a run's."""
    with reporting(request):
        try_endpoint(endpoint=endpoint)
        messages.success(request, describe_try(endpoint))
    run = request.POST.get("run", "")
    return redirect("run", run_id=int(run)) if run.isascii() and run.isdigit() else redirect("endpoint", endpoint)


@requires(RUN)
@posted_from("run", "run_id")
def complete(request: HttpRequest, run_id: int) -> HttpResponse:
    act = partial(complete_run, run_id=run_id)
    return _act(request, run_id, act, "The missing responses are queued, under the same settings and seeds.")


@requires(RUN)
@posted_from("run", "run_id")
@once
def add_repeats(request: HttpRequest, run_id: int) -> HttpResponse:
    form = RepeatsForm(request.POST)
    if not form.is_valid():
        return _refuse(request, run_id, form)
    act = partial(run_slice.add_repeats, run_id=run_id, **form.cleaned_data)
    return _act(request, run_id, act, f"{counted(form.cleaned_data['n'], 'more repeat')} queued.")


@requires(RUN)
@posted_from("run", "run_id")
@once
def rescore(request: HttpRequest, run_id: int) -> HttpResponse:
    form = RescoreForm(request.POST)
    if not form.is_valid():
        return _refuse(request, run_id, form)
    with reporting(request):
        made = rescore_run(run_id=run_id, scorer=form.cleaned_data["scorer"])
        done = "The stored responses were scored again"
        if not scores_here(made.spec):
            done = f"A {'judge' if is_judged(made.spec) else 'worker'} scores the stored responses"
        messages.success(request, f"{done}; both scores are kept.")
    response = redirect("run", run_id=run_id)
    response["Location"] += "#scores"
    return response


@requires(RUN)
@posted_from("run", "run_id")
@once
def judge_again(request: HttpRequest, run_id: int) -> HttpResponse:
    """Let the judge of one of the run's judgings score all answers once more."""
    named = request.POST.get("judging", "")
    judging = JudgingRecord.objects.filter(run=run_id, pk=parse_number(named) or 0).select_related("scorer").first()
    if judging is None:
        raise NotFound(f"Run {run_id} has no judging {named}.")
    plan = judging.scorer.spec
    act = partial(rescore_run, run_id=run_id, scorer=plan["default"], cases=plan["cases"], judge_again=True)
    response = _act(request, run_id, act, "The judge scores the stored responses once more; all scores are kept.")
    response["Location"] += "#judge"
    return response


@requires(ADMIN)
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, run_id: int) -> HttpResponse:
    run = run_report(run_id)
    if request.method != "POST":
        if offer := acts.can_on_runs("delete", [run_id], request.user):
            return render(request, "runs/delete.html", {"run": run})
        messages.warning(request, offer.reason)
        return redirect("run", run_id=run_id)
    with reporting(request):
        delete_run(run_id=run_id)
        messages.success(request, f"Run {run_id} was deleted, with its {run.progress.n_done:,} responses.")
        return redirect("runs")
    return redirect("run", run_id=run_id)


def _act(request: HttpRequest, run_id: int, act: Callable[[], object], words: str) -> HttpResponse:
    with reporting(request):
        act()
        messages.success(request, words)
    return redirect("run", run_id=run_id)


def _refuse(request: HttpRequest, run_id: int, form: PlainForm) -> HttpResponse:
    for name, problems in form.errors.items():
        for problem in problems:
            refuse(request, f"{form[name].label}: {problem}")
    return redirect("run", run_id=run_id)
