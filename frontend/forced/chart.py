"""|log r| by position as a Plotly figure, without colours: `charts.js` adds those of the theme."""

from collections.abc import Sequence
from typing import Any

from evalboard.contract.forced import GapsOfStretch
from frontend.shell.charts import figures
from frontend.shell.charts.axes import LogScale, log_scale_of
from frontend.templatetags.numbers import nats


def figure(stretches: Sequence[GapsOfStretch]) -> dict[str, Any] | None:
    """Return `data` and `layout`: largest and median |log r| by position; None if no token differs."""
    if not any(each.highest for each in stretches):
        return None
    scale = log_scale_of((value for each in stretches for value in (each.highest, each.median)), least=-3, most=0)
    end = stretches[-1].last
    return {
        "data": [
            figures.stems(
                map(_middle, stretches),
                (scale.y(0.0) for _ in stretches),
                (scale.y(each.highest) for each in stretches),
                ink="shift",
            ),
            _marks(stretches, [each.highest for each in stretches], scale, "largest", "circle"),
            _marks(stretches, [each.median for each in stretches], scale, "median", "circle-open"),
        ],
        "layout": {
            "xaxis": {"range": [-0.02 * end - 0.5, end + 0.5], "tickformat": "d"},
            "yaxis": scale.axis,
            "margin": {"b": 52},
            "annotations": [
                figures.title("|log r|, nats, log scale", "|log r|, nats"),
                figures.name_along("position"),
            ],
        },
    }


def name_positions(stretch: GapsOfStretch) -> str:
    """Return "12", or "10 to 14" of a stretch of several positions."""
    return str(stretch.first) if stretch.first == stretch.last else f"{stretch.first} to {stretch.last}"


def _marks(
    stretches: Sequence[GapsOfStretch], values: Sequence[float], scale: LogScale, name: str, symbol: str
) -> dict[str, Any]:
    texts = (
        f"at {name_positions(each)}<br>{name} of {each.n:,}: {nats(value)} nats"
        for each, value in zip(stretches, values, strict=True)
    )
    heights = [scale.y(value) for value in values]
    return figures.marks([_middle(each) for each in stretches], heights, [*texts], ink="shift", symbol=symbol, size=6)


def _middle(stretch: GapsOfStretch) -> float:
    return (stretch.first + stretch.last) / 2
