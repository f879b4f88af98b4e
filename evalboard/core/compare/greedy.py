"""Find chosen tokens below the most likely one: what greedy decoding never does."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from evalboard.core.compare import drift
from evalboard.core.compare.alignment import NEVER, Bools, Starts, find_firsts
from evalboard.core.trace import TraceColumns

NOT_GREEDY = 1e-6  # nats below top-1; logprobs of equal logits may differ by float32 rounding
MAX_READ = 10_000  # answers whose tokens are read, evenly spread over the cases
READ_AT_ONCE = 500
FORBIDDEN = 12.0  # nats below top-1; sampling chooses such a token once in 100,000 times


def find_beaten(side: TraceColumns, *, is_decimal: bool) -> tuple[Starts, Starts]:
    """Return int64[m] twice: each trace's first token below top-1, and the first far below it.

    NEVER if there is none. is_decimal: a log or an external server gave the logprobs. Then a tie is any difference
    below the step of decimals, and a token that is FORBIDDEN nats below is not beaten: something forbade the others.
    """
    below = drift.highest(side.alternative_logprobs) - side.logprobs
    forbidden = np.full(len(side), NEVER)
    if is_decimal:
        forbidden = find_firsts(below > FORBIDDEN, side.starts)
        below = np.where(below > FORBIDDEN, 0.0, below)
    return find_firsts(below > (drift.DECIMAL_STEP if is_decimal else NOT_GREEDY), side.starts), forbidden


def find_not_greedy(side: TraceColumns, *, is_decimal: bool) -> Bools:
    """Return bool[2, m]: traces that list alternatives, and those of them with a token below top-1.

    A trace in which something forbade tokens is not one of these.
    """
    with np.errstate(invalid="ignore"):  # -inf minus -inf
        beaten, forbidden = find_beaten(side, is_decimal=is_decimal)
    is_listed = find_firsts(~np.isnan(drift.highest(side.alternative_logprobs)), side.starts) != NEVER
    return np.array([is_listed, is_listed & (beaten != NEVER) & (forbidden == NEVER)])


def count_not_greedy(
    counts: Mapping[bytes, int], read: Callable[[Sequence[bytes]], TraceColumns | None], *, is_decimal: bool
) -> tuple[int, int]:
    """Return how many answers list alternatives, and how many of them have a token below top-1.

    counts: how many answers have each different trace. read: returns traces by their digests, in order; None if they
    cannot be read.
    """
    n, digests = np.zeros(2, np.int64), list(counts)
    for first in range(0, len(digests), READ_AT_ONCE):
        part = digests[first : first + READ_AT_ONCE]
        columns = read(part)
        if columns is not None:
            n += find_not_greedy(columns, is_decimal=is_decimal) @ [counts[digest] for digest in part]
    return int(n[0]), int(n[1])


def choose_step(n_answers: int) -> int:
    """Return of how many cases one is read for `count_not_greedy`."""
    return -(-n_answers // MAX_READ) or 1
