"""Charts of shards (cells) and margins (stems): x in percent, y in pixels, colours by stylesheet."""

import math
from dataclasses import dataclass

from evalboard.contract.run import Repeat, TargetedRepeat
from evalboard.wording.run import clock
from frontend.shell.charts import Tick
from runs.run import TraceWindow

CELLS_PER_ROW = 40
CELL_GAP = 0.5  # percent
CELL_PITCH = 24
WIDE_LABELS = 1000  # positions, whose ticks a phone has room for half as many of
MARGIN_TOP, MARGIN_DECADE, MARGIN_DECADES = 8.0, 30.0, 4


@dataclass(frozen=True, slots=True)
class Cell:
    """One shard or several: filled by progress, with its attempt from the second on."""

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
    """n_cases: of a targeted repeat, those that it decodes; None for one of all cases."""

    index: int
    points: float | None
    n_cases: int | None
    cells: tuple[Cell, ...]
    height: int
    label: str


def shard_row(line: Repeat | TargetedRepeat) -> ShardRow:
    per_row = min(max(len(line.shards), 1), CELLS_PER_ROW)
    pitch = 100 / per_row
    cells = []
    for number, shard in enumerate(line.shards):
        width = pitch - (CELL_GAP if per_row > 1 else 0)
        many = f", {shard.n_finished} of {shard.n_shards} shards finished" if shard.n_shards > 1 else ""
        done = f"{shard.n_done} of {shard.n_cases} responses"
        attempt = f", attempt {shard.attempt}" if shard.attempt > 1 else ""
        who = f", {shard.worker}" if shard.worker else ""
        failures = f", failed {'once' if shard.n_failures == 1 else f'{shard.n_failures} times'}"
        failed = failures if shard.n_failures else ""
        waits = f", waits until {clock(shard.waits_until)}" if shard.waits_until else ""
        cells.append(
            Cell(
                x=round(pitch * (number % per_row), 3),
                y=1 + CELL_PITCH * (number // per_row),
                width=round(width, 3),
                part=round(width * min(shard.n_done / shard.n_cases, 1.0), 3),
                status=shard.status,
                attempt=shard.attempt,
                label=f"cases {shard.first}–{shard.last}: {shard.status}{many}, {done}{attempt}{failed}{waits}{who}",
            )
        )
    n_finished, n_shards = (sum(getattr(shard, name) for shard in line.shards) for name in ("n_finished", "n_shards"))
    n_retried = sum(shard.n_retried for shard in line.shards)
    retried = f", {n_retried} after another attempt" if n_retried else ""
    return ShardRow(
        index=line.index,
        points=line.score if isinstance(line, Repeat) else None,
        n_cases=line.n_cases if isinstance(line, TargetedRepeat) else None,
        cells=tuple(cells),
        height=CELL_PITCH * max(math.ceil(len(cells) / per_row), 1) - 2,
        label=f"repeat {line.index}: {n_finished} of {n_shards} shards finished{retried}",
    )


@dataclass(frozen=True, slots=True)
class Stem:
    x: float
    y: float
    position: int


@dataclass(frozen=True, slots=True)
class MarginChart:
    """Margin by position, log scale from 10 to 0.001 nats; an exact zero has its own line."""

    stems: tuple[Stem, ...]
    ticks: tuple[Tick, ...]
    rows: tuple[tuple[float, str], ...]
    selected_x: float
    narrow_y: float
    narrow_height: float
    floor: float
    height: float


def margin_chart(window: TraceWindow) -> MarginChart | None:
    """Draw margins by position, None where no position has one."""
    if not window.margins:
        return None
    last = max(window.n - 1, 1)
    floor = MARGIN_TOP + MARGIN_DECADE * MARGIN_DECADES + 26

    def x(position: int) -> float:
        return round(4 + 94 * position / last, 3)

    def y(margin: float) -> float:
        if margin == 0:
            return floor
        decades = 1 - math.log10(min(max(margin, 10.0 ** (1 - MARGIN_DECADES)), 10.0))
        return round(MARGIN_TOP + MARGIN_DECADE * decades, 2)

    n_ticks = 10 if window.n < WIDE_LABELS else 5
    step = max(1, math.ceil(window.n / n_ticks / 5) * 5) if window.n > 12 else 2
    return MarginChart(
        stems=tuple(Stem(x(position), y(margin), position) for position, margin in window.margins),
        ticks=tuple(Tick(x(i), str(i)) for i in range(0, window.n, step) if x(i) < 92),
        rows=tuple((y(10.0**power), f"{10.0**power:g}") for power in range(1, 1 - MARGIN_DECADES - 1, -1)),
        selected_x=x(window.selected.position),
        narrow_y=y(0.02),
        narrow_height=round(floor - y(0.02), 2),
        floor=floor,
        height=floor + 22,
    )
