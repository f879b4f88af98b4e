"""An endpoint's fingerprints on one stretch of time: x in percent, colours left to the stylesheet."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from evalboard.contract.baseline import RotationSeen
from evalboard.wording.numbers import counted
from runs.fingerprints import EndpointTimeline, ServedFingerprint

PAD = 3.0  # percent kept free at both ends, so that the marks there are whole
MIN_WIDTH = 1.5
DAYS_WITHOUT_CLOCK = timedelta(days=4)


@dataclass(frozen=True, slots=True)
class FingerprintLane:
    """One fingerprint: a bar from its first to its last run, and where it took over from another."""

    served: ServedFingerprint
    x: float
    width: float
    turns: tuple[float, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of one endpoint, newest first, and the dates at both ends."""

    rows: tuple[FingerprintLane, ...]
    begin: str
    end: str


Stretch = tuple[datetime, datetime]


def stretch_of(lines: Sequence[EndpointTimeline]) -> Stretch:
    """Return the time from the first to the last response of all endpoints: a common scale."""
    served = [each for line in lines for each in line.fingerprints]
    return min(each.first_at for each in served), max(each.last_at for each in served)


def lanes(line: EndpointTimeline, stretch: Stretch | None = None) -> Lanes:
    """Draw an endpoint's fingerprints on a stretch of time, on its own where none is given."""
    low, high = stretch or stretch_of([line])
    rows = tuple(
        _lane(served, [turn for turn in line.turns if turn.after == served.fingerprint], low, high)
        for served in line.fingerprints
    )
    pattern = "%m-%d" if high - low > DAYS_WITHOUT_CLOCK else "%m-%d %H:%M"
    return Lanes(rows, _date(low, pattern), _date(high, pattern))


def _lane(served: ServedFingerprint, turns: list[RotationSeen], low: datetime, high: datetime) -> FingerprintLane:
    begin, end = _x(served.first_at, low, high), _x(served.last_at, low, high)
    width = max(end - begin, MIN_WIDTH)
    took_over = f", took over {counted(len(turns), 'time')}" if turns else ""
    return FingerprintLane(
        served=served,
        x=round(min(begin, 100 - PAD - width), 3),
        width=round(width, 3),
        turns=tuple(round(_x(turn.at, low, high), 3) for turn in turns),
        label=f"From {_date(served.first_at)} to {_date(served.last_at)} UTC{took_over}",
    )


def _x(at: datetime, low: datetime, high: datetime) -> float:
    share = (at - low) / (high - low) if high > low else 0.0
    return PAD + (100 - 2 * PAD) * min(max(share, 0.0), 1.0)


def _date(at: datetime, pattern: str = "%Y-%m-%d %H:%M") -> str:
    return at.astimezone(UTC).strftime(pattern)
