"""A suite's history as a Plotly figure, without colours: `charts.js` adds those of the theme.

Each run is a bar from its lowest to its highest repeat with one mark a repeat; buckets differ in shape and ink. A
baseline is a band of its noise floor, hatched once it has expired. Nothing joins two runs, so nothing seems to lead
across a rotation.
"""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from evalboard.contract.baseline import RotationSeen
from evalboard.contract.suite import BucketHistory, HistoryRow
from evalboard.wording.numbers import spread
from frontend.shell.charts import figures
from frontend.shell.charts.axes import Stretch, step_for
from frontend.shell.charts.figures import escape_hover, utc
from frontend.shell.charts.marks import N_SHAPES
from frontend.suites.baselines import BaselinePeriod, bands, choose_shapes, rotations
from frontend.templatetags.numbers import points
from runs.suites import SuiteReport, SuiteStanding

SYMBOLS = ("circle", "circle-open", "x-thin", "square", "diamond-open", "triangle-up")
MIN_PAD = timedelta(minutes=20)
PAD, PAD_LEFT = 0.04, 0.09  # of the time that the runs span; on the left stand the numbers of the axis
# The width of a letter beside the plot's, on a desk and on a telephone: labels that would touch are shortened.
LETTER, LETTER_NARROW = 0.0053, 0.0185
BAND_WORDS = 0.34  # what a baseline's name takes of the plot at the most
MAX_TICKS = 7
TICK_ROOM = 0.07  # of the axis: the number is above its line, even at the top
CLEAR = 0.012  # of the axis: what a rotation keeps clear of the run that it brought
PLOT_HEIGHT = 256  # pixels between the ends of the axis
BEYOND_WIDTH = 0.2  # of the plot: as much as the name of a run at its edge takes
NAME_WIDTH, NAME_HEIGHT = 0.06, 14 / PLOT_HEIGHT  # what a run's name takes of the plot


def figure(
    report: SuiteReport, standing: SuiteStanding | None = None, *, only: BucketHistory | None = None
) -> dict[str, Any] | None:
    """Return `data` and `layout` for Plotly, plain JSON; None where no run has points.

    only: the one bucket that is drawn, with the baselines that its runs are held against.
    """
    buckets = report.buckets if only is None else (only,)
    drawn = [point for bucket in buckets for point in bucket.runs if point.points]
    if not drawn:
        return None
    standing = standing or SuiteStanding()
    stretch = _stretch([point.date for point in drawn])
    turns = rotations(report.buckets, standing)
    places = {turn: _turn_at(turn, drawn, stretch) for turn in turns}
    zones = bands(report.buckets, standing)
    shapes = choose_shapes(report.buckets, standing)
    data = [part(band, places, stretch) for part in (_zone, _mean_line) for band in zones]
    for bucket in buckets:
        data += _bucket_traces(bucket, shapes[bucket.bucket_id] % N_SHAPES)
    usual = [value for point in _current(buckets, standing) for value in point.points]
    usual += [end for band in zones if not band.is_expired for end in (band.low, band.high)]
    axis = _upright(usual, least=report.suite.points_per_case)
    return {
        "data": data,
        "layout": {
            "margin": {"t": 34},
            "xaxis": {
                "type": "date",
                "range": [utc(stretch.low), utc(stretch.high)],
                "tickformat": stretch.pattern,
            },
            "yaxis": axis,
            "shapes": [figures.across(utc(at), "rotation") for at in places.values()],
            "annotations": _turn_words(places, stretch)
            + [_band_words(band, zones, drawn, places, stretch) for band in zones]
            + _named_runs(buckets, zones, stretch, axis["range"])
            + _beyond(drawn, stretch, axis["range"]),
        },
    }


def _current(buckets: Sequence[BucketHistory], standing: SuiteStanding) -> list[HistoryRow]:
    """Return the runs that set the range of the points, by bucket, without expired baselines.

    All runs if that leaves none.
    """
    expired = {row.bucket_id for row in standing.baselines if row.is_expired}
    holding = {row.bucket_id for row in standing.baselines if row.is_current and not row.is_expired}
    drawn = [(bucket.bucket_id, point) for bucket in buckets for point in bucket.runs if point.points]
    set_aside = expired - holding
    current = [point for bucket_id, point in drawn if bucket_id not in set_aside and point.n_buckets == 1]
    return current or [point for _, point in drawn]


def _beyond(drawn: Sequence[HistoryRow], stretch: Stretch, ends: Sequence[float]) -> list[dict[str, Any]]:
    """Return labels at the edge for runs with repeats outside the plot, newest first.

    One whose name would touch another's is counted with that one.
    """
    newest_first = sorted(drawn, key=lambda point: (point.date, point.run_id), reverse=True)
    low = [(point, min(point.points)) for point in newest_first if min(point.points) < ends[0]]
    high = [(point, max(point.points)) for point in newest_first if max(point.points) > ends[1]]
    named: list[dict[str, Any]] = []
    for outside, y, edge, arrow in ((low, ends[0], "bottom", "↓"), (high, ends[1], "top", "↑")):
        named += _names_at_edge(outside, stretch, {"y": y, "yanchor": edge, "name": "beyond"}, arrow)
    return named


def _names_at_edge(
    outside: Sequence[tuple[HistoryRow, float]], stretch: Stretch, place: dict[str, Any], arrow: str
) -> list[dict[str, Any]]:
    groups: list[list[tuple[HistoryRow, float]]] = []
    for point, value in outside:
        x = stretch.share(point.date)
        beside = next((group for group in groups if abs(stretch.share(group[0][0].date) - x) < BEYOND_WIDTH), None)
        if beside is None:
            groups.append([(point, value)])
        else:
            beside.append((point, value))
    named = []
    for group in groups:
        point, value = group[0]
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        is_right = stretch.share(point.date) > 0.8
        own = {"x": utc(point.date), "xanchor": "right" if is_right else "left", "xshift": -4 if is_right else 4}
        named.append(place | own | {"text": f"run {point.run_id} {arrow} {points(value)}{more}"})
    return named


def _upright(values: Sequence[float], *, least: float) -> dict[str, Any]:
    """Return the axis of points, with room for the number of its topmost line."""
    room = max((max(values) - min(values)) * 0.2, least, 1.0)
    low, high = max(min(values) - room, -2.0), min(max(values) + room, 102.0)
    step = step_for(high - low, MAX_TICKS, least=0.2)
    topmost = math.floor(high / step) * step
    high = max(high, topmost + TICK_ROOM * (high - low))
    return {"range": [low, high], "tick0": 0, "dtick": step, "ticksuffix": " points", "showticksuffix": "last"}


def _stretch(times: Sequence[datetime]) -> Stretch:
    whole = max(times) - min(times)
    pad = max(whole * PAD, MIN_PAD)
    return Stretch(min(times) - max(whole * PAD_LEFT, MIN_PAD), max(times) + pad)


def _bucket_traces(bucket: BucketHistory, shape: int) -> list[dict[str, Any]]:
    runs = [point for point in bucket.runs if point.points]
    repeats = [(point, *each) for point in runs for each in enumerate(point.points, start=1)]
    name = escape_hover(f"{bucket.model} on {bucket.stack.title}")
    legend = escape_hover(f"{bucket.model} · {bucket.stack.title} · {bucket.batch_class}")  # as the page's key
    texts = [
        f"run {point.run_id}, repeat {n}: {points(value)} points<br>{name}{_mixed(point)}"
        for point, n, value in repeats
    ]
    low, high = ([end(point.points) for point in runs] for end in (min, max))
    meta = {"tone": shape, "symbol": SYMBOLS[shape]}
    marks = figures.marks(
        [utc(each[0].date) for each in repeats], [each[2] for each in repeats], texts, role="marks", **meta
    )
    return [
        figures.stems([utc(point.date) for point in runs], low, high, role="bar", **meta),
        marks | {"name": legend, "customdata": [reverse("run", args=[each[0].run_id]) for each in repeats]},
    ]


def _mixed(point: HistoryRow) -> str:
    return f"<br>{point.n_buckets} buckets served this run; only this one's cases" if point.n_buckets > 1 else ""


def _zone(band: BaselinePeriod, places: dict[RotationSeen, datetime], stretch: Stretch) -> dict[str, Any]:
    """Return a baseline's noise floor as a filled trace, since shapes of Plotly cannot be hatched."""
    begin, end = (utc(at) for at in _ends(band, places, stretch))
    role, ink = ("expired", "hatch") if band.is_expired else ("band", "accent-soft")
    x, y = [begin, end, end, begin, begin], [band.low, band.low, band.high, band.high, band.low]
    return figures.lines(x, y, role=role, ink=ink) | {"fill": "toself"}


def _mean_line(band: BaselinePeriod, places: dict[RotationSeen, datetime], stretch: Stretch) -> dict[str, Any]:
    """Return the baseline's score as a trace, since layout lines cannot be between fill and marks."""
    x = [utc(at) for at in _ends(band, places, stretch)]
    role, ink = ("expired-mean", "absent") if band.is_expired else ("mean", "baseline")
    return figures.lines(x, [band.mean] * 2, role=role, ink=ink)


def _ends(band: BaselinePeriod, places: dict[RotationSeen, datetime], stretch: Stretch) -> tuple[datetime, datetime]:
    first = stretch.at(PAD_LEFT * 0.55)
    begin = first if band.begin is None else places.get(band.begin, first)
    return begin, stretch.high if band.end is None else places.get(band.end, stretch.high)


def _band_words(
    band: BaselinePeriod,
    zones: Sequence[BaselinePeriod],
    drawn: Sequence[HistoryRow],
    places: dict[RotationSeen, datetime],
    stretch: Stretch,
) -> dict[str, Any]:
    begin, end = _ends(band, places, stretch)
    whose = f" ({band.baseline.profile})" if len({(z.baseline.line, z.baseline.profile) for z in zones}) > 1 else ""
    score, run = f"{points(band.mean)} {spread(band.noise)}".rstrip(), f"run {band.baseline.run_id}{whose}"
    under = min(end, begin + (stretch.high - stretch.low) * BAND_WORDS)
    # Above the marks that the words pass over, as well as above the band.
    top = max([band.high, *(value for point in drawn if begin <= point.date <= under for value in point.points)])
    return {
        "x": utc(begin),
        "y": top,
        "xanchor": "left",
        "yanchor": "bottom",
        "xshift": 8,
        "yshift": 5,
        "text": f"expired baseline {score}" if band.is_expired else f"baseline {run}, {score}",
        "narrow": f"expired {score}" if band.is_expired else f"baseline {score}",
        "name": "expired" if band.is_expired else "baseline",
    }


def _turn_at(turn: RotationSeen, drawn: Sequence[HistoryRow], stretch: Stretch) -> datetime:
    """Return the position of a rotation's line: just before the run that shows it."""
    own = next((point.date for point in drawn if point.run_id == turn.run_id), None)
    if own is None:
        return turn.at
    earlier = [point.date for point in drawn if point.date < own]
    clear = (stretch.high - stretch.low) * CLEAR
    return own - (min(clear, (own - max(earlier)) / 2) if earlier else clear)


def _turn_words(places: dict[RotationSeen, datetime], stretch: Stretch) -> list[dict[str, Any]]:
    """Return labels above each rotation line, newest first; `narrow` is for small screens."""
    labels = []
    wide, small = 1.0, 1.0
    has_places = len({(turn.endpoint, turn.profile) for turn in places}) > 1
    newest_first = sorted(places.items(), key=lambda place: place[1], reverse=True)
    for place, (turn, at) in enumerate(newest_first, start=1):
        x, day = stretch.share(at), stretch.words(turn.at)
        before = stretch.share(newest_first[place][1]) if place < len(places) else 0.0
        whose = f" of {', '.join(filter(None, (turn.endpoint, turn.profile)))}" if has_places else ""
        fingerprints = f"{turn.before.title} → {turn.after.title}"
        texts = (f"⇄ rotation {day}{whose}, {fingerprints}", f"⇄ rotation {day}, {fingerprints}")
        text, anchor, wide = _fitting(x, before, wide, (*texts, f"⇄ {day}, {turn.after.title}", "⇄"), LETTER)
        narrow, _, small = _fitting(x, before, small, (f"⇄ {day}", "⇄"), LETTER_NARROW)
        above = {"x": utc(at), "y": 1, "yref": "paper", "yanchor": "bottom", "name": "rotation"}
        labels.append(above | {"xanchor": anchor, "text": text, "narrow": narrow, "time": [utc(turn.at), day]})
    return labels


def _fitting(x: float, low: float, limit: float, choices: Sequence[str], letter: float) -> tuple[str, str, float]:
    """Return the first text that fits from `low` to `limit`, its anchor and start; "" if none fits."""
    for words in choices:
        width = letter * (len(words) + 1)
        for anchor, part in (("center", 0.5), ("right", 1.0), ("left", 0.0)):
            begin = x - part * width
            if begin >= low and begin + width <= limit:
                return words, anchor, begin
    return "", "center", limit


def _named_runs(
    buckets: tuple[BucketHistory, ...], zones: Sequence[BaselinePeriod], stretch: Stretch, ends: Sequence[float]
) -> list[dict[str, Any]]:
    """Return labels of the newest run and current baselines, one below the other if they would touch."""
    drawn = [point for bucket in buckets for point in bucket.runs if point.points]
    newest = max(drawn, key=lambda point: (point.date, point.run_id))
    current = {band.baseline.run_id for band in zones if not band.is_expired}
    named: list[dict[str, Any]] = []
    taken: list[tuple[float, float]] = []  # x as a part of the plot, y likewise, of what is named already
    for point in sorted(drawn, key=lambda point: point is not newest):
        y = max(min(point.points), ends[0])
        if not (point is newest or point.run_id in current) or y > ends[1]:
            continue
        text, x, part = f"run {point.run_id}", stretch.share(point.date), (y - ends[0]) / (ends[1] - ends[0])
        if min(point.points) < ends[0]:
            continue  # named at the edge
        while any(abs(x - at) < NAME_WIDTH and abs(part - height) < NAME_HEIGHT for at, height in taken):
            part -= NAME_HEIGHT
        taken.append((x, part))
        shift = round((part - (y - ends[0]) / (ends[1] - ends[0])) * PLOT_HEIGHT)
        place = {"x": utc(point.date), "y": y, "yanchor": "top", "yshift": shift - 6}
        named.append(place | {"text": text, "name": "run", "xanchor": "right" if x > 0.95 else "center"})
    return named
