"""Draw a run's repeats and buckets on the suite's scale, its shards (cells) and margins (stems)."""

import math
from dataclasses import dataclass

from evalboard.contract.baseline import Baseline
from evalboard.contract.bucket import Bucket
from evalboard.contract.run import Repeat, Run, TargetedRepeat
from evalboard.wording.messages import speak
from evalboard.wording.run import clock
from frontend.runs.words import SAID
from frontend.shell.charts import marks
from frontend.shell.charts.axes import (
    MIN_DRAWN,
    Bar,
    LogScale,
    Scale,
    Tick,
    position_ticks,
    scale_for,
    scale_of_positions,
)
from frontend.templatetags.numbers import mean, points, share, span
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
    """Draw margins by position, None where no position has one, or of a few positions."""
    if not window.margins or window.n < MIN_DRAWN:
        return None
    floor = MARGIN_TOP + MARGIN_DECADE * MARGIN_DECADES + 26
    places, margins = scale_of_positions(window.n, left=4), LogScale(1 - MARGIN_DECADES, 1)

    def y(margin: float) -> float:
        return floor if margin == 0 else round(MARGIN_TOP + MARGIN_DECADE * (1 - margins.y(margin)), 2)

    return MarginChart(
        stems=tuple(Stem(places.x(position), y(margin), position) for position, margin in window.margins),
        ticks=tuple(tick for tick in position_ticks(places, 10 if window.n < WIDE_LABELS else 5) if tick.x < 92),
        rows=tuple((y(float(label)), label) for label in reversed(margins.labels)),
        selected_x=places.x(window.selected.position),
        narrow_y=y(0.02),
        narrow_height=round(floor - y(0.02), 2),
        floor=floor,
        height=floor + 22,
    )


MIN_CASES_WIDE = 4  # cases' worth of points that a scale shows at least
MIN_SHARE = 4.0  # percent; a backend that answered anything can be seen


@dataclass(frozen=True, slots=True)
class BaselineBand:
    """The current baseline's range behind a run's repeats. label_x: percent, in the middle of it."""

    run: str
    bar: Bar
    label: str
    label_x: float
    anchor: str
    is_expired: bool


@dataclass(frozen=True, slots=True)
class Result:
    """One bucket's repeats. score: their mean, "" if one is missing. sentence: what they show."""

    score: str
    ruler: marks.Ruler
    band: BaselineBand | None
    sentence: str


@dataclass(frozen=True, slots=True)
class BackendPart:
    """One bucket of several in a run. bar: of all responses; tone: its ink."""

    letter: str
    bucket: Bucket
    bar: Bar
    tone: int
    scored: str
    reach: str
    ruler: marks.Ruler | None


def draw_result(run: Run, baseline: Baseline | None) -> Result | None:
    """Draw a run of one bucket; None if no repeat is scored, or for several buckets."""
    scored = [value for value in run.drawn_points if value is not None]
    if not scored or run.n_buckets > 1:
        return None
    against = None if baseline is None else baseline.run.range
    ends = [*scored, *(against or ())]
    scale = scale_for(ends, least=MIN_CASES_WIDE * run.points_per_case)
    average = mean(run.drawn_points) if run.status == "finished" else None
    return Result(
        score="" if average is None else points(average),
        ruler=marks.ruler(run.drawn_points, scale),
        band=None if baseline is None or against is None else _band(baseline, against, scale),
        sentence=describe_repeats(run),
    )


def _band(baseline: Baseline, against: tuple[float, float], scale: Scale) -> BaselineBand:
    drawn = marks.ruler_band(*against, scale, is_expired=baseline.is_expired).bar
    anchor = "start" if drawn.middle < 25 else "end" if drawn.middle > 75 else "middle"
    x = {"start": drawn.x, "middle": drawn.middle, "end": drawn.end}[anchor]
    label = f"baseline, run {baseline.run.id}: {span(against)}"
    return BaselineBand(baseline.run.id, drawn, label, x, anchor, baseline.is_expired)


def describe_repeats(run: Run) -> str:
    """Give the score's interval and what the repeats can detect."""
    noise = run.noise
    claims = [SAID.claim("dots")]
    if noise.interval is not None and noise.level is not None:
        low, high = noise.interval
        claims.append(SAID.claim("interval", low=low, high=high, level=share(noise.level)))
    if noise.resolution is not None:
        claims.append(SAID.claim("resolves", n=noise.resolution.repeats, points=noise.resolution.points))
    return speak(claims)


def draw_backends(run: Run) -> tuple[BackendPart, ...]:
    """Draw each bucket of a run of several, largest first; all rulers share a scale."""
    if run.n_buckets < 2:
        return ()
    ordered = sorted(run.buckets, key=lambda bucket: (-bucket.share, int(bucket.id)))
    known = [value for bucket in ordered for value in _scores(bucket)]
    scale = scale_for(known, least=MIN_CASES_WIDE * run.points_per_case)
    bars = marks.split([bucket.share for bucket in ordered], least=MIN_SHARE, gap=0.4)
    parts = []
    for place, (bucket, bar) in enumerate(zip(ordered, bars, strict=True)):
        scores = _scores(bucket)
        parts.append(
            BackendPart(
                letter=bucket.backend,
                bucket=bucket,
                bar=bar,
                tone=place % marks.N_SHAPES,
                scored="" if bucket.score is None else points(bucket.score),
                reach=span((min(scores), max(scores))) if scores else "",
                ruler=marks.ruler([line.score for line in bucket.repeats], scale, is_small=True) if scores else None,
            )
        )
    return tuple(parts)


def draw_axis(backends: tuple[BackendPart, ...], run: Run) -> tuple[Tick, ...]:
    """Return the ticks of the scale that the rulers of a run's backends share."""
    known = [value for part in backends for value in _scores(part.bucket)]
    return scale_for(known, least=MIN_CASES_WIDE * run.points_per_case).ticks() if known else ()


def _scores(bucket: Bucket) -> list[float]:
    return [line.score for line in bucket.repeats if line.score is not None]
