"""The compare page's charts as numbers: x in percent, y in pixels, colours by the stylesheet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from evalboard.contract.compare import (
    Comparison,
    LedgerLine,
    LedgerPart,
    NoiseShare,
    PositionHistogram,
)
from evalboard.core.stats import CASE_OUTCOMES
from evalboard.wording.noise_share import write_noise_limit
from evalboard.wording.numbers import percent
from frontend.compare.causes import MARKS, PART_MARKS, CauseMark
from frontend.shell.charts.axes import Bar, CountBar, Scale, Tick, counts_upright, step_for
from frontend.shell.charts.marks import split

Line = TypeVar("Line", bound=LedgerPart)
ListUrl = Callable[[Mapping[str, str]], str]  # the list of cases that pass filters, "" for none

MIN_SHOWN = 0.6  # percent; a part that holds anything can be seen
GAP = 0.25  # percent between parts
PAD = 3.0  # percent on either side of the waterfall
HISTOGRAM_HEIGHT, HISTOGRAM_TOP, HISTOGRAM_FOOT = 190, 14, 36


@dataclass(frozen=True, slots=True)
class CountPart:
    """One part of the bar of all cases. key: its look; url: its list of cases, or ""."""

    key: str
    label: str
    n: int
    bar: Bar
    url: str


def label_parts(report: Comparison) -> dict[str, str]:
    """Return the label of each part of the cases, in the order of their bar."""
    every = "" if report.counts.n_pairs == report.counts.n_cases_paired else " in every repeat"
    labels = {
        "broken": "broken",
        "fixed": "fixed",
        "changed": "score changed" if report.mixed_sides else "score changed less",
        "unstable": "unstable",
        "other_text": "other text",
        "same_text": f"same text{every}",
        "unscored": "not scored",
        "missing": "not answered",
    }
    judged = CASE_OUTCOMES if report.outcomes is not None else ()
    return {part: label for part, label in labels.items() if part in judged or getattr(report.parts, part)}


def count_parts(report: Comparison, list_url: ListUrl) -> tuple[CountPart, ...]:
    """Return all cases in parts, without empty parts; their numbers add up to all."""
    named = [(part, label, n) for part, label in label_parts(report).items() if (n := getattr(report.parts, part))]
    bars = split([n for *_, n in named], least=MIN_SHOWN, gap=GAP)
    return tuple(
        CountPart(part.replace("_", "-"), label, n, bar, _cases_url(report, list_url, part))
        for (part, label, n), bar in zip(named, bars, strict=True)
    )


@dataclass(frozen=True, slots=True)
class LedgerBar:
    """One line of the waterfall: a bar from where the line above ended, and where it ends itself.

    parts: bars of the line's parts, the first from where the line itself begins. url: the list of the cases that it
    counts, "" where there is none. noise: how far noise alone moves the score by these cases, "" where not known.
    """

    mark: CauseMark
    line: LedgerPart
    bar: Bar
    end: float
    parts: tuple["LedgerBar", ...] = ()
    url: str = ""
    noise: str = ""


@dataclass(frozen=True, slots=True)
class NoiseBar:
    """The range that noise explains, `level` of the time."""

    level: str
    shown: str
    bar: Bar


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The bars of causes. zero: the baseline's score; total: the whole difference.

    total_url: the list of all cases whose score changed; noise: None if not known.
    """

    bars: tuple[LedgerBar, ...]
    zero: float
    total: Bar
    total_url: str
    noise: NoiseBar | None


def waterfall(report: Comparison, list_url: ListUrl) -> Waterfall | None:
    """Return bars in order of size, each from the sum of those before; None without a difference."""
    if not report.ledger or report.score.difference is None:
        return None
    share = report.noise_share
    noise = (share and share.up_to) or 0.0
    lines = _largest_first(report.ledger)
    starts = _sums(0.0, lines)
    reached = [
        sum_
        for start, line in zip(starts, lines, strict=False)
        for sum_ in _sums(start, _largest_first(line.parts or ()))
    ]
    ends = [*starts, *reached, report.score.difference, -noise, noise]
    low = min(ends)
    scale = Scale(low, max(*ends, low + 1e-9), PAD, 100 - 2 * PAD)

    def bar(line: LedgerPart, start: float, parts: tuple[LedgerBar, ...] = (), url: str = "") -> LedgerBar:
        end = start + line.points
        drawn = scale.bar(min(start, end), max(start, end))
        return LedgerBar(PART_MARKS[line.cause], line, drawn, scale.x(end), parts, url, _either_way(line.noise))

    def parts(line: LedgerLine, start: float) -> tuple[LedgerBar, ...]:
        ordered = _largest_first(line.parts or ())
        return tuple(bar(part, at) for part, at in zip(ordered, _sums(start, ordered), strict=False))

    bars = tuple(
        bar(line, start, parts(line, start), _cause_url(report, list_url, line.cause))
        for line, start in zip(lines, starts, strict=False)
    )
    return Waterfall(
        bars=bars,
        zero=scale.x(0.0),
        total=scale.bar(min(0.0, report.score.difference), max(0.0, report.score.difference)),
        total_url=_cases_url(report, list_url, "score_changed"),
        noise=_noise_bar(share, scale.bar(-noise, noise)),
    )


def _cause_url(report: Comparison, list_url: ListUrl, cause: str) -> str:
    """Return the list of a line's cases; "" if another scorer changed pairs of other causes."""
    if report.sides.baseline.scorer != report.sides.candidate.scorer:
        return ""
    return list_url({"cause": cause, "changed": "yes"})


def _cases_url(report: Comparison, list_url: ListUrl, outcome: str) -> str:
    """Return a list of cases; "" if several buckets answered a side, so that no case is judged."""
    if report.outcomes is None:
        return ""
    return list_url({"outcome": outcome})


def _noise_bar(share: NoiseShare | None, bar: Bar) -> NoiseBar | None:
    if share is None or share.up_to is None:
        return None
    return NoiseBar(percent(share.level), _either_way(share.up_to), bar)


def _either_way(up_to: float | None) -> str:
    return f"± {write_noise_limit(up_to)}" if up_to else ""


def _largest_first(lines: Sequence[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: -abs(line.points))


def _sums(start: float, lines: Sequence[LedgerPart]) -> list[float]:
    """Return where each line begins, and where the last one ends."""
    return list(accumulate((line.points for line in lines), initial=start))


@dataclass(frozen=True, slots=True)
class HistogramBar(CountBar):
    mark: CauseMark


@dataclass(frozen=True, slots=True)
class HistogramChart:
    """Stacked bars; `rows` are the same numbers: first position, last position, and (cause, n) pairs."""

    bars: tuple[HistogramBar, ...]
    ticks: tuple[Tick, ...]
    levels: list[tuple[float, str]]
    marks: tuple[CauseMark, ...]
    rows: tuple[tuple[int, int, tuple[int, ...]], ...]
    axis_y: float
    height: float
    label: str


def histogram(positions: PositionHistogram | None, what: str) -> HistogramChart | None:
    """Return a histogram with actionable causes at the bottom; None without positions."""
    if positions is None or not positions.n:
        return None
    series = sorted(positions.series, key=lambda line: (MARKS[line.cause].is_open, -sum(line.counts)))
    tallest = max(sum(line.counts[place] for line in series) for place in range(len(positions.starts)))
    axis_y = HISTOGRAM_HEIGHT - HISTOGRAM_FOOT
    axis, levels = counts_upright(tallest, HISTOGRAM_TOP, axis_y)
    pitch = 100 / len(positions.starts)
    bars = []
    for place, start in enumerate(positions.starts):
        below = 0
        for line in series:
            n = line.counts[place]
            if not n:
                continue
            where = f"position {start}" if positions.width == 1 else f"positions {start}–{start + positions.width - 1}"
            words = f"{where}: {n:,} {MARKS[line.cause].label}"
            bars.append(
                HistogramBar(
                    round(place * pitch + 0.08 * pitch, 3),
                    axis.y(below + n),
                    round(0.84 * pitch, 3),
                    axis.height(n),
                    words,
                    MARKS[line.cause],
                )
            )
            below += n
    counts = tuple(
        (start, start + positions.width - 1, tuple(line.counts[place] for line in series))
        for place, start in enumerate(positions.starts)
    )
    return HistogramChart(
        bars=tuple(bars),
        ticks=_ticks(positions, pitch),
        levels=levels,
        marks=tuple(MARKS[line.cause] for line in series),
        rows=counts,
        axis_y=axis_y,
        height=HISTOGRAM_HEIGHT,
        label=f"{positions.n:,} by {what} position, {positions.n_at_start:,} at position 0",
    )


def _ticks(positions: PositionHistogram, pitch: float) -> tuple[Tick, ...]:
    every = int(step_for(len(positions.starts), 5, least=1))
    places = range(0, len(positions.starts), every)
    middle = pitch / 2 if positions.width == 1 else 0.0
    return tuple(Tick(round(place * pitch + middle, 3), str(positions.starts[place])) for place in places)
