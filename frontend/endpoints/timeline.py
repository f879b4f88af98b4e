"""An endpoint's fingerprints on one stretch of time: x in percent, colours left to the stylesheet."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from evalboard.contract.baseline import RotationSeen
from evalboard.wording.numbers import counted
from frontend.shell.charts.axes import Bar, Stretch
from runs.fingerprints import EndpointTimeline, ServedFingerprint

PAD = 3.0  # percent kept free at both ends, so that the marks there are whole
MIN_WIDTH = 1.5


@dataclass(frozen=True, slots=True)
class FingerprintLane:
    """One fingerprint: a bar from its first to its last run, and where it took over from another."""

    served: ServedFingerprint
    bar: Bar
    turns: tuple[float, ...]
    label: str


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of one endpoint, newest first, and the time that they span."""

    rows: tuple[FingerprintLane, ...]
    stretch: Stretch


def stretch_of(lines: Sequence[EndpointTimeline]) -> Stretch:
    """Return the time from the first to the last response of all endpoints: a common scale."""
    served = [each for line in lines for each in line.fingerprints]
    return Stretch(min(each.first_at for each in served), max(each.last_at for each in served))


def lanes(line: EndpointTimeline, stretch: Stretch | None = None) -> Lanes:
    """Draw an endpoint's fingerprints on a stretch of time, on its own where none is given."""
    stretch = stretch or stretch_of([line])
    rows = tuple(
        _lane(served, [turn for turn in line.turns if turn.after == served.fingerprint], stretch)
        for served in line.fingerprints
    )
    return Lanes(rows, stretch)


def _lane(served: ServedFingerprint, turns: list[RotationSeen], stretch: Stretch) -> FingerprintLane:
    scale = stretch.scale(PAD)
    took_over = f", took over {counted(len(turns), 'time')}" if turns else ""
    return FingerprintLane(
        served=served,
        bar=scale.bar(stretch.share(served.first_at), stretch.share(served.last_at), MIN_WIDTH),
        turns=tuple(scale.within(stretch.share(turn.at)) for turn in turns),
        label=f"From {_date(served.first_at)} to {_date(served.last_at)} UTC{took_over}",
    )


def _date(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
