"""Schedules: made, followed, paused, resumed, deleted."""

from typing import Any

from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.schedule import Schedule
from runs import schedules
from runs.access import READ, RUN
from runs.api import pages, query, wire
from runs.api.access import resource
from runs.api.describe import describe
from runs.api.serializers import Nothing, Object, Strict, Text, Whole, read_body
from runs.schedules.read import SCHEDULE_ORDERS, schedule_row, schedule_rows
from runs.store import sort_rows

ORDERING = query.ordering_of(SCHEDULE_ORDERS)


class ScheduledRunIn(Strict):
    suite = Text()
    suite_version = Whole(required=False)
    endpoint = Text()
    profile = Text()
    repeats = Whole(required=False)
    seed = Whole(required=False)
    labels = Object(required=False)
    priority = Text(required=False)


class ScheduledProbeIn(Strict):
    endpoint = Text()
    kind = Text()
    profile = Text(required=False)
    parameters = Object(default=dict)


class ScheduleIn(Strict):
    slug = Text()
    cron = Text()
    time_zone = Text(required=False)
    run = ScheduledRunIn(required=False)
    probe = ScheduledProbeIn(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a schedule of both, or of nothing."""
        if ("run" in attrs) == ("probe" in attrs):
            raise serializers.ValidationError({"run": "Say what is started: a run or a probe, and not both."})
        return attrs


@resource(GET=READ, POST=RUN)
@describe("GET", "Schedules, the one that is due next first", name="schedules", answer=Page[Schedule], query=ORDERING)
@describe(
    "POST",
    "Start runs or probes at set times",
    name="create_schedule",
    body=ScheduleIn,
    status=201,
    answer=Schedule,
    gives_headers={"Location": "the schedule"},
    refuses=[404, 409, 422],
)
def schedule_list(request: Request) -> Response:
    if request.method == "POST":
        return _create(request)
    sent = query.read(request, ORDERING)
    rows = sort_rows(schedule_rows(), SCHEDULE_ORDERS, query.ordering(sent, SCHEDULE_ORDERS))
    return pages.answer_with(request, rows)


def _create(request: Request) -> Response:
    body = read_body(ScheduleIn, request)
    [kind] = {"run", "probe"} & body.keys()
    order = dict(body.pop(kind))
    schedule = schedules.create_schedule(**body, kind=kind, order=order, user=request.user)
    location = request.build_absolute_uri(reverse("api:schedule", args=[schedule.pk]))
    return wire.answer(schedule_row(schedule.pk), request, status=201, headers={"Location": location})


@resource(GET=READ, DELETE=RUN)
@describe("GET", "A schedule with its last starts", name="schedule", answer=Schedule)
@describe("DELETE", "Delete a schedule; what it started stays", name="delete_schedule", status=204)
def schedule_detail(request: Request, schedule_id: int) -> Response:
    query.read(request, is_paged=False)
    if request.method == "DELETE":
        schedules.delete_schedule(schedule_id=schedule_id)
        return Response(status=204)
    return wire.answer(schedule_row(schedule_id), request)


@resource(POST=RUN)
@describe(
    "POST",
    "Start nothing more of a schedule until it is resumed",
    name="pause_schedule",
    body=Nothing,
    answer=Schedule,
)
def pause(request: Request, schedule_id: int) -> Response:
    read_body(Nothing, request)
    schedules.pause_schedule(schedule_id=schedule_id)
    return wire.answer(schedule_row(schedule_id), request)


@resource(POST=RUN)
@describe("POST", "Go on with a schedule from its next due time", name="resume_schedule", body=Nothing, answer=Schedule)
def resume(request: Request, schedule_id: int) -> Response:
    read_body(Nothing, request)
    schedules.resume_schedule(schedule_id=schedule_id)
    return wire.answer(schedule_row(schedule_id), request)
