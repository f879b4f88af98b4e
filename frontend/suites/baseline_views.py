"""Setting a suite's baseline, and running an expired one again."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from evalboard.core.errors import NotFound
from frontend.shell.forms import blaming, once, posted_from, reporting, show_queued
from frontend.suites.baselines import list_eligible
from frontend.suites.forms import BaselineForm
from frontend.suites.views import suite_page
from runs import baselines
from runs.access import RUN, SIGN, requires
from runs.baselines import baseline_rows
from runs.run import run_again
from runs.suites import BASELINES_READ, reference_suite, suite_report, suite_standing

REFERENCE = "reference"  # what to run again; anything else is the whole suite


@requires(SIGN)
@posted_from("suite", "slug")
def set_baseline(request: HttpRequest, slug: str) -> HttpResponse:
    """Set one, from the suite's page or a run's; a refusal leads back with its words at the fields."""
    report = suite_report(slug)
    form = BaselineForm(request.POST, runs=list_eligible(report, suite_standing(report)))
    if form.is_valid():
        fields = form.cleaned_data
        with blaming(form):
            baselines.set_baseline(suite=slug, run=fields["run"], reason=fields["reason"], user=request.user)
            messages.success(request, f"Run {fields['run']} is the baseline now.")
            return _to_baselines(slug)
    form.mark_problems()
    return suite_page(request, slug, form=form, status=422)


@requires(RUN)
@posted_from("suite", "slug")
@once
def again(request: HttpRequest, slug: str, baseline_id: int) -> HttpResponse:
    """Ask for the baseline's run once more, on the whole suite or on its reference set."""
    known = baseline_rows(slug, limit=BASELINES_READ)
    baseline = next((row for row in known if int(row.id) == baseline_id), None)
    if baseline is None:
        raise NotFound(f"Suite {slug} has no baseline {baseline_id}.")
    with reporting(request):
        suite = reference_suite(slug=slug).suite.slug if request.POST.get("what") == REFERENCE else None
        order: dict[str, Any] = {"run_id": baseline.run_id, "suite": suite}
        then = "once it has finished it may be set as the baseline"
        return show_queued(request, [run_again(**order, user=request.user)], then)
    return _to_baselines(slug)


def _to_baselines(slug: str) -> HttpResponse:
    response = redirect("suite", slug=slug)
    response["Location"] += "#baselines"
    return response
