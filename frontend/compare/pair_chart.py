"""Margin and gap by position as a Plotly figure, without colours: `charts.js` adds those of the theme."""

from collections.abc import Sequence
from typing import Any

from evalboard.contract.compare import SIDES
from evalboard.contract.pair import MarginPoint, TracePair
from frontend.shell.charts import figures
from frontend.shell.charts.axes import LogScale, log_scale_of
from frontend.templatetags.numbers import nats

HATCH_REACH, HATCH_STEP = 0.12, 0.007  # of the chart's width: about 45° and 8 px at 1200 px
CLOSE = 0.18  # of the chart's width: the room that the words of a mark take
ROOM = 0.13  # of the chart's width: the label next to the flip
CLOSE_DECADES = 0.8  # of the margin's scale: the height that the words of a mark take
MANY = 300  # points; more are drawn smaller


def figure(pair: TracePair) -> dict[str, Any] | None:
    """Return `data` and `layout`, plain JSON; None where no margin is known."""
    points = pair.points
    margins = [value for point in points for value in point.margins]
    if all(value is None for value in margins):
        return None
    scales = log_scale_of(margins, least=-2, most=1), log_scale_of((point.gap for point in points), least=-4, most=-1)
    end = max(pair.last_at, 1)
    x_range = [-0.02 * end - 0.5, end + 0.5]
    return {
        "data": [*_margins(points, scales[0]), *_gaps(points, scales[1]), *_remaining_pairs(pair, scales)],
        "layout": {
            "xaxis": {"range": x_range, "anchor": "y2", "tickformat": "d"},
            "yaxis": scales[0].axis | {"domain": [0.55, 1]},
            "yaxis2": scales[1].axis | {"domain": [0, 0.42]},
            "margin": {"b": 52},
            "shapes": [*_zone(pair, scales), *_noise_line(pair, scales[1]), *_lines(pair)],
            "annotations": [*_titles(), *_noise_words(pair, scales), *_flip_words(pair, scales[0]), *_mark_words(pair)],
        },
    }


def near_of(pair: TracePair) -> float | None:
    """Return the largest movement that noise explains, in nats, if the cause uses it."""
    return pair.evidence.get("near")


def _margins(points: Sequence[MarginPoint], scale: LogScale) -> list[dict[str, Any]]:
    series = []
    for place, (side, symbol) in enumerate((("baseline", "circle-open"), ("candidate", "circle"))):
        known = [(point, value) for point in points if (value := point.margins[place]) is not None]
        words = [
            f"{point.at} {side} {figures.escape_hover(point.tokens[place])}<br>margin {nats(value)} nats"
            for point, value in known
        ]
        heights = [scale.y(value) for _, value in known]
        series.append(_marks([point for point, _ in known], heights, words, ink=side, symbol=symbol))
    return series


def _gaps(points: Sequence[MarginPoint], scale: LogScale) -> list[dict[str, Any]]:
    shown = [point for point in points if point.gap is not None]
    heights = [scale.y(point.gap or 0.0) for point in shown]
    words = [f"{point.at} {figures.escape_hover(point.tokens[0])}<br>gap {point.gap:.3g} nats" for point in shown]
    stems = figures.stems((point.at for point in shown), (scale.y(0.0) for _ in shown), heights, ink="numeric")
    marks = _marks(shown, heights, words, ink="numeric", symbol="circle")
    return [stems | {"yaxis": "y2"}, marks | {"yaxis": "y2"}]


def _marks(
    points: Sequence[MarginPoint], heights: list[float], words: list[str], *, ink: str, symbol: str
) -> dict[str, Any]:
    places, size = [point.at for point in points], 7 if len(points) <= MANY else 4
    return figures.marks(places, heights, words, ink=ink, symbol=symbol, size=size) | {"customdata": places}


def _remaining_pairs(pair: TracePair, scales: tuple[LogScale, LogScale]) -> list[dict[str, Any]]:
    """Hatching from the parting on: no number there answers the same question."""
    if pair.parts_at is None:
        return []
    left, right = pair.parts_at + (0.0 if pair.has_flip else -0.5), max(pair.last_at, 1) + 0.5
    traces = []
    for axis, scale in (("y", scales[0]), ("y2", scales[1])):
        low, high = scale.axis["range"]
        lines = _hatching((left, right), (low, high), reach=right * HATCH_REACH, step=right * HATCH_STEP)
        traces.append(figures.lines(**lines, role="past", ink="hatch") | {"yaxis": axis})
    return traces


def _hatching(
    x: tuple[float, float], y: tuple[float, float], *, reach: float, step: float
) -> dict[str, list[float | None]]:
    """Return slanted lines that fill a rectangle, cut at its sides; each spans `reach` horizontally."""
    lines: dict[str, list[float | None]] = {"x": [], "y": []}
    rise = (y[1] - y[0]) / reach
    foot = x[0] - reach + step
    while foot < x[1]:
        ends = max(foot, x[0]), min(foot + reach, x[1])
        lines["x"] += [round(ends[0], 3), round(ends[1], 3), None]
        lines["y"] += [round(y[0] + rise * (end - foot), 3) for end in ends] + [None]
        foot += step
    return lines


def _zone(pair: TracePair, scales: tuple[LogScale, LogScale]) -> list[dict[str, Any]]:
    near = near_of(pair)
    if not near:
        return []
    end = pair.last_at if pair.parts_at is None else pair.parts_at
    x = (-0.5, end + (0.5 if pair.parts_at is None else 0))
    return [figures.zone(x, (scales[0].axis["range"][0], scales[0].y(near)))]


def _noise_line(pair: TracePair, scale: LogScale) -> list[dict[str, Any]]:
    near = near_of(pair)
    if not near:
        return []
    line = {"type": "line", "xref": "x", "yref": "y2", "x0": -0.5, "x1": _end_of_comparable(pair), "name": "noise-line"}
    return [line | {"y0": scale.y(near), "y1": scale.y(near)}]


def _end_of_comparable(pair: TracePair) -> float:
    return pair.last_at + 0.5 if pair.parts_at is None else float(pair.parts_at)


def _lines(pair: TracePair) -> list[dict[str, Any]]:
    marked = ((pair.drift_onset, "onset"), (pair.parts_at, "flip"))
    return [figures.across(at, name) for at, name in marked if at is not None]


def _titles() -> list[dict[str, Any]]:
    return [
        figures.title("Margin, nats, log scale", "Margin, nats"),
        figures.title("Gap, nats, log scale; same token, same position", "Gap, nats", 0.42),
        figures.name_along("position"),
    ]


def _noise_words(pair: TracePair, scales: tuple[LogScale, LogScale]) -> list[dict[str, Any]]:
    """Name the zone of the margins and the line of the gaps by their value, before the flip.

    Where that leaves no room, the line's words stand past it and the zone, whose value is the same, has none.
    """
    near, end = near_of(pair), max(pair.last_at, 1)
    words: list[dict[str, Any]] = []
    stop = _end_of_comparable(pair)
    if near:
        has_room = stop > CLOSE * end
        place = {"xref": "x", "x": stop, "xanchor": "right" if has_room else "left", "xshift": -6 if has_room else 6}
        low, high = scales[1].axis["range"]
        is_high = scales[1].y(near) - low > 0.8 * (high - low)  # above it stands the title
        side = {"yanchor": "top", "yshift": -2} if is_high else {"yanchor": "bottom", "yshift": 2}
        line = {"yref": "y2", "y": scales[1].y(near), "name": "noise"} | side
        words.append(place | line | {"text": f"noise of these buckets, {nats(near)}", "narrow": f"noise {nats(near)}"})
        if has_room:
            zone = {"yref": "y", "y": scales[0].y(near), "yanchor": "top", "yshift": -2, "name": "zone"}
            words.append(place | zone | {"text": f"within noise, {nats(near)} nats", "narrow": "within noise"})
    if pair.parts_at is not None and pair.last_at - pair.parts_at > CLOSE * end:
        middle = {"xref": "x", "x": (pair.parts_at + pair.last_at) / 2, "xanchor": "center", "name": "past"}
        text = {"text": "past the flip, texts differ", "narrow": "texts differ"}
        words.append(middle | {"yref": "paper", "y": 0.21, "yanchor": "middle"} | text)
    return words


def _flip_words(pair: TracePair, scale: LogScale) -> list[dict[str, Any]]:
    """Return labels of both margins at the flip, one above the other if they are close."""
    flip = next((point for point in pair.points if point.at == pair.parts_at), None) if pair.has_flip else None
    if flip is None:
        return []
    known = zip(SIDES, flip.margins, strict=True)
    values = sorted(((side, value) for side, value in known if value is not None), key=lambda each: each[1])
    is_close = len(values) == 2 and abs(scale.y(values[0][1]) - scale.y(values[1][1])) < CLOSE_DECADES
    is_right = flip.at > (1 - ROOM) * max(pair.last_at, 1)
    place = {"xref": "x", "x": flip.at, "yref": "y", "yanchor": "middle"}
    place |= {"xanchor": "right", "xshift": -9} if is_right else {"xanchor": "left", "xshift": 9}
    shifts = (-8, 8) if is_close else (0, 0)
    return [
        place
        | {
            "y": scale.y(value),
            "yshift": shift,
            "text": f"{nats(value)} {side}",
            "narrow": nats(value),
            "name": f"at-flip-{side}",
        }
        for (side, value), shift in zip(values, shifts, strict=False)
    ]


def _mark_words(pair: TracePair) -> list[dict[str, Any]]:
    """Return labels of drift start and flip under the axis, one below the other if they are close."""
    at, onset, end = pair.parts_at, pair.drift_onset, max(pair.last_at, 1)
    is_close = at is not None and onset is not None and at - onset < CLOSE * end
    words = []
    if onset is not None:
        words.append((onset, f"◇ drift onset {onset}", "onset", -18))
    if at is not None:
        text = f"◆ flip {at}" if pair.has_flip else f"◆ one side ends at {at}"
        words.append((at, text, "flip", -32 if is_close else -18))
    place = {"xref": "x", "yref": "paper", "y": 0, "yanchor": "top"}
    return [
        place
        | {"x": x, "text": text, "name": name, "yshift": shift}
        | {"xanchor": "left" if x < CLOSE * end else "right" if x > (1 - 2 * CLOSE) * end else "center"}
        for x, text, name, shift in words
    ]
