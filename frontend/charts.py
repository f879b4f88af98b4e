"""Charts as numbers: x in percent of the plot, y in pixels, colours left to the stylesheet.

The SVG ones have no viewBox, so they stretch with the page while their text and strokes do not.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC

from runs.selectors.response import TokenCell
from runs.selectors.run import RepeatLine

N_SHAPES = 6  # marks of the sprite and inks of the stylesheet; later buckets begin again
CELLS_PER_ROW = 40
CELL_GAP = 0.5  # percent
CELL_HEIGHT, CELL_PITCH = 20, 24
STACK_PITCH = 11
LEAST_BAND = 1.0  # percent
STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 25.0)


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """A stretch of points drawn from 0 to 100 percent of the plot."""

    low: float
    high: float

    def x(self, value: float) -> float:
        return round(100 * (value - self.low) / (self.high - self.low), 3)

    def ticks(self, n: int = 8) -> tuple[Tick, ...]:
        step = next((step for step in STEPS if (self.high - self.low) / step <= n), STEPS[-1])
        first = math.ceil(self.low / step)
        last = math.floor(self.high / step + 1e-9)
        decimals = 1 if step < 1 else 0
        return tuple(Tick(self.x(i * step), f"{i * step:.{decimals}f}") for i in range(first, last + 1))


def scale_for(values: Iterable[float], *, least: float) -> Scale:
    """A scale around `values` that shows at least `least` points and stays within 0 to 100."""
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
class Mark:
    """Repeats with the same points, drawn one above the other."""

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
    marks: tuple[Mark, ...]
    ticks: tuple[Tick, ...]
    axis_y: float
    height: float
    label: str


def ruler(points: Sequence[float | None], scale: Scale, *, is_small: bool = False) -> Ruler:
    """`points` by repeat from 1, None where there is none; a small one has no ticks and does not stack."""
    at: dict[float, list[int]] = {}
    for index, value in enumerate(points, start=1):
        if value is not None:
            at.setdefault(round(value, 6), []).append(index)
    deepest = 1 if is_small else max((len(repeats) for repeats in at.values()), default=1)
    axis_y = 22.0 if is_small else 20.0 + STACK_PITCH * deepest
    middle = 11.0 if is_small else axis_y - 14
    marks = tuple(
        Mark(
            x=scale.x(value),
            ys=_small_stack(len(repeats), middle, is_alone=len(at) == 1)
            if is_small
            else tuple(middle - STACK_PITCH * i for i in range(len(repeats))),
            label=f"{value:.1f}: {_named(repeats)}",
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
    """What a ruler's repeats are held against, shaded behind them; hatched once it has expired."""

    x: float
    width: float
    is_expired: bool


def ruler_band(low: float, high: float, scale: Scale, *, is_expired: bool) -> RulerBand:
    """At least as wide as can be seen: a measured noise floor may be zero."""
    left, right = max(scale.x(low), 0.0), min(scale.x(high), 100.0)
    width = max(right - left, LEAST_BAND)
    return RulerBand(round(min(left, 100 - width), 3), round(width, 3), is_expired)


def _small_stack(n: int, middle: float, *, is_alone: bool) -> tuple[float, ...]:
    """Equal repeats overlap a little, so that each shows; a single pile is one mark and a count."""
    if is_alone:
        return (middle,)
    pitch = min(4.0, 14 / max(n - 1, 1))
    return tuple(round(middle + pitch * (i - (n - 1) / 2), 2) for i in range(n))


def _named(repeats: Sequence[int]) -> str:
    if len(repeats) == 1:
        return f"repeat {repeats[0]}"
    return f"repeats {', '.join(map(str, repeats[:-1]))} and {repeats[-1]}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One shard: filled when finished, part-filled while it runs, with its attempt from the second on."""

    x: float
    y: int
    width: float
    part: float
    status: str
    attempt: int
    label: str

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 3)


@dataclass(frozen=True, slots=True)
class ShardRow:
    index: int
    points: float | None
    cells: tuple[Cell, ...]
    height: int
    label: str


def shard_row(line: RepeatLine) -> ShardRow:
    per_row = min(max(len(line.shards), 1), CELLS_PER_ROW)
    pitch = 100 / per_row
    cells = []
    for number, shard in enumerate(line.shards):
        width = pitch - (CELL_GAP if per_row > 1 else 0)
        n_cases = shard.last - shard.first + 1
        done = f"{shard.n_done} of {n_cases} responses"
        attempt = f", attempt {shard.attempt}" if shard.attempt > 1 else ""
        who = f", {shard.worker}" if shard.worker else ""
        failures = f", failed {'once' if shard.n_failures == 1 else f'{shard.n_failures} times'}"
        failed = failures if shard.n_failures else ""
        waits = f", waits until {shard.waits_until.astimezone(UTC):%H:%M:%S} UTC" if shard.waits_until else ""
        cells.append(
            Cell(
                x=round(pitch * (number % per_row), 3),
                y=1 + CELL_PITCH * (number // per_row),
                width=round(width, 3),
                part=round(width * min(shard.n_done / n_cases, 1.0), 3),
                status=shard.status,
                attempt=shard.attempt,
                label=f"cases {shard.first}–{shard.last}: {shard.status}, {done}{attempt}{failed}{waits}{who}",
            )
        )
    n_finished = sum(shard.status == "finished" for shard in line.shards)
    n_retried = sum(shard.attempt > 1 for shard in line.shards)
    retried = f", {n_retried} after another attempt" if n_retried else ""
    return ShardRow(
        index=line.index,
        points=line.points,
        cells=tuple(cells),
        height=CELL_PITCH * max(math.ceil(len(cells) / per_row), 1) - 2,
        label=f"repeat {line.index}: {n_finished} of {len(cells)} shards finished{retried}",
    )


@dataclass(frozen=True, slots=True)
class Stem:
    x: float
    y: float
    position: int


@dataclass(frozen=True, slots=True)
class MarginChart:
    """Margin by position on a log scale from 10 down to 0.001 nats; a true zero has a line of its own."""

    stems: tuple[Stem, ...]
    ticks: tuple[Tick, ...]
    rows: tuple[tuple[float, str], ...]
    selected_x: float | None
    narrow_y: float
    narrow_height: float
    floor: float
    height: float


MARGIN_TOP, MARGIN_DECADE, MARGIN_DECADES = 8.0, 30.0, 4


def margin_chart(tokens: Sequence[TokenCell], *, at: int | None) -> MarginChart | None:
    """None where no position has a margin."""
    known = [(cell.position, cell.margin) for cell in tokens if cell.margin is not None]
    if not known:
        return None
    last = max(len(tokens) - 1, 1)
    floor = MARGIN_TOP + MARGIN_DECADE * MARGIN_DECADES + 26

    def x(position: int) -> float:
        return round(4 + 94 * position / last, 3)

    def y(margin: float) -> float:
        if margin == 0:
            return floor
        decades = 1 - math.log10(min(max(margin, 10.0 ** (1 - MARGIN_DECADES)), 10.0))
        return round(MARGIN_TOP + MARGIN_DECADE * decades, 2)

    step = max(1, math.ceil(len(tokens) / 10 / 5) * 5) if len(tokens) > 12 else 2
    return MarginChart(
        stems=tuple(Stem(x(position), y(margin), position) for position, margin in known),
        ticks=tuple(Tick(x(i), str(i)) for i in range(0, len(tokens), step) if x(i) < 92),
        rows=tuple((y(10.0**power), f"{10.0**power:g}") for power in range(1, 1 - MARGIN_DECADES - 1, -1)),
        selected_x=None if at is None else x(at),
        narrow_y=y(0.02),
        narrow_height=round(floor - y(0.02), 2),
        floor=floor,
        height=floor + 22,
    )
