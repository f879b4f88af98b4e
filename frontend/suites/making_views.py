"""Make a suite on a page: paste or upload cases, try one of them, then store them."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from evalboard.core.scoring import EXAMPLES, PASSES
from evalboard.core.suite import COLUMNS, SuiteDocument, SuiteText
from evalboard.wording.numbers import counted
from evalboard.wording.run import describe_score
from frontend.shell.forms import blaming
from frontend.shell.lists import parse_number
from frontend.suites.forms import UNNAMED, SuiteForm
from frontend.suites.words import describe_text
from runs.access import RUN, requires
from runs.catalogue import ENGINES
from runs.catalogue import read as catalogue
from runs.suites import create_trial, failing_endpoints, planned_version, push_text, trial_row
from runs.work import unclaimed_reason

CASES_SHOWN, CASES_OFFERED = 5, 200


@requires(RUN)
@require_http_methods(["GET", "HEAD", "POST"])
def new_suite(request: HttpRequest) -> HttpResponse:
    trial_id = parse_number(request.GET.get("trial", ""))
    if trial_id is not None:
        answer = render(request, "suites/_trial.html", _trial(trial_id))
        answer.headers["Cache-Control"] = "no-store"
        return answer
    endpoints = tuple(row for row in catalogue.endpoint_rows() if row.engine in ENGINES)
    silent = failing_endpoints() | {row.slug for row in endpoints if row.rests_until is not None}
    endpoints = tuple(sorted(endpoints, key=lambda row: row.slug in silent))  # the first is chosen
    page: dict[str, Any] = {"endpoints": endpoints, "kinds": _kinds()}
    if request.method != "POST":
        return render(request, "suites/new.html", page | {"form": SuiteForm(endpoints=endpoints)})
    form = SuiteForm(request.POST, request.FILES, endpoints=endpoints)
    if form.is_valid():
        with blaming(form, under="text"):
            read = form.read()
            suite = read.parse()
            act = request.POST.get("act")
            with blaming(form, under="text"):
                if act == "save" and suite.slug == UNNAMED:
                    form.add_error("slug", "Give the suite a name.")
                elif act == "save":
                    version, is_new = push_text(read, newest=form.newest(suite.slug))
                    state = "is stored" if is_new else "was there already"
                    messages.success(request, f"{version} {state}: {counted(version.n_cases, 'case')}.")
                    place, endpoint = reverse("suite", args=[suite.slug]), form.cleaned_data["endpoint"]
                    return redirect(f"{place}?{urlencode({'endpoint': '' if endpoint in silent else endpoint})}")
                elif act == "try":
                    chosen = {"endpoint": form.cleaned_data["endpoint"], "case": form.cleaned_data["case"]}
                    page |= _trial(create_trial(read=read, user=request.user, **chosen).pk)
            page |= _preview(form, read, suite)  # of what is stored by now
    form.mark_problems()
    return render(request, "suites/new.html", page | {"form": form}, status=422 if form.errors else 200)


def _preview(form: SuiteForm, read: SuiteText, suite: SuiteDocument) -> dict[str, Any]:
    """Return what was understood. The form offers the suite's cases to try."""
    offered: Any = form.fields["case"].widget
    offered.choices = [(case.id, case.id) for case in suite.cases[:CASES_OFFERED]]
    number, is_new = planned_version(read)
    return {
        "suite": suite,
        "is_named": suite.slug != UNNAMED,
        "number": number,
        "is_new": is_new,
        "understood": describe_text(read, suite),
        "cases": [(case, case.own_input) for case in suite.cases[:CASES_SHOWN]],
        "n_more": max(len(suite.cases) - CASES_SHOWN, 0),
        "header": read.header,
        "columns": [(name, read.columns.get(name, "")) for name in COLUMNS],
    }


def _trial(trial_id: int) -> dict[str, Any]:
    trial = trial_row(trial_id)
    return {
        "trial": trial,
        "verdict": describe_score(trial.answer.score) if trial.answer else "",
        "nobody": unclaimed_reason(trial.endpoint) if trial.status == "queued" else "",
    }


def _kinds() -> list[dict[str, Any]]:
    return [
        {"kind": kind, "passes": PASSES[kind], "options": _options(example), **example}
        for kind, example in EXAMPLES.items()
    ]


def _options(example: Any) -> dict[str, Any]:
    return {name: value for name, value in example["scorer"].items() if name != "kind"}
