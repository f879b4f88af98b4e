"""When a schedule is due: five cron fields, read by the clock of a time zone.

Where that clock is put forward, a time of the hour that is left out comes right after it; where it is put back, a time
of the hour that comes twice comes once (as in Debian's cron; cronsim does so).
"""

import re
from calendar import day_name
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

CLOSEST = timedelta(minutes=10)
TIMES_CHECKED = 300  # a cron line that crowds its times does so within these
FIELDS = 5
MAX_CRON_CHARS = 100
DAILY = re.compile(r"(\d+) +(\d+) +\* +\* +(\*|[0-7])")


def time_problems(cron: str, time_zone: str, *, now: datetime) -> dict[str, str]:
    """Return the problems of a schedule's times, by field."""
    if time_zone not in available_timezones():
        return {"time_zone": "Must be a name of the IANA list, such as Europe/Berlin or UTC."}
    if len(cron) > MAX_CRON_CHARS:
        return {"cron": f"Must be at most {MAX_CRON_CHARS} characters."}
    if len(cron.split()) != FIELDS:
        return {"cron": "Must be five fields: minute, hour, day of the month, month, day of the week."}
    try:
        times = list(islice(CronSim(cron, now.astimezone(ZoneInfo(time_zone))), TIMES_CHECKED))
    except CronSimError as problem:
        return {"cron": f"Is no cron line: {str(problem).lower()}."}
    if any(later - earlier < CLOSEST for earlier, later in pairwise(times)):
        return {"cron": f"Its times must be {CLOSEST.total_seconds() / 60:.0f} minutes apart, or more."}
    return {}


def next_time(cron: str, time_zone: str, *, after: datetime) -> datetime:
    """Return the first due time after a moment."""
    due: datetime = next(CronSim(cron, after.astimezone(ZoneInfo(time_zone))))
    return due


def latest_time(cron: str, time_zone: str, *, until: datetime) -> datetime:
    """Return the last due time that is not after a moment."""
    just_after = until + timedelta(microseconds=1)
    due: datetime = next(CronSim(cron, just_after.astimezone(ZoneInfo(time_zone)), reverse=True))
    return due


def describe_times(cron: str) -> str:
    """Return a cron line in words: "every Monday 03:00"; else "at 03:00 on the first day of every month"."""
    if plain := DAILY.fullmatch(cron.strip()):
        minute, hour, weekday = plain.groups()
        return f"every {'day' if weekday == '*' else day_name[(int(weekday) - 1) % 7]} {int(hour):02}:{int(minute):02}"
    words = str(CronSim(cron, datetime.now(UTC)).explain())
    return words[:1].lower() + words[1:]
