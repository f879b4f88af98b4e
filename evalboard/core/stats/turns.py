"""Interleave the repeats of two runs, and tell whether they were decoded interleaved.

The order is A B B A A B B A: a steady drift of load or time affects both sides alike, where A B A B would give the
second side the later half of every turn. And an engine that must be restarted for the other side is started once a
turn instead of twice (docs/decisions/0013-interleaving.md).
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime

# The share of its repeats by which a side may be ahead: workers of one pool end in another order than they began.
MAX_LEAD = 0.25


def order_in_turn(counts: Sequence[int]) -> list[tuple[int, int]]:
    """Return (side, nth) of every repeat in interleaved order, nth from 0. counts: repeats per side."""
    sides = range(len(counts))
    return [
        (side, turn)
        for turn in range(max(counts, default=0))
        for side in (reversed(sides) if turn % 2 else sides)
        if turn < counts[side]
    ]


def order_by_end(ends: Mapping[str, Iterable[datetime]]) -> tuple[str, ...]:
    """Return whose repeats ended when, by side; ends: when those of each side did."""
    return tuple(side for _, side in sorted((end, side) for side, times in ends.items() for end in times))


def is_in_turn(order: Sequence[Hashable]) -> bool:
    """Tell whether two sides were interleaved: never ahead by more than one repeat, or a quarter of them."""
    sides = set(order)
    if len(sides) != 2:
        return False
    first = order[0]
    limit = max(1.0, MAX_LEAD * min(order.count(side) for side in sides))
    lead = 0
    for side in order:
        lead += 1 if side == first else -1
        if abs(lead) > limit:
            return False
    return True
