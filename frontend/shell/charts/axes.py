"""Axes: values, counts, logarithms and times, mapped to the plot, with their ticks."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from evalboard.wording.numbers import points

ZERO = 0.7  # decades below a log axis, the line of an exact zero
SMALLEST = -6  # power of ten; what is smaller is drawn there
SHORT_SPAN = timedelta(days=4)  # over less, a date has its clock too
MINUTES = timedelta(minutes=10)  # over less, its seconds


def step_for(reach: float, most: int, *, least: float = 0.0) -> float:
    """Return the smallest of 1, 2, 5, 10 … (or 0.1, 0.2 …) that cuts a reach into at most `most` steps."""
    first = math.floor(math.log10(max(reach / most, least or 1e-12)))
    steps = (digit * 10.0**power for power in count(first) for digit in (1, 2, 5))
    return next(step for step in steps if step >= least * (1 - 1e-9) and reach / step <= most * (1 + 1e-9))


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Bar:
    """A horizontal part of the plot, in percent."""

    x: float
    width: float

    @property
    def end(self) -> float:
        return round(self.x + self.width, 3)

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 3)


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of values, mapped to percent of the plot. left, width: what of the plot it takes."""

    low: float
    high: float
    left: float = 0.0
    width: float = 100.0

    @property
    def shown(self) -> tuple[float, float]:
        """Return the ends of a scale of points without the room left around 0 and 100."""
        return max(self.low, 0.0), min(self.high, 100.0)

    def x(self, value: float) -> float:
        return round(self.left + self.width * (value - self.low) / (self.high - self.low), 3)

    def within(self, value: float) -> float:
        """Return x, at an end of the scale for values beyond it."""
        return self.x(min(max(value, self.low), self.high))

    def bar(self, low: float, high: float, least: float = 0.0) -> Bar:
        """Return the visible part from low to high, at least `least` percent wide."""
        left, right = self.within(low), self.within(high)
        width = max(right - left, least)
        return Bar(round(min(left, self.left + self.width - width), 3), round(width, 3))

    def ticks(
        self, most: int = 8, *, label: Callable[[float, int], str] = points, least: float = 0.1
    ) -> tuple[Tick, ...]:
        """Return ticks at round values. label(value, decimals): their text; least: the smallest step."""
        step = step_for(self.high - self.low, most, least=least)
        places = range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1)
        return tuple(Tick(self.x(i * step), label(i * step, 1 if step < 1 else 0)) for i in places)


def scale_for(values: Iterable[float], *, least: float) -> Scale:
    """Return a scale around `values` that shows at least `least` points and stays within 0 to 100."""
    known = list(values) or [0.0, 100.0]
    low, high = min(known), max(known)
    pad = max((least - (high - low)) / 2, 0.15 * (high - low), 0.5)
    low, high = low - pad, high + pad
    if low < 0:
        low, high = -0.04 * (high - low), min(high - low, 104.0)
    if high > 100:
        low, high = max(low - (high - 100), -4.0), 100 + 0.04 * (high - low)
    return Scale(low, high)


MIN_DRAWN = 12  # positions; of fewer a table says more than a chart, whose labels would overlap


def scale_of_positions(n: int, *, left: float = 2.0, width: float = 94.0) -> Scale:
    """Return a scale of positions from 0 to n - 1 that shows marks at both ends whole."""
    return Scale(0, max(n - 1, 1), left, width)


def position_ticks(scale: Scale, most: int = 8) -> tuple[Tick, ...]:
    """Return ticks at whole positions."""
    return scale.ticks(most, label=lambda value, _: f"{value:.0f}", least=1)


@dataclass(frozen=True, slots=True)
class Upright:
    """Amounts from zero upwards, in pixels from the top: `most` reaches `top`, zero is at `base`."""

    most: float
    top: float
    base: float

    def height(self, amount: float) -> float:
        return round(amount * (self.base - self.top) / self.most, 2)

    def y(self, amount: float) -> float:
        return round(self.base - amount * (self.base - self.top) / self.most, 2)

    def levels(self, *, least: float = 0.0, label: Callable[[float], str] = "{:.2g}".format) -> list[tuple[float, str]]:
        """Return up to four gridlines: y, and the amount as text."""
        step = step_for(self.most, 4, least=least)
        return [(self.y(step * i), label(step * i)) for i in range(1, math.floor(self.most / step + 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class CountBar:
    """A bar from zero upwards. x, width: percent of the plot; y, height: pixels."""

    x: float
    y: float
    width: float
    height: float
    label: str


def counts_upright(most: int, top: float, base: float) -> tuple[Upright, list[tuple[float, str]]]:
    """Return the axis of bars of counts and its gridlines."""
    axis = Upright(most, top, base)
    return axis, axis.levels(least=1, label=lambda n: f"{n:,.0f}")


@dataclass(frozen=True, slots=True)
class LogScale:
    """Powers of ten that an axis shows. Values are placed by their logarithm, zero below all of them."""

    low: int
    high: int

    def y(self, value: float) -> float:
        if value <= 0:
            return self.low - ZERO
        return round(min(max(math.log10(value), self.low), self.high), 3)

    @property
    def labels(self) -> list[str]:
        return [f"{10.0**power:.{max(-power, 0)}f}" for power in range(self.low, self.high + 1)]

    @property
    def axis(self) -> dict[str, Any]:
        """Return the axis of a Plotly figure."""
        return {
            "range": [self.low - ZERO - 0.25, self.high + 0.3],
            "tickvals": [self.low - ZERO, *range(self.low, self.high + 1)],
            "ticktext": ["0", *self.labels[:-1], f"{self.labels[-1]} nats"],
        }


def log_scale_of(values: Iterable[float | None], *, least: int, most: int) -> LogScale:
    """Return a log scale that shows the values, and at least the powers from `least` to `most`."""
    powers = [math.log10(value) for value in values if value and value > 0]
    low = min([least, *(math.floor(power) for power in powers)])
    return LogScale(max(low, SMALLEST), max([most, *(math.ceil(power) for power in powers if power < 3)]))


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time, from left to right of the plot."""

    low: datetime
    high: datetime

    @property
    def pattern(self) -> str:
        span = self.high - self.low
        return "%m-%d %H:%M:%S" if span < MINUTES else "%m-%d %H:%M" if span < SHORT_SPAN else "%m-%d"

    def share(self, at: datetime) -> float:
        return (at - self.low) / (self.high - self.low) if self.high > self.low else 0.0

    def at(self, share: float) -> datetime:
        return self.low + (self.high - self.low) * share

    def words(self, at: datetime) -> str:
        """Return a time in UTC as short as the stretch allows."""
        return at.astimezone(UTC).strftime(self.pattern)
