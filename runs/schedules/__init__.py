"""Schedules: runs and probes that are started at set times."""

from runs.schedules.daily_checks import endpoints_without_check, schedule_check
from runs.schedules.read import SCHEDULE_ORDERS, schedule_rows
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
    "SCHEDULE_ORDERS",
    "create_schedule",
    "delete_schedule",
    "describe_times",
    "due_schedules",
    "endpoints_without_check",
    "pause_schedule",
    "resume_schedule",
    "schedule_check",
    "schedule_rows",
    "start_due",
]
