"""Schedules: what is started at set times, by whom, and what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evalboard.contract.probe import KINDS
from evalboard.contract.schedule import Schedule
from frontend.shell.forms import CodeText, NameText, PlainForm, blaming, endpoint_choices, once, posted_from
from frontend.shell.lists import read_view
from frontend.templatetags.drawing import drawn_plain, shortened
from runs import acts
from runs.access import READ, RUN, may, requires
from runs.catalogue import ENGINES, read
from runs.models import ScheduleRecord
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

# Where a service's words about what is started stand on the form.
RUN_FIELDS = {f"run.{name}": name for name in ("suite", "endpoint", "profile", "repeats")}
PROBE_FIELDS = {f"probe.{name}": name for name in ("endpoint", "profile")} | {"probe.kind": "probe_kind"}


class ScheduleForm(PlainForm):
    """The fields shared by both kinds of schedules."""

    slug = NameText()
    endpoint = forms.ChoiceField()
    cron = CodeText(
        max_length=100,
        label="When",
        widget=forms.TextInput(attrs={"placeholder": "0 3 * * 1-5"}),
        help_text="Minute, hour, day of the month, month, day of the week: 0 3 * * 1-5 is 03:00 from Monday to Friday.",
    )
    time_zone = forms.CharField(max_length=60, initial="UTC", help_text="The time zone, such as Europe/Berlin.")

    def __init__(self, *args: Any, endpoints: Any = (), **kwargs: Any) -> None:
        """Build the form. endpoints: rows of the catalogue, without those of logs."""
        super().__init__(*args, **kwargs)
        self.fields["endpoint"].choices = endpoint_choices(endpoints)  # type: ignore[attr-defined]


class RunScheduleForm(ScheduleForm):
    suite = forms.ChoiceField()
    profile = forms.ChoiceField()
    repeats = forms.IntegerField(min_value=1, max_value=100, initial=5)
    field_order = ("slug", "suite", "endpoint", "profile", "repeats", "cron", "time_zone")

    def __init__(self, *args: Any, suites: Any = (), profiles: Any = (), **kwargs: Any) -> None:
        """`suites`, `profiles`: rows of the catalogue."""
        super().__init__(*args, **kwargs)
        self.fields["suite"].choices = [  # type: ignore[attr-defined]
            (row.slug, f"{drawn_plain(shortened(row.title, 60))} ({row.slug})") for row in suites
        ]
        self.fields["profile"].choices = [(row.slug, row.slug) for row in profiles]  # type: ignore[attr-defined]

    def order(self) -> dict[str, Any]:
        """Return what `create_run` takes."""
        return {name: self.cleaned_data[name] for name in RUN_FIELDS.values()}


class ProbeScheduleForm(ScheduleForm):
    probe_kind = forms.ChoiceField(choices=[(kind, kind) for kind in KINDS], label="Kind")
    field_order = ("slug", "endpoint", "probe_kind", "cron", "time_zone")

    def order(self) -> dict[str, Any]:
        """Return what `create_probe` takes."""
        return {"endpoint": self.cleaned_data["endpoint"], "kind": self.cleaned_data["probe_kind"], "parameters": {}}


SCHEDULES_PER_PAGE = 25


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    row: Schedule
    times: str
    acts: Mapping[str, acts.ActOffer]


@requires(READ, post=RUN)
@require_http_methods(["GET", "HEAD", "POST"])
@once
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
            messages.success(request, f"Schedule {schedule.slug} was added.")
            return redirect("schedules")
    form.mark_problems()
    view = read_view(
        request.GET if sent is None else {}, orders=SCHEDULE_ORDERS, default="next_at", size=SCHEDULES_PER_PAGE
    )
    shown = view.slice(schedule_rows())
    records = ScheduleRecord.objects.in_bulk([int(row.id) for row in shown.rows])
    offers = {str(pk): acts.offers_of(record, request.user) for pk, record in records.items()}
    page = {
        "list": shown,
        "lines": tuple(ScheduleLine(row, describe_times(row.cron), offers.get(row.id, {})) for row in shown.rows),
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
