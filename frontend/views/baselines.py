"""Setting a suite's baseline, and running an expired one again."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from evalboard.core.errors import EvalboardError, NotFound
from frontend import baseline_lines
from frontend.forms import BaselineForm, blame
from frontend.views.suites import suite_page
from runs import selectors, services
from runs.access import RUN, SIGN, requires
from runs.selectors.suite_standing import BASELINES_READ, suite_standing

REFERENCE = "reference"  # what to run again; anything else is the whole suite


@requires(SIGN)
@require_POST
def set_baseline(request: HttpRequest, slug: str) -> HttpResponse:
    """From the suite's page or a run's; a refusal leads back with its words at the fields."""
    report = selectors.suite_report(slug, with_cases=False)
    form = BaselineForm(request.POST, runs=baseline_lines.eligible(report, suite_standing(report)))
    if form.is_valid():
        asked = form.cleaned_data
        try:
            services.set_baseline(suite=slug, run=asked["run"], reason=asked["reason"], user=request.user)
        except EvalboardError as problem:
            blame(form, problem)
        else:
            messages.success(request, f"Run {asked['run']} is the baseline now.")
            return _to_baselines(slug)
    form.mark_problems()
    return suite_page(request, slug, form=form, status=422)


@requires(RUN)
@require_POST
def run_again(request: HttpRequest, slug: str, baseline_id: int) -> HttpResponse:
    """Ask for the baseline's run once more, on the whole suite or on its reference set."""
    known = selectors.baseline_rows(slug, limit=BASELINES_READ)
    baseline = next((row for row in known if row.id == baseline_id), None)
    if baseline is None:
        raise NotFound(f"Suite {slug} has no baseline {baseline_id}.")
    try:
        suite = services.reference_suite(slug=slug).suite.slug if request.POST.get("what") == REFERENCE else slug
        run = _ask_again(suite, baseline.run.id, request.user)
    except EvalboardError as problem:
        messages.error(request, problem.detail)
        return _to_baselines(slug)
    messages.success(request, f"Run {run.pk} is queued; once it has finished it may be set as the baseline.")
    return redirect("run", run_id=run.pk)


def _ask_again(suite: str, run_id: int, user: Any) -> Any:
    asked = selectors.run_report(run_id).asked
    return services.create_run(
        suite=suite,
        endpoint=asked["endpoint"],
        profile=asked["profile"],
        repeats=asked["repeats"],
        seed=asked.get("seed"),
        model=asked.get("model"),
        labels=asked.get("labels", {}),
        user=user,
    )


def _to_baselines(slug: str) -> HttpResponse:
    response = redirect("suite", slug=slug)
    response["Location"] += "#baselines"
    return response
