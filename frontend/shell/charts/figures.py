"""Parts of Plotly figures without colours.

`charts.js` adds those of the theme, by the names in `meta` and `name`.

Times are naive and in UTC; `figures.js` shows them in the reader's zone.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

Numbers = Sequence[float | None]
UP = {"xref": "paper", "yref": "paper", "x": 0, "xanchor": "left", "yanchor": "bottom", "name": "title"}
ALONG = {"xref": "paper", "yref": "paper", "x": 1, "xanchor": "right", "y": 0, "yanchor": "top", "yshift": -18}


def utc(at: datetime) -> str:
    """Write a time as Plotly reads it."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def escape_hover(text: str) -> str:
    """Return text for Plotly's hover words, which read some HTML tags and entities."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def marks(x: Sequence[Any], y: Numbers, text: Sequence[str], **meta: Any) -> dict[str, Any]:
    """Return marks with their tooltips. meta: ink or tone, symbol, size."""
    trace = {"type": "scatter", "mode": "markers", "hoverinfo": "text", "meta": {"role": "points", **meta}}
    return trace | {"x": list(x), "y": list(y), "text": list(text)}


def stems(x: Iterable[Any], low: Iterable[float], high: Iterable[float], **meta: Any) -> dict[str, Any]:
    """Return a vertical line at each x, as one trace."""
    xs: list[Any] = []
    ys: list[float | None] = []
    for at, foot, top in zip(x, low, high, strict=True):
        xs += [at, at, None]
        ys += [foot, top, None]
    return lines(xs, ys, **{"role": "stems", **meta})


def lines(x: Sequence[Any], y: Numbers, **meta: Any) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "meta": meta, "x": list(x), "y": list(y)}


def across(at: Any, name: str) -> dict[str, Any]:
    """Return a vertical line over the whole plot."""
    return {"type": "line", "xref": "x", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1, "name": name}


def zone(x: Sequence[float], y: Sequence[float], name: str = "noise") -> dict[str, Any]:
    """Return a filled rectangle below the marks."""
    place = {"type": "rect", "xref": "x", "yref": "y", "layer": "below", "name": name}
    return place | {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}


def title(text: str, narrow: str, y: float = 1.0) -> dict[str, Any]:
    """Return what an upright axis shows, above its left end."""
    return UP | {"y": y, "text": text, "narrow": narrow}


def name_along(text: str) -> dict[str, Any]:
    """Return what the horizontal axis shows, below its right end."""
    return ALONG | {"text": text, "name": "axis"}
