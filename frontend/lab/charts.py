"""The runs of each source as dots on one scale of points: x in percent of the plot, y in pixels."""

from collections.abc import Iterable
from dataclasses import dataclass

from evalboard.contract.lab import Experiment, LabPoint, LabRow
from evalboard.core.rounding import shown
from evalboard.wording.numbers import points
from frontend.shell.charts import Scale, Tick, scale_for

MIN_POINTS = 1.0  # shown of the scale at the least
MIDDLE, PITCH, TALLEST = 22.0, 6.0, 34.0  # pixels: the row's middle, from dot to dot, the largest pile
LEFT, WIDTH = 3.0, 94.0  # percent: dots at the ends are drawn whole
BAND = 1.4  # percent: the control's place behind every row


@dataclass(frozen=True, slots=True)
class RunDot:
    x: float
    y: float
    label: str
    run: str | None


@dataclass(frozen=True, slots=True)
class LabStrip:
    """One row: its dots, or if all runs are equal one ring with a text next to it."""

    dots: tuple[RunDot, ...]
    ring: RunDot | None
    words: str
    is_left: bool  # the words stand to the left of the ring
    label: str


@dataclass(frozen=True, slots=True)
class Strips:
    """An experiment's rows with points, by place; ticks and the control's band are shared."""

    rows: dict[int, LabStrip]
    ticks: tuple[Tick, ...]
    band_x: float | None
    band_width: float


def draw_strips(experiment: Experiment) -> Strips | None:
    """Return None while nothing has been measured."""
    known = [point.score for row in experiment.rows for point in row.points]
    if not known:
        return None
    scale = scale_for(known, least=MIN_POINTS)
    rows = {at: _strip(row, scale) for at, row in enumerate(experiment.rows) if row.points}
    ticks = tuple(Tick(_inside(tick.x), tick.label) for tick in scale.ticks(6))
    control = experiment.control
    band_x = None if control is None else round(_inside(scale.x(control)) - BAND / 2, 3)
    return Strips(rows, ticks, band_x, BAND)


def _strip(row: LabRow, scale: Scale) -> LabStrip:
    at: dict[float, list[LabPoint]] = {}
    for point in row.points:
        at.setdefault(shown(point.score, 6), []).append(point)
    label = "; ".join(f"{points(score)}: {len(alike)}" for score, alike in sorted(at.items()))
    if len(at) == 1:
        [(score, alike)] = at.items()
        x = _inside(scale.x(score))
        is_same = row.n_same is not None and row.n_same == row.n_runs
        words = f"{len(alike)} of {row.n_runs} {'equal to the bit' if is_same else 'with one score'}"
        return LabStrip((), RunDot(x, MIDDLE, _label(alike[0], score), alike[0].run), words, x > 50, label)
    return LabStrip(tuple(_dots(at, scale)), None, "", False, label)


def _dots(at: dict[float, list[LabPoint]], scale: Scale) -> Iterable[RunDot]:
    """Yield equal scores one above the other, around the middle, closer where they are many."""
    for score, alike in sorted(at.items()):
        pitch = min(PITCH, TALLEST / max(len(alike) - 1, 1))
        for place, point in enumerate(alike):
            y = MIDDLE + pitch * (place - (len(alike) - 1) / 2)
            yield RunDot(_inside(scale.x(score)), round(y, 2), _label(point, score), point.run)


def _label(point: LabPoint, score: float) -> str:
    who = point.name if point.run is None else f"run {point.run}, repeat {point.repeat}"
    named = f" ({point.name})" if point.run is not None and point.name else ""
    return f"{who}{named}: {points(score)}"


def _inside(x: float) -> float:
    return round(LEFT + WIDTH * x / 100, 3)
