"""|log r| by position as a Plotly figure, without colours: `charts.js` adds those of the theme."""

from collections.abc import Sequence
from typing import Any

from evalboard.contract.forced import GapsOfStretch
from frontend.shell.log_scale import LogScale, scale_of
from frontend.templatetags.numbers import nats


def figure(stretches: Sequence[GapsOfStretch]) -> dict[str, Any] | None:
    """Return `data` and `layout`: largest and median |log r| by position; None if no token differs."""
    if not any(each.highest for each in stretches):
        return None
    scale = scale_of((value for each in stretches for value in (each.highest, each.median)), least=-3, most=0)
    end = stretches[-1].last
    return {
        "data": [
            _stems(stretches, scale),
            _marks(stretches, [each.highest for each in stretches], scale, "largest", "circle"),
            _marks(stretches, [each.median for each in stretches], scale, "median", "circle-open"),
        ],
        "layout": {
            "xaxis": {"range": [-0.02 * end - 0.5, end + 0.5], "tickformat": "d"},
            "yaxis": scale.axis,
            "margin": {"b": 52},
            "annotations": _titles(),
        },
    }


def name_positions(stretch: GapsOfStretch) -> str:
    """Return "12", or "10 to 14" of a stretch of several positions."""
    return str(stretch.first) if stretch.first == stretch.last else f"{stretch.first} to {stretch.last}"


def _stems(stretches: Sequence[GapsOfStretch], scale: LogScale) -> dict[str, Any]:
    x: list[float | None] = []
    y: list[float | None] = []
    for each in stretches:
        x += [_middle(each), _middle(each), None]
        y += [scale.y(0.0), scale.y(each.highest), None]
    meta = {"role": "stems", "ink": "shift"}
    return {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "meta": meta, "x": x, "y": y}


def _marks(
    stretches: Sequence[GapsOfStretch], values: Sequence[float], scale: LogScale, name: str, symbol: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "meta": {"role": "points", "ink": "shift", "symbol": symbol, "size": 6},
        "hoverinfo": "text",
        "x": [_middle(each) for each in stretches],
        "y": [scale.y(value) for value in values],
        "text": [
            f"at {name_positions(each)}<br>{name} of {each.n:,}: {nats(value)} nats"
            for each, value in zip(stretches, values, strict=True)
        ],
    }


def _middle(stretch: GapsOfStretch) -> float:
    return (stretch.first + stretch.last) / 2


def _titles() -> list[dict[str, Any]]:
    at = {"xref": "paper", "yref": "paper", "x": 0, "xanchor": "left", "y": 1.0, "yanchor": "bottom", "name": "title"}
    end = {"xref": "paper", "yref": "paper", "x": 1, "xanchor": "right", "y": 0, "yanchor": "top", "yshift": -18}
    title = {"text": "|log r|, nats, log scale", "narrow": "|log r|, nats"}
    return [at | title, end | {"text": "position", "name": "axis"}]
