"""Margins and gaps of two traces by step: all of them as columns, and as points those that a page shows."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from evalboard.contract import pair as contract
from evalboard.contract.base import finite
from evalboard.core.trace import lowest_of_stretches
from runs.compare.read_pair_records import Half
from runs.compare.read_pair_steps import Numbers, Places, Steps
from runs.run import draw

CHART_POINTS = 400  # of a chart; of more steps, each stretch shows its narrowest margin and its widest gap
NARROW = 0.25  # nats; a margin below is a position of interest


@dataclass(frozen=True, slots=True, eq=False)
class StepNumbers:
    """All n steps that agree, and the flip; none where a trace is missing: past the flip no number is compared.

    lasts: intp[n, 2], the last position of each step on both sides, −1 where there is none. margins: float64[n, 2] in
    nats, there; NaN where not known.
    """

    halves: tuple[Half, Half]
    steps: Steps
    lasts: Places
    margins: Numbers

    @classmethod
    def of(cls, halves: tuple[Half, Half], steps: Steps) -> "StepNumbers":
        n = 0 if any(half.trace is None for half in halves) else len(steps) if steps.parts is None else steps.parts + 1
        lasts = np.column_stack([steps.lasts(side)[:n] for side in (0, 1)])
        margins = np.column_stack([_margins(half, lasts[:, side]) for side, half in enumerate(halves)])
        return cls(halves, steps, lasts, margins)

    def __len__(self) -> int:
        return len(self.lasts)

    @property
    def narrower(self) -> Numbers:
        """The smaller margin of both sides."""
        narrower: Numbers = np.fmin(self.margins[:, 0], self.margins[:, 1])
        return narrower

    @property
    def narrow_keys(self) -> list[int]:
        keys: list[int] = self.steps.keys[: len(self)][self.narrower < NARROW].tolist()
        return keys

    def n_within(self, near: float | None) -> int:
        """Count the steps before the parting whose margin noise explains."""
        n = len(self) if self.steps.parts is None else min(self.steps.parts, len(self))
        return 0 if near is None else int(np.count_nonzero(self.narrower[:n] <= near))

    def gap_range(self, onset: int | None) -> tuple[float, float] | None:
        """Return the smallest and the largest gap above 0 from the onset on; None where there is none."""
        if onset is None:
            return None
        gaps = self.steps.gaps[: len(self)]
        known = gaps[(self.steps.keys[: len(self)] >= onset) & (gaps > 0)]
        return (float(known.min()), float(known.max())) if len(known) else None

    def narrowest(self) -> int | None:
        """Return the step where the baseline's choice was closest."""
        places = lowest_of_stretches(self.margins[:, 0], 1)
        return int(places[0]) if len(places) else None

    def standing_for_all(self) -> list[int]:
        """Return every step, or of a long trace those that a chart shows for all; the parting is one of them."""
        if len(self) <= CHART_POINTS:
            return list(range(len(self)))
        most = CHART_POINTS // 2
        closest, widest = (lowest_of_stretches(each, most) for each in (self.narrower, -self.steps.gaps[: len(self)]))
        return sorted({*closest.tolist(), *widest.tolist(), len(self) - 1})

    def points(self, places: Iterable[int]) -> tuple[contract.MarginPoint, ...]:
        chosen = [place for place in places if place < len(self)]
        lasts, margins = self.lasts[chosen], self.margins[chosen].tolist()
        drawn = [_drawn_tokens(half, lasts[:, side].tolist()) for side, half in enumerate(self.halves)]
        keys, gaps = self.steps.keys[chosen].tolist(), self.steps.gaps[chosen].tolist()
        return tuple(
            contract.MarginPoint(
                at=key,
                tokens=(token, token_too),
                margins=(finite(margin), finite(margin_too)),
                gap=finite(gap),
            )
            for key, token, token_too, (margin, margin_too), gap in zip(keys, *drawn, margins, gaps, strict=True)
        )


def _margins(half: Half, lasts: Places) -> Numbers:
    if half.trace is None:
        return np.empty(0)
    padded = np.append(half.trace.margins().astype(np.float64), np.nan)  # what −1 stands for
    return padded[lasts]


def _drawn_tokens(half: Half, positions: list[int]) -> list[str]:
    """Return drawn tokens, "" where the side has none. Each id is drawn once: a text repeats most of its tokens."""
    if half.trace is None:
        return []
    there = [position for position in positions if position >= 0]
    ids = dict(zip(there, half.trace.token_ids[there].tolist(), strict=True))
    used = sorted(set(ids.values()))
    drawn = dict(zip(used, draw(used, half.words), strict=True))
    return ["" if position < 0 else drawn[ids[position]] for position in positions]
