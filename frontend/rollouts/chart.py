"""The KL and the clip share of a series over its steps as Plotly figures, without colours."""

from collections.abc import Callable, Sequence
from typing import Any

from evalboard.wording.rollouts import write_kl, write_share
from frontend.shell.charts import figures
from frontend.shell.charts.axes import log_scale_of
from runs.rollouts import ChartPoint

LABELS, MARGIN = 0.08, 0.02  # room at the left, where the heights are named, and at the right, in parts of the span
FEW = 10  # steps, of which each is named


def draw_kl(points: Sequence[ChartPoint], limit: float | None) -> dict[str, Any] | None:
    """Return `data` and `layout`: the KL (k3) of each point, and the limit; None where no step has one."""
    known = [point for point in points if point.kl is not None]
    if not known:
        return None
    scale = log_scale_of([*(point.kl for point in known), limit], least=-4, most=-2)
    heights = [scale.y(point.kl or 0.0) for point in known]
    figure = _draw(known, heights, lambda point: f"KL {write_kl(point.kl)}", "KL (k3), nats per token, log scale")
    figure["layout"]["yaxis"] = scale.axis
    if limit is not None:
        figure["layout"]["shapes"] = [_line_at(scale.y(limit))]
    return figure


def draw_clip(points: Sequence[ChartPoint], limit: float | None) -> dict[str, Any] | None:
    """Return the figure of the share of tokens outside the clip range, in percent."""
    known = [point for point in points if point.clip_share is not None]
    if not known:
        return None
    heights = [100 * (point.clip_share or 0.0) for point in known]
    top = max(*heights, 100 * (limit or 0.0), 0.1)
    figure = _draw(known, heights, lambda point: write_share(point.clip_share), "tokens outside the clip range, %")
    figure["layout"]["yaxis"] = {"range": [-0.05 * top, 1.15 * top]}
    if limit is not None:
        figure["layout"]["shapes"] = [_line_at(100 * limit)]
    return figure


def name_steps(point: ChartPoint) -> str:
    """Return "step 12", or "steps 10 to 14" of a point of several."""
    return f"step {point.first}" if point.first == point.last else f"steps {point.first} to {point.last}"


def _draw(
    points: Sequence[ChartPoint], heights: Sequence[float], write: Callable[[ChartPoint], str], name: str
) -> dict[str, Any]:
    middles = [(point.first + point.last) / 2 for point in points]
    first, end = points[0].first, points[-1].last
    left, right = (max(part * (end - first), 0.5) for part in (LABELS, MARGIN))
    axis: dict[str, Any] = {"range": [first - left, end + right], "tickformat": "d"}
    if end - first < FEW:
        axis["dtick"] = 1
    marks = [
        figures.marks(
            [middles[place] for place in chosen],
            [heights[place] for place in chosen],
            [f"{name_steps(points[place])}<br>{write(points[place])}" for place in chosen],
            ink="shift",
            symbol=symbol,
            size=6,
        )
        for symbol, is_over in (("circle-open", False), ("circle", True))
        if (chosen := [place for place, point in enumerate(points) if point.is_over is is_over])
    ]
    return {
        "data": [figures.lines(middles, heights, role="stems", ink="shift"), *marks],
        "layout": {
            "xaxis": axis,
            "margin": {"b": 52},
            "annotations": [figures.title(name, name.partition(",")[0]), figures.name_along("step")],
        },
    }


def _line_at(height: float) -> dict[str, Any]:
    """Return the limit as a line over the whole plot."""
    return {
        "type": "line",
        "xref": "paper",
        "yref": "y",
        "x0": 0,
        "x1": 1,
        "y0": height,
        "y1": height,
        "name": "noise-line",
    }
