"""Schedules: runs and probes that are started at set times."""

from runs.schedules.read import schedule_rows
from runs.schedules.schedules import (
    FAILURES_BEFORE_ALARM,
    create_schedule,
    delete_schedule,
    due_schedules,
    pause_schedule,
    resume_schedule,
    start_due,
)
from runs.schedules.times import describe_times

__all__ = [
    "FAILURES_BEFORE_ALARM",
    "create_schedule",
    "delete_schedule",
    "describe_times",
    "due_schedules",
    "pause_schedule",
    "resume_schedule",
    "schedule_rows",
    "start_due",
]
