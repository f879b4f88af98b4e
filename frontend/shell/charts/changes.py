"""The ruler of score changes: x in percent of the plot, y in pixels, colours by the stylesheet.

Every change in score is drawn on it: zero, the tolerance with the side beyond it tinted, the interval and the
estimate. A release's large one and its rows' small ones differ only in size.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from evalboard.contract.release import Gate, GateSide, Span
from evalboard.wording.numbers import percent, signed
from frontend.shell.charts.axes import Bar, Scale, Tick, scale_for
from frontend.shell.charts.marks import piles, spread
from frontend.templatetags.numbers import points, signed_points, span

PITCH = 54.0  # pixels from row to row of the plate: its words, and under them its bar
TOP = 18.0  # above the plot: the names of the lines
BAR_TOP, BAR_HEIGHT = 31.0, 16.0
FOOT = 24.0
WORDS_ABOVE, WORDS_BELOW = 13.0, 5.0  # pixels around the line on which a row's words stand
MAX_REACH = 2.0  # how much wider than what decides the plate gets to show the reach; the rest is cut with an arrow
MAX_TOLERANCES = 8.0  # to either side of zero in rows, so that one suite of few cases does not flatten the others
MAX_ZERO = 0.7  # of the plot's width is left of zero: the numbers of each row stand to the right of it
CLOSE = 24.0  # percent; nearer lines have their names on either side
NEXT, MAX_BESIDE = 5.0, 24.0  # pixels between repeats with the same points, and over all of them
ACCEPTED = Scale(-3.0, 3.0)  # of the board, in units of what a release accepts: its limit is always at −1
ROW_HEIGHT, ROW_HEIGHT_WITH_WORDS = 34, 46
STRIP_HEIGHT, STRIP_BASELINE, STRIP_CANDIDATE = 34, 10.0, 23.0


@dataclass(frozen=True, slots=True)
class PlateRow:
    """A row of the plate. `kind`: here (decides), expected or reach; a cut end has an arrow."""

    kind: str
    name: str
    words: str
    y: float
    bar: Bar
    middle: float | None
    is_cut_low: bool = False
    is_cut_high: bool = False

    @property
    def bar_y(self) -> float:
        return self.y + BAR_TOP

    @property
    def middle_y(self) -> float:
        return self.y + BAR_TOP + BAR_HEIGHT / 2

    @property
    def words_y(self) -> float:
        return self.y + 21


@dataclass(frozen=True, slots=True)
class LinePart:
    """A part of the tolerance line and of the zero line, in pixels."""

    top: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Plate:
    """The large ruler. worse: the deciding bar's part beyond the tolerance; are_close: labels would touch.

    lines: the parts of both lines; they leave out where the words of a row stand, so that neither strikes a text.
    """

    rows: tuple[PlateRow, ...]
    worse: Bar | None
    tolerance_x: float
    zero_x: float
    tolerance: str
    ticks: tuple[Tick, ...]
    axis_y: float
    height: float
    are_close: bool
    lines: tuple[LinePart, ...]
    label: str


def plate(gate: Gate) -> Plate | None:
    """Return the large ruler of one gate; None if no change was measured."""
    if gate.interval is None or gate.difference is None:
        return None
    scale = _plate_scale(gate)
    these = "This case" if gate.n_cases_judged == 1 else f"These {gate.n_cases_judged:,} cases"
    rows = [_row("here", f"{these}{_level(gate.level)}", gate.interval, gate.difference, scale, 0)]
    if gate.expected is not None:
        name = f"With {gate.expected.repeats} repeats"
        rows.append(_row("expected", name, gate.expected.interval, None, scale, len(rows)))
    if gate.new_cases is not None:
        middle = min(max(gate.difference, gate.new_cases.low), gate.new_cases.high)
        name = f"Others like these{_level(gate.new_cases.level)}"
        rows.append(_row("reach", name, gate.new_cases.interval, middle, scale, len(rows)))
    here, tolerance_x, zero_x = rows[0].bar, scale.x(-gate.tolerance_points), scale.x(0)
    worse = Bar(here.x, round(min(here.end, tolerance_x) - here.x, 3)) if here.x < tolerance_x else None
    axis_y = TOP + PITCH * len(rows) + 8
    label = f"{gate.suite}: change {signed_points(gate.difference)}, interval {_ends(gate.interval)}"
    reach = f"; for other cases like these {_ends(gate.new_cases.interval)}" if gate.new_cases else ""
    return Plate(
        rows=tuple(rows),
        worse=worse,
        tolerance_x=tolerance_x,
        zero_x=zero_x,
        tolerance=signed_points(-gate.tolerance_points),
        ticks=_ticks(scale),
        axis_y=axis_y,
        height=axis_y + FOOT,
        are_close=zero_x - tolerance_x < CLOSE,
        lines=_line_parts(rows, axis_y),
        label=f"{label}; tolerance {signed_points(-gate.tolerance_points)}{reach}",
    )


def _line_parts(rows: Sequence[PlateRow], axis_y: float) -> tuple[LinePart, ...]:
    """Return a vertical line in parts, interrupted where rows have texts."""
    tops = [TOP - 2, *(row.words_y + WORDS_BELOW for row in rows)]
    ends = [*(row.words_y - WORDS_ABOVE for row in rows), axis_y]
    return tuple(LinePart(top, end) for top, end in zip(tops, ends, strict=True) if end > top)


def _plate_scale(gate: Gate) -> Scale:
    interval = gate.interval or (0.0, 0.0)
    expected = gate.expected.interval if gate.expected else (0.0, 0.0)
    low = min(interval[0], expected[0], -gate.tolerance_points, 0.0)
    high = max(interval[1], expected[1], 0.0)
    room = (MAX_REACH - 1) * (high - low) / 2
    if gate.new_cases is not None:
        low = max(min(low, gate.new_cases.low), low - room)
        high = min(max(high, gate.new_cases.high), high + room)
    pad = 0.16 * max(high - low, 1e-6)
    low, high = low - pad, high + pad
    return Scale(low, max(high, low * (1 - 1 / MAX_ZERO)))


def _row(kind: str, name: str, reach: Span, middle: float | None, scale: Scale, place: int) -> PlateRow:
    change = "" if middle is None else f"{signed_points(middle)} "
    words = {"here": f"{change}{_ends(reach)}", "expected": f"about {_ends(reach)}", "reach": _ends(reach)}
    return PlateRow(
        kind=kind,
        name=name,
        words=words[kind],
        y=TOP + PITCH * place,
        bar=scale.bar(*reach),
        middle=None if middle is None else scale.x(middle),
        is_cut_low=scale.x(reach[0]) < 0,
        is_cut_high=scale.x(reach[1]) > 100,
    )


def _level(level: float | None) -> str:
    return "" if level is None else f", {percent(level)}"


def _ends(reach: Span) -> str:
    return f"[{signed_points(reach[0])}, {signed_points(reach[1])}]"


def _ticks(scale: Scale) -> tuple[Tick, ...]:
    ticks = scale.ticks(label=lambda value, decimals: signed(value, decimals) if value else "0")
    return tuple(tick for tick in ticks if 4 <= tick.x <= 96)


@dataclass(frozen=True, slots=True)
class RowRuler:
    """The small ruler of a row, on the table's common scale; without marks if unknown.

    words: below its bar. beyond: "low" or "high" where all of it lies past that end of the scale.
    """

    bar: Bar | None
    middle: float | None
    tolerance_x: float
    zero_x: float
    is_cut_low: bool
    is_cut_high: bool
    label: str
    words: str = ""
    beyond: str = ""

    @property
    def height(self) -> int:
        return ROW_HEIGHT_WITH_WORDS if self.words else ROW_HEIGHT


def accepted_ruler(difference: float | None, interval: Span | None, tolerance: float | None) -> RowRuler | None:
    """Draw a change as a multiple of what is accepted, so that the limit is at one place whatever it is."""
    if not tolerance or difference is None or interval is None:
        return None
    low, high = (end / tolerance for end in interval)
    middle = ACCEPTED.x(difference / tolerance)
    made = row_ruler(difference / tolerance, (low, high), 1.0, ACCEPTED)
    return made and replace(
        made,
        middle=middle if 0 < middle < 100 else None,
        label=f"change {signed_points(difference)}, interval {_ends(interval)}, tolerance {signed_points(-tolerance)}",
        words=f"{signed_points(difference)} points, accepts {points(tolerance)}",
        beyond="low" if high <= ACCEPTED.low else "high" if low >= ACCEPTED.high else "",
    )


def rows_scale(changes: Iterable[tuple[float | None, Span | None, float | None]]) -> Scale:
    """Return one scale for rows of (difference, interval, tolerance), so that positions are comparable.

    A wide interval is cut, so that it makes no other row small; a difference never is.
    """
    known = list(changes)
    tolerances = [tolerance for _, _, tolerance in known if tolerance is not None]
    furthest = max((abs(difference) for difference, _, _ in known if difference is not None), default=0.0)
    widest = max(MAX_TOLERANCES * max(tolerances, default=1.0), furthest)
    low = min((interval[0] for _, interval, _ in known if interval), default=0.0)
    high = max((interval[1] for _, interval, _ in known if interval), default=0.0)
    low, high = max(min(low, *(-t for t in tolerances), 0.0), -widest), min(max(high, 0.0), widest)
    high = max(high, 0.25 * -low)
    pad = 0.12 * max(high - low, 1.0)
    return Scale(low - pad, high + pad)


def row_ruler(
    difference: float | None, interval: Span | None, tolerance: float | None, scale: Scale
) -> RowRuler | None:
    """Draw a row's change; None if it has no tolerance."""
    if tolerance is None:
        return None
    tolerance_x, zero_x = max(scale.x(-tolerance), 0.0), scale.x(0)
    if difference is None or interval is None:
        return RowRuler(None, 0.0, tolerance_x, zero_x, False, False, "no change is given")
    return RowRuler(
        bar=scale.bar(*interval),
        middle=scale.within(difference),
        tolerance_x=tolerance_x,
        zero_x=zero_x,
        is_cut_low=scale.x(interval[0]) < 0,
        is_cut_high=scale.x(interval[1]) > 100,
        label=f"change {signed_points(difference)}, interval {_ends(interval)}, tolerance {signed_points(-tolerance)}",
    )


@dataclass(frozen=True, slots=True)
class StripMark:
    """Repeats with equal points, offset by a few pixels so that all are visible; `xs`: their places."""

    x: float
    xs: tuple[float, ...]
    label: str


@dataclass(frozen=True, slots=True)
class StripLine:
    side: str
    y: float
    range: Bar | None
    marks: tuple[StripMark, ...]


@dataclass(frozen=True, slots=True)
class ReleaseStrip:
    """The repeats of both sides above each other on one scale; the candidate is below."""

    lines: tuple[StripLine, ...]
    height: int
    label: str


def strip(gate: Gate) -> ReleaseStrip | None:
    """Draw both sides' repeats, None where neither side has a scored one."""
    sides = (("baseline", gate.baseline, STRIP_BASELINE), ("candidate", gate.candidate, STRIP_CANDIDATE))
    known = [value for _, side, _ in sides for value in side.repeats if value is not None]
    if not known:
        return None
    scale = scale_for(known, least=max(4 * gate.points_per_case, 1.0))
    lines = tuple(_strip_line(name, side, y, scale) for name, side, y in sides)
    label = "; ".join(f"{name} {_spread(side)}" for name, side, _ in sides)
    return ReleaseStrip(lines, STRIP_HEIGHT, f"{label}; {points(scale.low)} to {points(scale.high)} points")


def _strip_line(name: str, side: GateSide, y: float, scale: Scale) -> StripLine:
    at = {value: len(repeats) for value, repeats in piles(side.repeats).items()}
    marks = tuple(
        StripMark(scale.x(value), spread(n, NEXT, MAX_BESIDE), f"{points(value)}{_times(n)}") for value, n in at.items()
    )
    return StripLine(name, y, scale.bar(min(at), max(at)) if at else None, marks)


def _times(n: int) -> str:
    return f", {n} repeats" if n > 1 else ""


def _spread(side: GateSide) -> str:
    known = [value for value in side.repeats if value is not None]
    if not known:
        return "not scored"
    return f"{span((min(known), max(known)))} over {len(known)} repeat{'' if len(known) == 1 else 's'}"
