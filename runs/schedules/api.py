"""Schedules: made, followed, paused, resumed, deleted."""

from typing import Any

from rest_framework import serializers

from evalboard.contract.schedule import Schedule
from runs import schedules
from runs.api.resource import Resource, serve
from runs.api.serializers import Object, Strict, Text, Whole
from runs.models import ScheduleRecord
from runs.schedules.read import SCHEDULE_ORDERS, schedule_row, schedule_rows


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


SCHEDULE = Resource("schedule", Schedule, schedule_row)


def _create(*, user: Any, **body: Any) -> ScheduleRecord:
    [kind] = {"run", "probe"} & body.keys()
    order = dict(body.pop(kind))
    return schedules.create_schedule(**body, kind=kind, order=order, user=user)


schedule_list = serve(
    SCHEDULE.listed("schedules", "Schedules, the one that is due next first", Schedule, schedule_rows, SCHEDULE_ORDERS),
    SCHEDULE.made("Start runs or probes at set times", ScheduleIn, _create, refuses=[404, 409, 422]),
)
schedule_detail = serve(
    SCHEDULE.one("A schedule with its last starts"),
    SCHEDULE.deleted("Delete a schedule; what it started stays", schedules.delete_schedule),
)
pause = serve(
    SCHEDULE.acted("pause_schedule", "Start nothing more of a schedule until it is resumed", schedules.pause_schedule)
)
resume = serve(
    SCHEDULE.acted("resume_schedule", "Go on with a schedule from its next due time", schedules.resume_schedule)
)
