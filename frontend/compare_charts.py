"""The compare page's charts as numbers: x in percent of the plot, y in pixels, colours left to the stylesheet."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from frontend.causes import MARKS, CauseMark
from frontend.charts import Tick
from frontend.pair_address import of_pair
from frontend.pair_chart import LogScale, scale_of
from frontend.templatetags.numbers import nats
from runs.selectors.comparison import ComparedCounts, ComparisonReport, FlipPoint, LedgerLine, PositionHistogram

LEAST_SHOWN = 0.6  # percent; a part that holds anything can be seen
GAP = 0.25  # percent between parts
PAD = 3.0  # percent on either side of the waterfall
HISTOGRAM_HEIGHT, HISTOGRAM_TOP, HISTOGRAM_FOOT = 190, 14, 36
SYMBOLS = {"numeric": "circle-open", "shift": "square-open", "setup": "x-thin", "reading": "diamond-open"}


@dataclass(frozen=True, slots=True)
class CountPart:
    """One part of the bar of all pairs. `key` names its look."""

    key: str
    label: str
    n: int
    x: float
    width: float


def count_parts(counts: ComparedCounts) -> tuple[CountPart, ...]:
    """All pairs from identical to score changed; what holds nothing has no part."""
    rest = counts.flipped + counts.text_only - counts.flipped_score_changed
    found = [
        ("identical", "identical bits", counts.identical),
        ("drift", "same tokens, drift", counts.drift_only),
        ("flipped", "flipped, same score", rest),
        ("changed", "flipped, score changed", counts.flipped_score_changed),
        ("unread", "not read yet", counts.unread),
    ]
    found = [part for part in found if part[2] > 0]
    total = max(sum(n for _, _, n in found), 1)
    wanted = [max(100 * n / total, LEAST_SHOWN) for _, _, n in found]
    fit = 100 / max(sum(wanted), 1)
    parts, x = [], 0.0
    for (key, label, n), width in zip(found, wanted, strict=True):
        parts.append(CountPart(key, label, n, round(x, 3), round(max(width * fit - GAP, 0.1), 3)))
        x += width * fit
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class LedgerBar:
    """One line of the waterfall: a bar from where the line above ended, and where it ends itself."""

    mark: CauseMark
    line: LedgerLine
    x: float
    width: float
    end: float


@dataclass(frozen=True, slots=True)
class Waterfall:
    """zero: where the baseline's score stands; total_x, total_width: the whole difference."""

    bars: tuple[LedgerBar, ...]
    zero: float
    total_x: float
    total_width: float


def waterfall(report: ComparisonReport) -> Waterfall | None:
    """The largest change first, each from the sum of those before it; None where nothing is to be explained."""
    if not report.ledger or report.difference is None:
        return None
    lines = sorted(report.ledger, key=lambda line: -abs(line.points))
    sums = [0.0]
    for line in lines:
        sums.append(sums[-1] + line.points)
    low, high = min(*sums, report.difference), max(*sums, report.difference)
    reach = max(high - low, 1e-9)

    def x(value: float) -> float:
        return round(PAD + (100 - 2 * PAD) * (value - low) / reach, 3)

    bars = tuple(
        LedgerBar(MARKS[line.cause], line, min(x(start), x(end)), round(abs(x(end) - x(start)), 3), x(end))
        for line, start, end in zip(lines, sums, sums[1:], strict=False)
    )
    ends = sorted((x(0.0), x(report.difference)))
    return Waterfall(bars, x(0.0), ends[0], round(ends[1] - ends[0], 3))


@dataclass(frozen=True, slots=True)
class HistogramBar:
    mark: CauseMark
    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """Stacked bars; `rows` are the same numbers: first position, last position, and (cause, n) pairs."""

    bars: tuple[HistogramBar, ...]
    ticks: tuple[Tick, ...]
    levels: tuple[tuple[float, str], ...]
    marks: tuple[CauseMark, ...]
    rows: tuple[tuple[int, int, tuple[int, ...]], ...]
    axis_y: float
    height: float
    label: str


def histogram(found: PositionHistogram | None, what: str) -> Histogram | None:
    """None where there is nothing to count. The causes that must be acted on stand at the bottom."""
    if found is None or not found.n:
        return None
    series = sorted(found.series, key=lambda line: (MARKS[line.cause].is_open, -sum(line.counts)))
    tallest = max(sum(line.counts[place] for line in series) for place in range(len(found.starts)))
    axis_y = HISTOGRAM_HEIGHT - HISTOGRAM_FOOT
    scale = (axis_y - HISTOGRAM_TOP) / tallest
    pitch = 100 / len(found.starts)
    bars = []
    for place, start in enumerate(found.starts):
        foot = float(axis_y)
        for line in series:
            n = line.counts[place]
            if not n:
                continue
            height = n * scale
            where = _places(start, found.width)
            words = f"{where}: {n:,} {MARKS[line.cause].label}"
            bars.append(
                HistogramBar(
                    MARKS[line.cause],
                    round(place * pitch + 0.08 * pitch, 3),
                    round(foot - height, 2),
                    round(0.84 * pitch, 3),
                    round(height, 2),
                    words,
                )
            )
            foot -= height
    counts = tuple(
        (start, start + found.width - 1, tuple(line.counts[place] for line in series))
        for place, start in enumerate(found.starts)
    )
    return Histogram(
        bars=tuple(bars),
        ticks=_ticks(found, pitch),
        levels=_levels(tallest, axis_y, scale),
        marks=tuple(MARKS[line.cause] for line in series),
        rows=counts,
        axis_y=axis_y,
        height=HISTOGRAM_HEIGHT,
        label=f"{found.n:,} by {what} position, {found.n_at_start:,} at position 0",
    )


def _places(start: int, width: int) -> str:
    return f"position {start}" if width == 1 else f"positions {start}–{start + width - 1}"


def _ticks(found: PositionHistogram, pitch: float) -> tuple[Tick, ...]:
    every = max(math.ceil(len(found.starts) / 5), 1)
    places = range(0, len(found.starts), every)
    middle = pitch / 2 if found.width == 1 else 0.0
    return tuple(Tick(round(place * pitch + middle, 3), str(found.starts[place])) for place in places)


def _levels(tallest: int, axis_y: float, scale: float) -> tuple[tuple[float, str], ...]:
    step = next(step * 10**power for power in range(9) for step in (1, 2, 5) if tallest / (step * 10**power) <= 4)
    return tuple((round(axis_y - n * scale, 2), f"{n:,}") for n in range(step, tallest + 1, step))


def scatter(report: ComparisonReport, shown: Sequence[FlipPoint]) -> dict[str, Any] | None:
    """`data` and `layout` for Plotly: movement against margin at the flip; None where neither is known."""
    if not shown:
        return None
    margins = scale_of((flip.margin for flip in shown), least=-2, most=0)
    near = report.noise.near if report.noise else None
    moves = scale_of([*(flip.movement for flip in shown), near], least=-2, most=0)
    causes = sorted({flip.cause for flip in shown})
    return {
        "data": [_points(report, cause, [f for f in shown if f.cause == cause], margins, moves) for cause in causes],
        "layout": {
            "xaxis": _upright(margins) | {"title": {"text": "margin at the flip, nats, log scale"}},
            "yaxis": moves.axis,
            "shapes": _zone(near, margins, moves),
            "annotations": _zone_words(near, moves),
        },
    }


def _points(
    report: ComparisonReport, cause: str, flips: list[FlipPoint], margins: LogScale, moves: LogScale
) -> dict[str, Any]:
    mark = MARKS[cause]
    runs = report.baseline.run_id, report.candidate.run_id
    return {
        "type": "scatter",
        "mode": "markers",
        "meta": {"role": "points", "ink": mark.family, "symbol": SYMBOLS.get(mark.family, "cross-thin"), "size": 8},
        "hoverinfo": "text",
        "x": [margins.y(flip.margin or 0.0) for flip in flips],
        "y": [moves.y(flip.movement or 0.0) for flip in flips],
        "text": [
            f"{_plain(flip.case_id)}, flip {flip.flip}<br>{mark.label}<br>margin {nats(flip.margin)}, "
            f"movement {nats(flip.movement)} nats"
            for flip in flips
        ],
        "customdata": [
            of_pair(*runs, flip.case_id, repeats=(flip.repeat_baseline, flip.repeat_candidate), at=flip.flip)
            for flip in flips
        ],
    }


def known_flips(report: ComparisonReport) -> tuple[FlipPoint, ...]:
    """The flips whose margin and movement are both known."""
    return tuple(flip for flip in report.flips if flip.margin is not None and flip.movement is not None)


def _upright(scale: LogScale) -> dict[str, Any]:
    axis = scale.axis
    return axis | {"ticktext": [text.removesuffix(" nats") for text in axis["ticktext"]]}


def _zone(near: float | None, margins: LogScale, moves: LogScale) -> list[dict[str, Any]]:
    if not near:
        return []
    right = max(margins.y(near), margins.axis["range"][0])
    zone = {"type": "rect", "xref": "x", "yref": "y", "layer": "below", "name": "noise"}
    low = margins.axis["range"][0], moves.axis["range"][0]
    return [zone | {"x0": low[0], "x1": right, "y0": low[1], "y1": moves.y(near)}]


def _zone_words(near: float | None, moves: LogScale) -> list[dict[str, Any]]:
    up = {"xref": "paper", "yref": "paper", "x": 1, "y": 1, "xanchor": "right", "yanchor": "bottom", "name": "title"}
    words = [up | {"text": "up: movement of the two tokens, nats"}]
    if near:
        place = {"xref": "paper", "x": 0.08, "xanchor": "left", "yref": "y", "y": moves.y(near), "yanchor": "top"}
        words.append(place | {"text": f"within noise, {nats(near)}", "name": "flip"})
    return words


def _plain(text: str) -> str:
    """A case id for Plotly's hover words, which read some HTML tags and entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
