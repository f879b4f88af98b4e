"""A Plotly figure of movement against margin at the flip; `charts.js` adds the theme's colours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.contract.compare import Comparison, FlipPoint
from frontend.compare.causes import MARKS
from frontend.compare.pair_address import pair_url
from frontend.shell.charts import figures
from frontend.shell.charts.axes import LogScale, log_scale_of
from frontend.templatetags.numbers import nats
from runs.compare import case_ids

SYMBOLS = {"numeric": "circle-open", "shift": "square-open", "setup": "x-thin", "reading": "diamond-open"}


@dataclass(frozen=True, slots=True)
class ChartedFlip:
    """A flip of the chart with its case's id; `url` is the pair's page at the flip."""

    point: FlipPoint
    case: str
    url: str


def known_flips(report: Comparison) -> tuple[FlipPoint, ...]:
    """Return the flips whose margin and movement are both known."""
    return tuple(flip for flip in report.flips if flip.margin is not None and flip.movement is not None)


def name_flips(report: Comparison) -> tuple[ChartedFlip, ...]:
    """Read the cases of the flips that are known."""
    known = known_flips(report)
    ids = case_ids(int(report.baseline), {point.case_index for point in known})
    return tuple(
        ChartedFlip(
            point,
            ids[point.case_index],
            pair_url(
                *report.run_ids,
                ids[point.case_index],
                repeats=(point.repeat_baseline, point.repeat_candidate),
                at=point.flip,
                terms=report.terms,
            ),
        )
        for point in known
    )


def figure(report: Comparison, flips: Sequence[ChartedFlip]) -> dict[str, Any] | None:
    """Return `data` and `layout` of movement against margin at the flip; None if both are unknown."""
    if not flips:
        return None
    margins = log_scale_of((flip.point.margin for flip in flips), least=-2, most=0)
    near = report.noise.near if report.noise else None
    moves = log_scale_of([*(flip.point.movement for flip in flips), near], least=-2, most=0)
    causes = sorted({flip.point.cause for flip in flips})
    return {
        "data": [_points(cause, [f for f in flips if f.point.cause == cause], margins, moves) for cause in causes],
        "layout": {
            "xaxis": _upright(margins) | {"title": {"text": "margin at the flip, nats, log scale"}},
            "yaxis": moves.axis,
            "shapes": _zone(near, margins, moves),
            "annotations": _zone_words(near, moves),
        },
    }


def _points(cause: str, flips: list[ChartedFlip], margins: LogScale, moves: LogScale) -> dict[str, Any]:
    mark = MARKS[cause]
    shown = [flip.point for flip in flips]
    texts = [
        f"{figures.escape_hover(flip.case)}, flip {flip.point.flip}<br>{mark.label}<br>"
        f"margin {nats(flip.point.margin)}, movement {nats(flip.point.movement)} nats"
        for flip in flips
    ]
    symbol = SYMBOLS.get(mark.family, "cross-thin")
    return figures.marks(
        [margins.y(point.margin or 0.0) for point in shown],
        [moves.y(point.movement or 0.0) for point in shown],
        texts,
        ink=mark.family,
        symbol=symbol,
        size=8,
    ) | {"customdata": [flip.url for flip in flips], "name": mark.label}


def _upright(scale: LogScale) -> dict[str, Any]:
    axis = scale.axis
    return axis | {"ticktext": [text.removesuffix(" nats") for text in axis["ticktext"]]}


def _zone(near: float | None, margins: LogScale, moves: LogScale) -> list[dict[str, Any]]:
    if not near:
        return []
    left, bottom = margins.axis["range"][0], moves.axis["range"][0]
    return [figures.zone((left, max(margins.y(near), left)), (bottom, moves.y(near)))]


def _zone_words(near: float | None, moves: LogScale) -> list[dict[str, Any]]:
    words = [figures.UP | {"x": 1, "xanchor": "right", "y": 1, "text": "up: movement of the two tokens, nats"}]
    if near:
        place = {"xref": "paper", "x": 0.08, "xanchor": "left", "yref": "y", "y": moves.y(near), "yanchor": "top"}
        words.append(place | {"text": f"within noise, {nats(near)}", "name": "flip"})
    return words
