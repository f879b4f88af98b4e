"""A suite's history as a Plotly figure, without colours: `charts.js` adds those of the theme.

Each run is a bar from its lowest to its highest repeat with one mark a repeat; buckets differ in
shape and ink; nothing joins two runs, so nothing seems to lead across a rotation.
"""

import itertools
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from frontend.charts import N_SHAPES
from runs.selectors.suite import BucketHistory, HistoryPoint, SuiteReport

SYMBOLS = ("circle", "circle-open", "x-thin", "square", "diamond-open", "triangle-up")
LEAST_PAD = timedelta(minutes=20)


@dataclass(frozen=True, slots=True)
class Rotation:
    """On one (endpoint, profile), a fingerprint other than the previous run's."""

    at: datetime
    endpoint: str
    profile: str
    before: str
    after: str
    run_id: int


def rotations(buckets: tuple[BucketHistory, ...]) -> tuple[Rotation, ...]:
    by_place: dict[tuple[str, str], list[tuple[HistoryPoint, str]]] = {}
    for bucket in buckets:
        for point in bucket.points:
            by_place.setdefault((point.endpoint, point.profile), []).append((point, bucket.fingerprint_digest))
    found = []
    for (endpoint, profile), rows in by_place.items():
        rows.sort(key=lambda row: (row[0].at, row[0].run_id))
        for (_, before), (point, after) in itertools.pairwise(rows):
            if before != after:
                found.append(Rotation(point.at, endpoint, profile, before, after, point.run_id))
    return tuple(sorted(found, key=lambda rotation: rotation.at))


def figure(report: SuiteReport) -> dict[str, Any] | None:
    """`data` and `layout` for Plotly, plain JSON; None where no run has points."""
    drawn = [(point, shape) for shape, bucket in enumerate(report.buckets) for point in bucket.points if point.points]
    if not drawn:
        return None
    traces = []
    for shape, bucket in enumerate(report.buckets):
        traces += _bucket_traces(bucket, shape % N_SHAPES)
    times = [point.at for point, _ in drawn]
    values = [value for point, _ in drawn for value in point.points]
    pad = max((max(times) - min(times)) * 0.06, LEAST_PAD)
    room = max((max(values) - min(values)) * 0.2, report.points_per_case, 1.0)
    turns = rotations(report.buckets)
    return {
        "data": traces,
        "layout": {
            "xaxis": {
                "type": "date",
                "range": [_date(min(times) - pad), _date(max(times) + pad)],
                "tickformat": "%m-%d" if max(times) - min(times) > timedelta(days=4) else "%m-%d %H:%M",
            },
            "yaxis": {"range": [max(min(values) - room, -2), min(max(values) + room, 102)]},
            "shapes": [_rotation_line(turn) for turn in turns],
            "annotations": [_rotation_words(turn) for turn in turns] + _last_runs(report.buckets),
        },
    }


def _bucket_traces(bucket: BucketHistory, shape: int) -> list[dict[str, Any]]:
    bars: dict[str, list[Any]] = {"x": [], "y": []}
    marks: dict[str, list[Any]] = {"x": [], "y": [], "text": []}
    for point in bucket.points:
        if not point.points:
            continue
        at = _date(point.at)
        bars["x"] += [at, at, None]
        bars["y"] += [min(point.points), max(point.points), None]
        for repeat, value in enumerate(point.points, start=1):
            marks["x"].append(at)
            marks["y"].append(value)
            marks["text"].append(f"run {point.run_id}, repeat {repeat}: {value:.1f} points")
    meta = {"tone": shape, "symbol": SYMBOLS[shape]}
    return [
        {"type": "scatter", "mode": "lines", "meta": meta | {"role": "bar"}, "hoverinfo": "skip", **bars},
        {"type": "scatter", "mode": "markers", "meta": meta | {"role": "marks"}, "hoverinfo": "text", **marks},
    ]


def _rotation_line(turn: Rotation) -> dict[str, Any]:
    at = _date(turn.at)
    return {"type": "line", "xref": "x", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1, "name": "rotation"}


def _rotation_words(turn: Rotation) -> dict[str, Any]:
    words = f"⇄ rotation, {turn.before[:4]} → {turn.after[:4]}"
    return {"x": _date(turn.at), "y": 1, "yref": "paper", "yanchor": "bottom", "text": words, "name": "rotation"}


def _last_runs(buckets: tuple[BucketHistory, ...]) -> list[dict[str, Any]]:
    """The newest run of each bucket is named in the plot."""
    named = []
    for bucket in buckets:
        drawn = [point for point in bucket.points if point.points]
        if drawn:
            last = max(drawn, key=lambda point: (point.at, point.run_id))
            place = {"x": _date(last.at), "y": min(last.points), "yanchor": "top", "yshift": -6}
            named.append(place | {"text": f"run {last.run_id}", "name": "run"})
    return named


def _date(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")
