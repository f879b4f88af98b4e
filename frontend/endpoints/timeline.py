"""An endpoint's fingerprints on one stretch of time as a Plotly figure, without colours.

Each is a bar from its first to its last response. A dashed line is a rotation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.urls import reverse

from evalboard.contract.baseline import RotationSeen
from evalboard.wording.numbers import counted
from frontend.shell.charts import figures
from frontend.shell.charts.axes import Stretch
from frontend.shell.charts.figures import escape_hover, utc
from frontend.templatetags.drawing import shortened
from runs.fingerprints import EndpointTimeline, ServedFingerprint

PAD = 0.03  # of the stretch, kept free at both ends, so that the marks there are whole
MIN_SPAN = timedelta(minutes=20)
NAME_CHARS, NARROW_CHARS = 60, 36
ROOMS = (2, 6, 15, 50)  # lanes that the heights of the stylesheet have room for


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of one endpoint, newest first. room: of ROOMS."""

    rows: tuple[ServedFingerprint, ...]
    id: str
    figure: dict[str, Any]
    room: int


def stretch_of(lines: Sequence[EndpointTimeline]) -> Stretch:
    """Return the time from the first to the last response of all endpoints: a common scale."""
    served = [each for line in lines for each in line.fingerprints]
    return Stretch(min(each.first_at for each in served), max(each.last_at for each in served))


def lanes(line: EndpointTimeline, stretch: Stretch | None = None) -> Lanes:
    """Draw an endpoint's fingerprints on a stretch of time, on its own where none is given."""
    rows = line.fingerprints
    room = next((room for room in ROOMS if len(rows) <= room), ROOMS[-1])
    return Lanes(rows, f"lanes-{line.endpoint}", _figure(line, stretch or stretch_of([line])), room)


def _figure(line: EndpointTimeline, stretch: Stretch) -> dict[str, Any]:
    """Return `data` and `layout` for Plotly, the newest lane at the top."""
    pad = max(stretch.high - stretch.low, MIN_SPAN) * PAD
    bars: tuple[list[str | None], list[float | None]] = ([], [])
    ends: list[tuple[datetime, int, str, str]] = []
    names = []
    for place, served in enumerate(reversed(line.fingerprints)):
        turns = [turn for turn in line.turns if turn.after == served.fingerprint]
        words, url = _words(served, turns), reverse("fingerprint", args=[served.fingerprint.id])
        bars[0].extend([utc(served.first_at), utc(served.last_at), None])
        bars[1].extend([place, place, None])
        ends += [(at, place, words, url) for at in (served.first_at, served.last_at)]
        names.append(_name(served, place))
    marks = figures.marks(
        [utc(at) for at, *_ in ends],
        [place for _, place, *_ in ends],
        [words for _, _, words, _ in ends],
        role="marks",
        tone=0,
        symbol="circle",
    )
    shown = {served.fingerprint.id for served in line.fingerprints}
    turned = dict.fromkeys(turn.at for turn in line.turns if turn.after.id in shown)
    return {
        "data": [
            figures.lines(*bars, role="bar", tone=0, symbol="circle"),
            marks | {"customdata": [url for *_, url in ends]},
        ],
        "layout": {
            "margin": {"t": 4},
            "xaxis": {
                "type": "date",
                "range": [utc(stretch.low - pad), utc(stretch.high + pad)],
                "tickformat": stretch.pattern,
            },
            "yaxis": {
                "range": [-0.6, len(line.fingerprints)],
                "showticklabels": False,
                "showgrid": False,
                "fixedrange": True,
            },
            "shapes": [figures.across(utc(at), "rotation") for at in turned],
            "annotations": names,
        },
    }


def _name(served: ServedFingerprint, place: int) -> dict[str, Any]:
    """Return the name of a lane, above its left end however it is zoomed."""
    text, narrow = (escape_hover(shortened(served.fingerprint.title, n)) for n in (NAME_CHARS, NARROW_CHARS))
    at = {"xref": "paper", "x": 0, "xanchor": "left", "y": place, "yanchor": "bottom", "yshift": 4}
    return at | {"text": text, "narrow": narrow, "name": "lane"}


def _words(served: ServedFingerprint, turns: Sequence[RotationSeen]) -> str:
    took_over = f", took over {counted(len(turns), 'time')}" if turns else ""
    name = escape_hover(shortened(served.fingerprint.title, NAME_CHARS))
    return f"{name}<br>From {_date(served.first_at)} to {_date(served.last_at)} UTC{took_over}"


def _date(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
