"""One filter for each kind of number, so that a kind looks the same on every page.

Missing is drawn as an en dash, never as a zero. The minus is U+2212.
"""

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from evalboard.contract.bucket import Metric
from evalboard.wording import numbers as wording
from evalboard.wording.run import describe_metric

register = template.Library()

MISSING = "–"
WRITTEN_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d )?([01]\d|2[0-3])(:[0-5]\d)(:[0-5]\d)? UTC\b")
NARROW = "\u00a0"  # numbers never part from their unit


@register.filter
def points(value: float | None) -> str:
    """Format a score in points: one decimal."""
    if value is None or not math.isfinite(value):
        return MISSING
    return wording.points(value)


@register.filter
def noise_floor(value: float | None) -> str:
    """Format a noise floor in points; a dash with the reason where all repeats scored the same."""
    if value == 0:
        return f"{MISSING} (all repeats scored the same)"
    return MISSING if value is None else wording.small_points(value)


@register.filter
def spread(value: float | None) -> str:
    """Format a spread, "± 0.4"; a dash where it is not known or none was seen."""
    return wording.spread(value) or MISSING


@register.filter
def signed_points(value: float | None) -> str:
    """Format a change in points: one decimal with its sign; none for what rounds to zero."""
    if value is None or not math.isfinite(value):
        return MISSING
    return wording.signed(value)


@register.simple_tag
def scores_beside(baseline: float | None, candidate: float | None, change: float | None) -> wording.ShownScores:
    """Format two scores next to their change; `note` says if rounding makes them differ from it."""
    return wording.scores_beside(baseline, candidate, change)


@register.filter
def fixed(value: float, digits: int) -> str:
    """Format a number that is no score with so many decimals."""
    return wording.fixed(value, digits)


@register.filter
def trimmed(value: float, digits: int = 1) -> str:
    """Format a number with so many decimals, and a whole one with none: "5", "5.50"."""
    text = wording.fixed(value, digits)
    return text.removesuffix(f".{'0' * digits}")


@register.filter
def p_value(value: float | None) -> str:
    """Format how likely chance is to give as much."""
    return MISSING if value is None else wording.p_value(value)


@register.filter
def span(value: tuple[float, float] | None) -> str:
    """Format a range of points: `80.6–80.9`, or one number where both ends read the same."""
    if value is None:
        return MISSING
    low, high = points(value[0]), points(value[1])
    return low if low == high else f"{low}–{high}"


@register.filter
def apart(values: Sequence[float | None]) -> str:
    """Format the scores of several buckets: `66.7 / 55.9`."""
    return wording.scores_apart(values)


@register.filter
def metric_meaning(name: str) -> str:
    """Explain a metric over samples."""
    return describe_metric(name)


@register.filter
def without_interval(metrics: Sequence[Metric]) -> list[str]:
    """List why metrics have no interval on these cases, each reason once with all that it is true of."""
    names: dict[str, list[str]] = {}
    for metric in metrics:
        if metric.no_interval is not None:
            names.setdefault(metric.no_interval, []).append(metric.name)
    return [f"{wording.listed(those)}: no interval on these cases. {why}" for why, those in names.items()]


@register.filter
def over(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the lowest and the highest of points; None of none."""
    return (min(values), max(values)) if values else None


@register.filter
def mean(values: Sequence[float | None]) -> float | None:
    """Format the mean over repeats; None while one is missing, since a mean of the others would mislead."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


@register.filter
def share(value: float | None) -> str:
    """Format a share as a whole percent; 100 % and 0 % only if exact."""
    if value is None:
        return MISSING
    percent = value * 100
    if 99.5 <= percent < 100:
        return f"over{NARROW}99{NARROW}%"
    if 0 < percent < 0.5:
        return f"under{NARROW}1{NARROW}%"
    return f"{wording.fixed(percent, 0)}{NARROW}%"


@register.filter
def count(value: int | None) -> str:
    return MISSING if value is None else f"{value:,}"


@register.filter
def digest(value: str, length: int = 4) -> SafeString:
    """Format the first digits of a digest in mono, the whole of it in the title."""
    if not value:
        return format_html('<span class="digest">{}</span>', MISSING)
    return format_html('<span class="digest" title="{}">{}</span>', value, value[:length])


@register.filter
def seconds(value: float | None) -> str:
    """Format a span of time with the two largest units that matter."""
    if value is None:
        return MISSING
    if value < 0.1:
        return f"{value * 1000:.0f}{NARROW}ms"
    if value < 10:
        return f"{wording.fixed(value, 1)}{NARROW}s"
    whole = round(value)
    if whole < 60:
        return f"{whole}{NARROW}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 10:
        return f"{minutes}{NARROW}min {rest}{NARROW}s" if rest else f"{minutes}{NARROW}min"
    hours, minutes = divmod(round(whole / 60), 60)
    if not hours:
        return f"{minutes}{NARROW}min"
    return f"{hours}{NARROW}h {minutes}{NARROW}min" if minutes else f"{hours}{NARROW}h"


@register.filter
def ago(value: float | None) -> str:
    """Format a number of seconds ago in the largest fitting unit: `4 s ago`."""
    if value is None:
        return MISSING
    if value < 1:
        return "just now"
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if value >= (2 * length if unit == "days" else length):
            return f"{int(value / length)}{NARROW}{unit}{NARROW}ago"
    return f"{int(value)}{NARROW}s{NARROW}ago"


@register.filter
def age(value: datetime, now: datetime) -> str:
    """Format how long ago a time was: `4 h ago`, `yesterday`, `3 days ago`."""
    days = (now.astimezone(UTC).date() - value.astimezone(UTC).date()).days
    seconds_ago = max((now - value).total_seconds(), 0.0)
    if days == 1 and seconds_ago >= 43200:
        return "yesterday"
    return f"{days}{NARROW}days{NARROW}ago" if days > 1 else ago(seconds_ago)


@register.filter
def roughly(value: float | None) -> str:
    """Format an estimate of time: no finer than it can be known."""
    if value is None:
        return MISSING
    if value < 50:
        return f"{max(10 * round(value / 10), 10)}{NARROW}s"
    return seconds(60 * max(round(value / 60), 1))


@register.filter
def size(value: int | None) -> str:
    """Format bytes in decimal units."""
    if value is None:
        return MISSING
    if value < 1000:
        return f"{value}{NARROW}B"
    amount = float(value)
    for unit in ("kB", "MB", "GB", "TB"):
        amount /= 1000
        if amount < 999.5 or unit == "TB":
            return f"{wording.fixed(amount, 1)}{NARROW}{unit}" if amount < 99.95 else f"{amount:.0f}{NARROW}{unit}"
    raise AssertionError("the last unit always answers")


@register.filter
def rate(value: float | None) -> str:
    """Format responses per second, or per minute where they are slow."""
    if value is None:
        return ""
    if value >= 1:
        return f"{wording.fixed(value, 1)} responses per second"
    return f"{wording.fixed(value * 60, 1)} responses per minute"


@register.filter
def nats(value: float | None) -> str:
    """Format a logprob or margin with three decimals, or as ∞."""
    if value is None:
        return MISSING
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else f"{wording.MINUS}∞"
    return wording.fixed(value, 3)


@register.filter
def probability(value: float | None) -> str:
    """Format a logprob as a percentage with as many decimals as needed."""
    if value is None or math.isnan(value):
        return MISSING
    percent = math.exp(min(value, 0.0)) * 100
    if percent >= 10:
        return f"{wording.fixed(percent, 1)}{NARROW}%"
    if percent >= 0.001:
        return f"{wording.fixed(percent, 3)}{NARROW}%"
    return f"under{NARROW}0.001{NARROW}%" if percent else f"0{NARROW}%"


@register.filter
def percent_of_bar(value: float) -> str:
    """Format a logprob as the length of its bar on a linear scale from 0 to 100 percent."""
    return "0" if math.isnan(value) else wording.fixed(math.exp(min(value, 0.0)) * 100, 3)


@register.filter
def instant(value: datetime | None) -> SafeString | str:
    """Render a time to the minute."""
    return _time(value, "%Y-%m-%d %H:%M UTC")


@register.filter
def second(value: datetime | None) -> SafeString | str:
    """Render a time to the second."""
    return _time(value, "%Y-%m-%d %H:%M:%S UTC")


@register.filter
def clock(value: datetime | None) -> SafeString | str:
    """Render a time of today."""
    return _time(value, "%H:%M:%S UTC")


@register.filter
def day(value: datetime | None) -> SafeString | str:
    """Render a date, as ends of waivers are."""
    return _time(value, "%Y-%m-%d")


@register.filter
def with_times(text: str) -> SafeString:
    """Render the times in an escaped sentence as `instant` does. One without a date is the nearest to now."""
    return mark_safe(WRITTEN_TIME.sub(_written_time, text))  # noqa: S308


def _written_time(match: re.Match[str]) -> str:
    day, hour, minute, second = match.groups(default="")
    now = datetime.now(UTC)
    try:
        at = datetime.fromisoformat(f"{day or f'{now:%Y-%m-%d} '}{hour}{minute}{second}Z")
    except ValueError:  # "2026-02-31", which some text says
        return match[0]
    if not day:
        at += timedelta(days=round((now - at) / timedelta(days=1)))
    return str(_time(at, f"{'%Y-%m-%d ' if day else ''}%H:%M{':%S' if second else ''} UTC"))


def _time(value: datetime | None, pattern: str) -> SafeString | str:
    """Render a time in UTC, which `times.js` shows in the reader's zone with UTC on hover."""
    if value is None:
        return MISSING
    at = value.astimezone(UTC)
    exact = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    html = '<time class="keep" datetime="{}" title="{}">{}</time>'
    return format_html(html, exact, f"{at:%Y-%m-%d %H:%M:%S} UTC", at.strftime(pattern))
