"""The runs of each source as dots on one scale of points: x in percent of the plot, y in pixels."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from evalboard.contract.lab import Experiment, LabPoint, LabRow
from evalboard.wording.numbers import points
from frontend.shell.charts.axes import Bar, Scale, Tick, scale_for
from frontend.shell.charts.marks import piles, spread

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
    band: Bar | None


def draw_strips(experiment: Experiment) -> Strips | None:
    """Return None while nothing has been measured."""
    known = [point.score for row in experiment.rows for point in row.points]
    if not known:
        return None
    scale = replace(scale_for(known, least=MIN_POINTS), left=LEFT, width=WIDTH)
    rows = {at: _strip(row, scale) for at, row in enumerate(experiment.rows) if row.points}
    control = experiment.control
    band = None if control is None else Bar(round(scale.x(control) - BAND / 2, 3), BAND)
    return Strips(rows, scale.ticks(6), band)


def _strip(row: LabRow, scale: Scale) -> LabStrip:
    at = {
        score: [row.points[place] for place in places]
        for score, places in piles([each.score for each in row.points]).items()
    }
    label = "; ".join(f"{points(score)}: {len(alike)}" for score, alike in at.items())
    if len(at) == 1:
        [(score, alike)] = at.items()
        x = scale.x(score)
        is_same = row.n_same is not None and row.n_same == row.n_runs
        words = f"{len(alike)} of {row.n_runs} {'equal to the bit' if is_same else 'with one score'}"
        return LabStrip((), RunDot(x, MIDDLE, _label(alike[0], score), alike[0].run), words, x > 50, label)
    return LabStrip(tuple(_dots(at, scale)), None, "", False, label)


def _dots(at: dict[float, list[LabPoint]], scale: Scale) -> Iterable[RunDot]:
    """Yield equal scores one above the other, around the middle, closer where they are many."""
    for score, alike in at.items():
        for y, point in zip(spread(len(alike), PITCH, TALLEST), alike, strict=True):
            yield RunDot(scale.x(score), MIDDLE + y, _label(point, score), point.run)


def _label(point: LabPoint, score: float) -> str:
    who = point.name if point.run is None else f"run {point.run}, repeat {point.repeat}"
    named = f" ({point.name})" if point.run is not None and point.name else ""
    return f"{who}{named}: {points(score)}"
