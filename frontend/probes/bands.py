"""Chart of a verification: how far each set of answers is from the reference, in nats (log scale)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from evalboard.contract.probe import ProbeSet
from evalboard.contract.verification import Verification, VerificationBand
from evalboard.wording.numbers import rounded
from frontend.probes.words import SAID
from frontend.shell.charts.axes import Bar, Scale, Tick
from frontend.shell.findings import Headline

LEFT, WIDTH = 2.0, 94.0  # percent: marks at the ends are drawn whole
DECADES = 4  # below the largest; lower values are drawn at the left edge


@dataclass(frozen=True, slots=True)
class BandRow:
    """One set of answers: a mark, and a line for its interval where it has one. In percent of the plot."""

    name: str
    endpoint: str
    is_judged: bool
    x: float
    bar: Bar
    label: str


@dataclass(frozen=True, slots=True)
class BandsChart:
    """The sets of answers, the endpoint's last. boundary_x: where another model begins."""

    rows: tuple[BandRow, ...]
    ticks: tuple[Tick, ...]
    boundary_x: float
    caption: Headline


def bands(judged: Verification, sets: tuple[ProbeSet, ...]) -> BandsChart | None:
    """Return None where the endpoint has no token with the statistic: then there is nothing to see."""
    if judged.endpoint is None:
        return None
    shown = list(_bands(judged))
    highest = max(math.sqrt(band.mean.high or band.mean.value) for _, band in shown)
    if not highest:
        return None
    last = math.ceil(math.log10(highest))
    scale = Scale(last - DECADES, last, LEFT, WIDTH)
    endpoints = {each.role: each.endpoint for each in sets}
    rows = tuple(_row(role, band, endpoints.get(role, ""), scale) for role, band in shown)
    ticks = tuple(Tick(scale.x(power), rounded(10.0**power, 1)) for power in range(last - DECADES, last + 1))
    claim, rest = SAID.write("bands", statistic=judged.statistic), SAID.write("band_lines")
    return BandsChart(rows, ticks, scale.within(_decades(math.sqrt(judged.boundary))), Headline(claim, rest))


def _bands(judged: Verification) -> Iterator[tuple[str, VerificationBand]]:
    named = {"control": judged.control, "numerics": judged.numerics, "planted": judged.planted}
    named["endpoint"] = judged.endpoint
    return ((role, band) for role, band in named.items() if band is not None)


def _row(role: str, band: VerificationBand, endpoint: str, scale: Scale) -> BandRow:
    value, low, high = (
        math.sqrt(band.mean.value if each is None else each)
        for each in (band.mean.value, band.mean.low, band.mean.high)
    )
    between = "" if band.mean.low is None else f", {rounded(low, 2)} to {rounded(high, 2)}"
    return BandRow(
        name=role,
        endpoint=endpoint,
        is_judged=role == "endpoint",
        x=scale.within(_decades(value)),
        bar=scale.bar(_decades(low), _decades(high)),
        label=f"{rounded(value, 2)} nats{between}",
    )


def _decades(nats: float) -> float:
    return math.log10(nats) if nats > 0 else -math.inf
