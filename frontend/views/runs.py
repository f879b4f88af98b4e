"""Runs as a list, and the form that starts one."""

from urllib.parse import urlencode
from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.core.errors import EvalboardError
from frontend.forms import StartRunForm, blame
from frontend.paging import number_of
from runs import imported, selectors, services
from runs.access import READ, RUN, requires
from runs.selectors import catalogue
from runs.selectors.run_list import PLACE_DIGITS, place_of
from runs.services.endpoints import ENGINES

RUNS_PER_PAGE = 50
STATUSES = ("queued", "running", "finished", "incomplete", "failed", "cancelled")
FORM_FIELDS = {"model": "checkpoint", "model.path": "checkpoint"}


@requires(READ)
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    asked = {name: request.GET.get(name, "").strip() for name in ("suite", "endpoint", "status", "label")}
    choices = {
        "suite": tuple(row.slug for row in selectors.suite_rows()),
        "endpoint": tuple(row.slug for row in catalogue.endpoint_rows()),
        "status": STATUSES,
    }
    unknown = tuple((name, asked[name]) for name, known in choices.items() if asked[name] not in ("", *known))
    asked |= {name: "" for name, _ in unknown}
    bucket = number_of(request.GET.get("bucket", ""))
    before = number_of(request.GET.get("before", ""), digits=PLACE_DIGITS)
    rows = selectors.run_rows(**asked, bucket=bucket, before=before, limit=RUNS_PER_PAGE + 1)
    kept = {name: value for name, value in asked.items() if value}
    if bucket is not None:
        kept["bucket"] = str(bucket)
    page = {
        "rows": rows[:RUNS_PER_PAGE],
        "asked": asked,
        "bucket": bucket,
        "unknown": unknown,
        "is_filtered": bool(kept),
        "is_continued": before is not None,
        "newest_url": f"?{urlencode(kept)}",
        "older_url": _older(kept, rows) if len(rows) > RUNS_PER_PAGE else "",
        "choices": choices,
    }
    return render(request, "frontend/runs.html", page)


def _older(kept: dict[str, str], rows: tuple[selectors.RunRow, ...]) -> str:
    return f"?{urlencode(kept | {'before': str(place_of(rows[RUNS_PER_PAGE - 1]))})}"


@requires(RUN)
@require_http_methods(["GET", "HEAD", "POST"])
def new_run(request: HttpRequest) -> HttpResponse:
    choices = {
        "suites": tuple(row for row in selectors.suite_rows() if not row.is_recorded),
        "endpoints": tuple(row for row in catalogue.endpoint_rows() if row.engine in ENGINES),
        "profiles": tuple(row for row in catalogue.profile_rows() if row.slug != imported.PROFILE),
    }
    if request.method != "POST":
        asked = {name: request.GET[name] for name in ("suite", "endpoint", "profile") if name in request.GET}
        form = StartRunForm(initial={"profile": "pinned", "key": uuid4()} | asked, **choices)
        return render(request, "frontend/run_new.html", {"form": form, **choices})
    form = StartRunForm(request.POST, **choices)
    if form.is_valid():
        asked_for = form.cleaned_data
        try:
            run, _ = services.create_run_once(
                key=form.idempotency_key(),
                body=asked_for,
                suite=asked_for["suite"],
                endpoint=asked_for["endpoint"],
                profile=asked_for["profile"],
                repeats=asked_for["repeats"],
                seed=asked_for["seed"],
                model=form.model(),
                labels=asked_for["labels"],
                user=request.user,
            )
        except EvalboardError as problem:
            blame(form, problem, names=FORM_FIELDS)
        else:
            messages.success(request, f"Run {run.pk} is queued; this page follows it.")
            return redirect("run", run_id=run.pk)
    form.mark_problems()
    return render(request, "frontend/run_new.html", {"form": form, **choices}, status=422)
