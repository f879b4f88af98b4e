"""Other tools' logs: what was imported, and the form that imports one."""

from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from evalboard.core.errors import EvalboardError
from frontend.forms import blame
from frontend.import_forms import ImportForm
from frontend.paging import number_of
from runs import selectors, services
from runs.access import READ, RUN, requires
from runs.models import Import, Run
from runs.selectors.imported import import_rows
from runs.uploads import is_waiting, log_files, takes_logs

IMPORTS_PER_PAGE = 25


@csrf_exempt  # by the middleware, which would read the form before `takes_logs`; csrf_protect looks at it after that
@takes_logs
@requires(READ, post=RUN)
@csrf_protect
@require_http_methods(["GET", "HEAD", "POST"])
def imports(request: HttpRequest) -> HttpResponse:
    suites = selectors.suite_rows()
    if request.method != "POST":
        return _page(request, ImportForm(suites=suites))
    form = ImportForm(request.POST, request.FILES, suites=suites)
    if form.is_valid():
        asked = form.cleaned_data
        try:
            found, runs, is_new = services.import_logs(
                files=log_files(asked["log"]),
                format=asked["format"],
                suite=asked["suite"] or None,
                user=request.user,
                is_wanted=partial(is_waiting, request.META),
            )
        except EvalboardError as problem:
            blame(form, problem, names={"files": "log"}, under="log")
        else:
            messages.success(request, _words(found, runs, is_new=is_new))
            return redirect("run", run_id=runs[0].pk) if len(runs) == 1 else redirect(_place(found))
    form.mark_problems()
    return _page(request, form)


def _words(found: Import, runs: list[Run], *, is_new: bool) -> str:
    if not is_new:
        return f"This very log was imported before, as import {found.pk}; nothing new was stored."
    return "The log was imported." if len(runs) == 1 else f"The log was imported as {len(runs)} runs."


def _place(found: Import) -> str:
    return f"{reverse('imports')}#import-{found.pk}"


def _page(request: HttpRequest, form: ImportForm) -> HttpResponse:
    before = number_of(request.GET.get("before", ""))
    rows = import_rows(after=before, limit=IMPORTS_PER_PAGE + 1)
    shown = rows[:IMPORTS_PER_PAGE]
    page = {
        "form": form,
        "rows": shown,
        "is_continued": before is not None,
        "older": shown[-1].id if len(rows) > IMPORTS_PER_PAGE else None,
    }
    return render(request, "frontend/imports.html", page, status=422 if form.errors else 200)
