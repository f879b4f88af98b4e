"""Chart of an endpoint's answers by day, stacked by who answered, and changes in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from django.urls import reverse

from evalboard.contract.baseline import RotationSeen
from evalboard.contract.endpoint import BackendSeen, HourServed
from evalboard.wording.numbers import counted
from frontend.endpoints.words import SAID
from frontend.shell.charts.axes import Scale, Upright
from frontend.shell.charts.marks import split
from frontend.shell.findings import Headline
from frontend.templatetags.numbers import share
from runs.fingerprints import Arrival, DailyShares, Stack

HEIGHT, LABEL_HEIGHT, TICK_HEIGHT = 72.0, 16.0, 18.0
TONES = (0, 1, 5, 3, 4, 2)  # of the stylesheet, in an order in which neighbours differ
STACKS_SHOWN = len(TONES)  # the others are one
MARKS_SHOWN = 4
N_HOURS = 7 * 24
WIDEST_COLUMN = 4.0  # percent; two days do not fill the plot
MIN_PIXELS = 3.0  # of a stack with any answer on a day
LABELS = 6


@dataclass(frozen=True, slots=True)
class DayPiece:
    """One stack's part of a day's column. y, height: pixels from the top."""

    tone: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """One day. x: percent of the plot. label: the day's shares in words."""

    x: float
    pieces: tuple[DayPiece, ...]
    label: str


@dataclass(frozen=True, slots=True)
class ArrivalMark:
    """The arrival of a stack. x: percent; y: pixels, of its label's line; anchor: of the label."""

    x: float
    y: float
    label: str
    anchor: str


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One stack: its tone and name, and the fingerprint's id where it is one."""

    tone: int
    name: str
    label: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class ArrivalLine:
    """A stack that came, in words. link: (words, address) of the run or probe that saw it first."""

    at: datetime
    words: str
    link: tuple[str, str]


@dataclass(frozen=True, slots=True)
class SharesChart:
    """All of it. top, base, height: pixels; rows: each day with its numbers, newest first, for the table."""

    finding: Headline
    key: tuple[KeyRow, ...]
    columns: tuple[Column, ...]
    width: float
    top: float
    base: float
    height: float
    marks: tuple[ArrivalMark, ...]
    ticks: tuple[tuple[float, str, str], ...]
    rows: tuple[tuple[date, tuple[int, ...]], ...]
    arrivals: tuple[ArrivalLine, ...]


def draw_shares(daily: DailyShares, turns: Sequence[RotationSeen]) -> SharesChart | None:
    """Draw an endpoint's answers by day, with rotations (`turns`); None without answers."""
    if not daily.days:
        return None
    daily = _folded(daily)
    first, last = daily.days[0][0], daily.days[-1][0]
    n_days = (last - first).days + 1
    pitch = min(100 / n_days, WIDEST_COLUMN)
    names = {place: stack_name(stack) for place, stack in enumerate(daily.stacks)}
    marks = _marks(daily, turns, first, pitch)
    top = LABEL_HEIGHT * len(marks) + 2
    return SharesChart(
        finding=_describe(daily),
        key=tuple(
            KeyRow(TONES[place], names[place], stack.fingerprint.more, stack.fingerprint.id)
            if stack.fingerprint
            else KeyRow(TONES[place], names[place], "", "")
            for place, stack in enumerate(daily.stacks)
        ),
        columns=tuple(
            Column(round((day - first).days * pitch, 3), _pieces(counts, top + HEIGHT), _day_words(day, counts, names))
            for day, counts in daily.days
        ),
        width=round(pitch * 0.84, 3),
        top=top,
        base=top + HEIGHT,
        height=top + HEIGHT + TICK_HEIGHT,
        marks=marks,
        ticks=_ticks(first, n_days, pitch),
        rows=daily.days[::-1],
        arrivals=tuple(map(_line, _unrotated(daily, turns))),
    )


@dataclass(frozen=True, slots=True)
class HoursChart:
    """The shares of each hour. rows: the same numbers, the newest hour first, for the table."""

    key: tuple[KeyRow, ...]
    columns: tuple[Column, ...]
    ticks: tuple[tuple[float, datetime], ...]
    rows: tuple[tuple[HourServed, tuple[int, ...]], ...]
    width: float
    height: float = HEIGHT


def draw_hours(hours: Sequence[HourServed]) -> HoursChart | None:
    """Draw who served which share of each hour's calls, over seven days up to the last; None without any."""
    if not hours:
        return None
    order = list(dict.fromkeys(_title(seen) for hour in hours for seen in hour.backends))
    n_others = len(order) - STACKS_SHOWN + 1
    shown = order if n_others <= 1 else [*order[: STACKS_SHOWN - 1], f"{n_others} others"]
    places = {name: min(place, len(shown) - 1) for place, name in enumerate(order)}
    begin = hours[-1].at - timedelta(hours=N_HOURS - 1)
    scale = Scale(0, N_HOURS)
    columns, rows = [], []
    for hour in hours:
        counts = [0] * len(shown)
        for seen in hour.backends:
            counts[places[_title(seen)]] += seen.n_responses
        words = ", ".join(f"{shown[place]} {share(n / hour.n_responses)}" for place, n in enumerate(counts) if n)
        label = f"{hour.at:%Y-%m-%d %H:%M} UTC: {words} of {counted(hour.n_responses, 'answer')}"
        columns.append(Column(scale.within((hour.at - begin) / timedelta(hours=1)), _pieces(counts, HEIGHT), label))
        rows.append((hour, tuple(counts)))
    key = tuple(KeyRow(TONES[place], name, "", "") for place, name in enumerate(shown))
    days = tuple((scale.x(24 * day), begin + timedelta(days=day)) for day in (0, 2, 4))
    return HoursChart(key, tuple(columns), days, tuple(reversed(rows)), round(scale.x(1) * 0.84, 3))


def _title(seen: BackendSeen) -> str:
    return seen.fingerprint.title if seen.fingerprint else "not named"


def _folded(daily: DailyShares) -> DailyShares:
    """Merge the smallest stacks if there are too many to distinguish."""
    n_stacks = len(daily.stacks)
    if n_stacks <= STACKS_SHOWN:
        return daily
    totals = [sum(column) for column in zip(*(counts for _, counts in daily.days), strict=True)]
    shown_places = sorted(sorted(range(n_stacks), key=lambda place: -totals[place])[: STACKS_SHOWN - 1])
    days = tuple(
        (day, (*(counts[place] for place in shown_places), sum(counts) - sum(counts[place] for place in shown_places)))
        for day, counts in daily.days
    )
    others = Stack(f"{n_stacks - len(shown_places)} others", None)
    return replace(daily, stacks=(*(daily.stacks[place] for place in shown_places), others), days=days)


def stack_name(stack: Stack) -> str:
    """Return how a stack is called: "backend A", what answers call it, or that nothing names it."""
    if stack.fingerprint is not None:
        return stack.fingerprint.title
    return stack.name or "not named"


def _unrotated(daily: DailyShares, turns: Sequence[RotationSeen]) -> list[Arrival]:
    """Return stacks that arrived without a rotation: next to others, or before probes recorded any."""
    dated = {turn.probe for turn in turns if turn.probe}
    return [
        each for each in daily.arrivals if each.is_beside or (each.probe is not None and str(each.probe) not in dated)
    ]


def _pieces(counts: Sequence[int], base: float) -> tuple[DayPiece, ...]:
    """Stack a day's parts from `base` up, first seen lowest; every part is tall enough to see."""
    column = Upright(100.0, base - HEIGHT, base)
    parts = split(counts, least=100 * MIN_PIXELS / HEIGHT)
    return tuple(
        DayPiece(TONES[place], column.y(part.end), column.height(part.width))
        for place, part in enumerate(parts)
        if part.width
    )


def _day_words(day: date, counts: Sequence[int], names: dict[int, str]) -> str:
    total = sum(counts)
    parts = ", ".join(f"{names[place]} {share(n / total)}" for place, n in enumerate(counts) if n)
    return f"{day:%Y-%m-%d}: {parts} of {counted(total, 'answer')}"


def _marks(daily: DailyShares, turns: Sequence[RotationSeen], first: date, pitch: float) -> tuple[ArrivalMark, ...]:
    came = [(turn.at, f"rotation {_date(turn.at)}") for turn in turns]
    came += [
        (each.at, f"{stack_name(each.stack)} {'joins' if each.is_beside else 'answers'} {_date(each.at)}")
        for each in _unrotated(daily, turns)
    ]
    shown = sorted(each for each in came if each[0].astimezone(UTC).date() >= first)[-MARKS_SHOWN:]
    marks = []
    for row, (at, label) in enumerate(shown):
        x = (at.astimezone(UTC).date() - first).days * pitch
        marks.append(ArrivalMark(round(x, 3), LABEL_HEIGHT * row + 12, label, "end" if x > 50 else "start"))
    return tuple(marks)


def _ticks(first: date, n_days: int, pitch: float) -> tuple[tuple[float, str, str], ...]:
    """Return (x, label, anchor) of a few days, the first among them."""
    step = max(-(-n_days // LABELS), round(10 / pitch), 1)
    days = range(0, n_days, step)
    return tuple(
        (
            round(day * pitch, 3),
            date.fromordinal(first.toordinal() + day).strftime("%m-%d"),
            "end" if day * pitch > 92 else "start",
        )
        for day in days
    )


def _describe(daily: DailyShares) -> Headline:
    n = sum(sum(counts) for _, counts in daily.days)
    sources = [counted(daily.n_runs, "run")] if daily.n_runs else []
    sources += [counted(daily.n_probes, "probe")] if daily.n_probes else []
    rest = SAID.write("column", n=n, sources=" and ".join(sources))
    day, counts = daily.days[-1]
    parts = sorted(
        ((k / sum(counts), daily.stacks[place]) for place, k in enumerate(counts) if k), key=lambda each: -each[0]
    )
    (most, first), *others = parts
    named = ", ".join(f"{stack_name(stack)} {share(part)}" for part, stack in others)
    who = stack_name(first) if first.fingerprint or first.name else "an unnamed server"
    return Headline(
        SAID.write("shared" if others else "every", day=day, who=who, share=share(most), others=named), rest
    )


def _line(arrival: Arrival) -> ArrivalLine:
    code = "joined" if arrival.is_beside else "took_over"
    words = SAID.write(code, name=stack_name(arrival.stack), share=share(arrival.share))
    if arrival.run is not None:
        link = (f"run {arrival.run}", reverse("run", args=[arrival.run]))
    else:
        link = (f"probe {arrival.probe}", reverse("probe", args=[arrival.probe]))
    return ArrivalLine(arrival.at, words, link)


def _date(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%m-%d %H:%M")
