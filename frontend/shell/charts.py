"""Charts as numbers: x in percent of the plot, y in pixels, colours left to the stylesheet.

The SVG ones have no viewBox, so they stretch with the page while their text and strokes do not.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalboard.core.rounding import shown
from evalboard.wording.numbers import listed
from evalboard.wording.numbers import points as points_of

N_SHAPES = 6  # marks of the sprite and inks of the stylesheet; later buckets begin again
STACK_PITCH = 11
MIN_BAND = 1.0  # percent
STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 25.0)


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of points, mapped to 0 to 100 percent of the plot."""

    low: float
    high: float

    @property
    def shown(self) -> tuple[float, float]:
        """Return its ends without the room left around 0 and 100."""
        return max(self.low, 0.0), min(self.high, 100.0)

    def x(self, value: float) -> float:
        return round(100 * (value - self.low) / (self.high - self.low), 3)

    def ticks(self, n: int = 8) -> tuple[Tick, ...]:
        step = next((step for step in STEPS if (self.high - self.low) / step <= n), STEPS[-1])
        first = math.ceil(self.low / step)
        last = math.floor(self.high / step + 1e-9)
        decimals = 1 if step < 1 else 0
        return tuple(Tick(self.x(i * step), points_of(i * step, decimals)) for i in range(first, last + 1))


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


@dataclass(frozen=True, slots=True)
class RepeatsMark:
    """Repeats with equal points, shown as a stack."""

    x: float
    ys: tuple[float, ...]
    label: str
    n: int

    @property
    def n_hidden(self) -> int:
        return self.n - len(self.ys)


@dataclass(frozen=True, slots=True)
class Ruler:
    """Repeats as marks on a ruler, their range as a pale bar behind them."""

    bar_x: float
    bar_width: float
    bar_y: float
    bar_height: float
    marks: tuple[RepeatsMark, ...]
    ticks: tuple[Tick, ...]
    axis_y: float
    height: float
    label: str


def ruler(points: Sequence[float | None], scale: Scale, *, is_small: bool = False) -> Ruler:
    """Draw points by repeat from 1, None if missing; a small ruler has no ticks and no stacks."""
    at: dict[float, list[int]] = {}
    for index, value in enumerate(points, start=1):
        if value is not None:
            at.setdefault(shown(value, 6), []).append(index)
    deepest = 1 if is_small else max((len(repeats) for repeats in at.values()), default=1)
    axis_y = 22.0 if is_small else 20.0 + STACK_PITCH * deepest
    middle = 11.0 if is_small else axis_y - 14
    marks = tuple(
        RepeatsMark(
            x=scale.x(value),
            ys=_small_stack(len(repeats), middle, is_alone=len(at) == 1)
            if is_small
            else tuple(middle - STACK_PITCH * i for i in range(len(repeats))),
            label=f"{points_of(value)}: {_named(repeats)}",
            n=len(repeats),
        )
        for value, repeats in sorted(at.items())
    )
    known = sorted(at)
    left, right = (scale.x(known[0]), scale.x(known[-1])) if known else (0.0, 0.0)
    return Ruler(
        bar_x=left,
        bar_width=round(right - left, 3),
        bar_y=axis_y - 18 - STACK_PITCH * (deepest - 1) if not is_small else middle - 4,
        bar_height=8 + STACK_PITCH * (deepest - 1),
        marks=marks,
        ticks=() if is_small else scale.ticks(),
        axis_y=axis_y,
        height=axis_y if is_small else axis_y + 18,
        label="; ".join(mark.label for mark in marks) or "no repeat is scored yet",
    )


@dataclass(frozen=True, slots=True)
class RulerBand:
    """The band that repeats are compared with, shaded; hatched if expired."""

    x: float
    width: float
    is_expired: bool


def ruler_band(low: float, high: float, scale: Scale, *, is_expired: bool) -> RulerBand:
    """Return a band of at least a visible width, since a noise floor may be zero."""
    left, right = max(scale.x(low), 0.0), min(scale.x(high), 100.0)
    width = max(right - left, MIN_BAND)
    return RulerBand(round(min(left, 100 - width), 3), round(width, 3), is_expired)


def _small_stack(n: int, middle: float, *, is_alone: bool) -> tuple[float, ...]:
    """Place equal repeats with a slight overlap; a single pile is one mark with a count."""
    if is_alone:
        return (middle,)
    pitch = min(4.0, 14 / max(n - 1, 1))
    return tuple(round(middle + pitch * (i - (n - 1) / 2), 2) for i in range(n))


def _named(repeats: Sequence[int]) -> str:
    if len(repeats) == 1:
        return f"repeat {repeats[0]}"
    return f"repeats {listed([str(repeat) for repeat in repeats])}"


def count_levels(tallest: int, axis_y: float, scale: float) -> tuple[tuple[float, str], ...]:
    """Return up to four gridlines for bars of counts: y in pixels, and the count as text."""
    step = next(step * 10**power for power in range(9) for step in (1, 2, 5) if tallest / (step * 10**power) <= 4)
    return tuple((round(axis_y - n * scale, 2), f"{n:,}") for n in range(step, tallest + 1, step))
