"""Runs as a list, and the form that starts one."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.core.errors import EvalboardError
from frontend.runs.forms import StartRunForm
from frontend.shell.forms import blaming, once, show_queued
from frontend.shell.lists import Filter, filter_by, parse_number, read_filters, read_view
from frontend.shell.live import answer_list
from runs.access import READ, RUN, requires
from runs.catalogue import ENGINES, read
from runs.models import Priority
from runs.run import RUN_ORDERS, WAITING_FOR_ENDPOINT, RunFilter, create_pair, create_run, estimate_run, sortable_runs
from runs.store import imported
from runs.suites import suite_rows, suite_slugs

RUNS_PER_PAGE = 50
ESTIMATE_PART = "estimate"
STATUSES = ("queued", "running", "finished", "incomplete", "failed", "cancelled", WAITING_FOR_ENDPOINT)
FORM_FIELDS = {"model": "checkpoint", "model.path": "checkpoint"}


@requires(READ)
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    filters = read_filters(
        request.GET,
        filter_by("suite", suite_slugs()),
        filter_by("endpoint", read.endpoint_slugs()),
        Filter("status", "Status", tuple((status, status.replace("_", " ")) for status in STATUSES)),
        free=["label"],
    )
    bucket = parse_number(request.GET.get("bucket", ""))
    active = filters.active | ({} if bucket is None else {"bucket": str(bucket)})
    view = read_view(request.GET, orders=RUN_ORDERS, default="-ran_at", size=RUNS_PER_PAGE, active=active)
    values = filters.values
    wanted = RunFilter(values["suite"], values["endpoint"], values["status"], bucket, values["label"])
    shown = view.read(sortable_runs(wanted))
    page = {"filters": filters, "bucket": bucket, "list": shown}
    is_moving = any(not row.is_terminal for row in shown.rows)
    return answer_list(request, "runs/list.html", "runs/_rows.html", page, is_moving=is_moving)


@requires(RUN)
@require_http_methods(["GET", "HEAD", "POST"])
@once
def new_run(request: HttpRequest) -> HttpResponse:
    choices = {
        "suites": tuple(row for row in suite_rows() if not row.is_recorded),
        "endpoints": tuple(row for row in read.endpoint_rows() if row.engine in ENGINES),
        "profiles": tuple(row for row in read.profile_rows() if row.slug != imported.PROFILE),
    }
    if request.method != "POST":
        initial = {
            name: request.GET[name]
            for name in ("suite", "endpoint", "in_turn_with", "profile", "repeats")
            if name in request.GET
        }
        if request.GET.get("part") == ESTIMATE_PART:
            return render(request, "runs/_estimate.html", {"estimate": _estimate(initial)})
        form = StartRunForm(initial={"profile": "pinned"} | initial, **choices)
        fields: dict[str, Any] = form.fields
        shown = {name: slug for name in ("suite", "endpoint") for slug, _ in fields[name].choices[:1]} | initial
        return render(request, "runs/new.html", {"form": form, "estimate": _estimate(shown), **choices})
    form = StartRunForm(request.POST, **choices)
    if form.is_valid():
        asked_for = form.cleaned_data
        with blaming(form, names=FORM_FIELDS):
            named = {name: asked_for[name] for name in ("suite", "endpoint", "profile", "repeats", "seed", "labels")}
            order = {**named, "model": form.model(), "priority": asked_for["priority"] or Priority.NORMAL}
            if asked_for["in_turn_with"]:
                baseline = {**order, "endpoint": asked_for["in_turn_with"], "model": None}
                pair = create_pair(baseline=baseline, candidate=order, user=request.user)
                return show_queued(request, pair, "when both have ended, judge the second against the first")
            return show_queued(request, [create_run(**order, user=request.user)], "this page follows it")
    form.mark_problems()
    return render(request, "runs/new.html", {"form": form, **choices}, status=422)


def _estimate(named: dict[str, str]) -> str:
    """Say what the chosen run would take, or why it cannot be started; "" while too little is chosen."""
    if not {"suite", "endpoint"} <= named.keys():
        return ""
    chosen = {name: named[name] for name in ("suite", "endpoint", "profile") if named.get(name)}
    try:
        return estimate_run(**chosen, repeats=parse_number(named.get("repeats") or "5") or 0).sentence
    except EvalboardError as problem:
        return " ".join(problem.fields.values()) or problem.detail
