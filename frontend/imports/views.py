"""Other tools' logs: what was imported, and the form that imports one."""

from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from frontend.imports.forms import ImportForm
from frontend.shell.forms import blaming
from frontend.shell.lists import read_view
from runs.access import READ, RUN, requires
from runs.imports import IMPORT_ORDERS, import_logs, is_waiting, log_files, sortable_imports, takes_logs
from runs.models import ImportRecord, RunRecord
from runs.suites import suite_rows

IMPORTS_PER_PAGE = 25


@csrf_exempt  # by the middleware, which would read the form before `takes_logs`; csrf_protect looks at it after that
@takes_logs
@requires(READ, post=RUN)
@csrf_protect
@require_http_methods(["GET", "HEAD", "POST"])
def imports(request: HttpRequest) -> HttpResponse:
    suites = suite_rows()
    if request.method != "POST":
        return _page(request, ImportForm(suites=suites, initial={"second_of": request.GET.get("second_of", "")[:12]}))
    form = ImportForm(request.POST, request.FILES, suites=suites)
    if form.is_valid():
        fields = form.cleaned_data
        with blaming(form, names={"files": "log"}, under="log"):
            imported, runs, is_new = import_logs(
                files=log_files(fields["log"]),
                format=fields["format"],
                suite=fields["suite"] or None,
                scale=fields["scale"],
                second_of=fields["second_of"],
                user=request.user,
                is_wanted=partial(is_waiting, request.META),
            )
            messages.success(request, _words(imported, runs, is_new=is_new))
            return redirect("run", run_id=runs[0].pk) if len(runs) == 1 else redirect(_place(imported))
    form.mark_problems()
    return _page(request, form)


def _words(imported: ImportRecord, runs: list[RunRecord], *, is_new: bool) -> str:
    if not is_new:
        return f"This very log was imported before, as import {imported.pk}; nothing new was stored."
    return "The log was imported." if len(runs) == 1 else f"The log was imported as {len(runs)} runs."


def _place(imported: ImportRecord) -> str:
    return f"{reverse('imports')}#import-{imported.pk}"


def _page(request: HttpRequest, form: ImportForm) -> HttpResponse:
    view = read_view(request.GET, orders=IMPORT_ORDERS, default="-id", size=IMPORTS_PER_PAGE, anchor="imports")
    page = {"form": form, "list": view.read(sortable_imports())}
    return render(request, "imports/page.html", page, status=422 if form.errors else 200)
