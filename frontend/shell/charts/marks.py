"""Marks: repeats on a ruler, piles of equal values, and bars that split a whole."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalboard.core.rounding import shown
from evalboard.wording.numbers import listed, points
from frontend.shell.charts.axes import Bar, Scale, Tick

N_SHAPES = 6  # marks of the sprite and inks of the stylesheet; later buckets begin again
STACK_PITCH = 11
MIN_BAND = 1.0  # percent


def piles(values: Sequence[float | None]) -> dict[float, list[int]]:
    """Return the places (from 0) of equal values, by value, the lowest first; without missing ones."""
    at: dict[float, list[int]] = {}
    for place, value in enumerate(values):
        if value is not None:
            at.setdefault(shown(value, 6), []).append(place)
    return dict(sorted(at.items()))


def spread(n: int, pitch: float, most: float) -> tuple[float, ...]:
    """Return pixel offsets of n marks around one place, closer than `pitch` if they would exceed `most`."""
    pitch = min(pitch, most / max(n - 1, 1))
    return tuple(round(pitch * (i - (n - 1) / 2), 2) for i in range(n))


def split(parts: Sequence[float], *, least: float = 0.0, gap: float = 0.0) -> list[Bar]:
    """Return a bar for each part of a whole: together 100 percent.

    least: the width that each has which is not empty. gap: percent between them.
    """
    total = sum(parts) or 1.0
    widths = [max(100 * part / total, least) if part else 0.0 for part in parts]
    fit = 100 / max(sum(widths), 1e-9)
    bars, x = [], 0.0
    for width in widths:
        end = x + width * fit
        bars.append(Bar(round(x, 3), round(max(end - x - (gap if end < 99.9 else 0), 0.0), 3)))
        x = end
    return bars


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

    bar: Bar
    bar_y: float
    bar_height: float
    marks: tuple[RepeatsMark, ...]
    ticks: tuple[Tick, ...]
    axis_y: float
    height: float
    label: str


def ruler(values: Sequence[float | None], scale: Scale, *, is_small: bool = False) -> Ruler:
    """Draw points by repeat from 1, None if missing; a small ruler has no ticks and no stacks."""
    at = piles(values)
    deepest = 1 if is_small else max((len(repeats) for repeats in at.values()), default=1)
    axis_y = 22.0 if is_small else 20.0 + STACK_PITCH * deepest
    middle = 11.0 if is_small else axis_y - 14
    marks = tuple(
        RepeatsMark(
            x=scale.x(value),
            ys=_small_stack(len(repeats), middle, is_alone=len(at) == 1)
            if is_small
            else tuple(middle - STACK_PITCH * i for i in range(len(repeats))),
            label=f"{points(value)}: {_named(repeats)}",
            n=len(repeats),
        )
        for value, repeats in at.items()
    )
    return Ruler(
        bar=scale.bar(min(at), max(at)) if at else Bar(0.0, 0.0),
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

    bar: Bar
    is_expired: bool


def ruler_band(low: float, high: float, scale: Scale, *, is_expired: bool) -> RulerBand:
    """Return a band of at least a visible width, since a noise floor may be zero."""
    return RulerBand(scale.bar(low, high, MIN_BAND), is_expired)


def _small_stack(n: int, middle: float, *, is_alone: bool) -> tuple[float, ...]:
    """Place equal repeats with a slight overlap; a single pile is one mark with a count."""
    return (middle,) if is_alone else tuple(middle + y for y in spread(n, 4.0, 14.0))


def _named(places: Sequence[int]) -> str:
    numbers = [str(place + 1) for place in places]
    return f"repeat{'' if len(numbers) == 1 else 's'} {listed(numbers)}"
