"""Schedules: what is started at set times, by whom, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evalboard.contract.schedule import Schedule
from frontend.schedules.forms import PROBE_FIELDS, RUN_FIELDS, ProbeScheduleForm, RunScheduleForm
from frontend.shell.forms import blaming, posted_from
from frontend.shell.lists import read_view
from runs.access import READ, RUN, may, requires
from runs.catalogue import ENGINES, read
from runs.schedules import (
    SCHEDULE_ORDERS,
    create_schedule,
    delete_schedule,
    describe_times,
    pause_schedule,
    resume_schedule,
    schedule_rows,
)
from runs.suites import suite_rows

SCHEDULES_PER_PAGE = 25


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    row: Schedule
    times: str


@requires(READ, post=RUN)
@require_http_methods(["GET", "HEAD", "POST"])
def schedules(request: HttpRequest) -> HttpResponse:
    sent = request.POST if request.method == "POST" else None
    is_probe = sent is not None and "probe-slug" in sent
    suites, endpoints, profiles = suite_rows(), read.endpoint_rows(), read.profile_rows()
    run_form = RunScheduleForm(
        None if is_probe else sent, suites=suites, profiles=profiles, endpoints=endpoints, prefix="run"
    )
    probe_form = ProbeScheduleForm(sent if is_probe else None, endpoints=endpoints, prefix="probe")
    form = probe_form if is_probe else run_form
    if form.is_bound and form.is_valid():
        times = {name: form.cleaned_data[name] for name in ("slug", "cron", "time_zone")}
        with blaming(form, names=PROBE_FIELDS if is_probe else RUN_FIELDS):
            kind = "probe" if is_probe else "run"
            schedule = create_schedule(**times, kind=kind, order=form.order(), user=request.user)
            messages.success(request, f"Schedule {schedule.slug} is there.")
            return redirect("schedules")
    form.mark_problems()
    view = read_view(
        request.GET if sent is None else {}, orders=SCHEDULE_ORDERS, default="next_at", size=SCHEDULES_PER_PAGE
    )
    shown = view.slice(schedule_rows())
    page = {
        "list": shown,
        "lines": tuple(ScheduleLine(row, describe_times(row.cron)) for row in shown.rows),
        "run_form": run_form,
        "probe_form": probe_form,
        "may_run": may(request.user, RUN),
        "has_suites": bool(suites),
        "has_endpoints": any(row.engine in ENGINES for row in endpoints),
    }
    return render(request, "schedules/list.html", page, status=422 if form.errors else 200)


@requires(RUN)
@posted_from("schedules")
def delete(request: HttpRequest, schedule_id: int) -> HttpResponse:
    return _act(request, delete_schedule, schedule_id, "The schedule was deleted; what it started stays.")


@requires(RUN)
@posted_from("schedules")
def pause(request: HttpRequest, schedule_id: int) -> HttpResponse:
    return _act(request, pause_schedule, schedule_id, "The schedule pauses and starts nothing.")


@requires(RUN)
@posted_from("schedules")
def resume(request: HttpRequest, schedule_id: int) -> HttpResponse:
    return _act(request, resume_schedule, schedule_id, "The schedule goes on from its next time.")


def _act(request: HttpRequest, act: Callable[..., None], schedule_id: int, words: str) -> HttpResponse:
    act(schedule_id=schedule_id)
    messages.success(request, words)
    return redirect("schedules")
