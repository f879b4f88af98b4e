"""Align the tokens of responses with a reference stack's logprobs for them (docs/forced.md).

The reference reads the same prompt and the same tokens and gives the logprob of each: a *forced* trace. So every
position compares the same question on both sides, even after the first token where the reference would have chosen
another. Logprobs are in nats.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.rollouts import WorstPosition
from evalboard.core.rollout_steps import find_log_ratios
from evalboard.core.trace import IMPOSSIBLE, TraceColumns

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ForcedPositions:
    """The n positions of m responses, one response after the other.

    starts: int64[m + 1], response i has the positions starts[i] to starts[i + 1].
    log_ratios: float64[n], log r: the chosen token's logprob on the reference minus its logprob on the sampler; NaN
    where either side gave none.
    deficits: float64[n], d: the reference's largest logprob minus the chosen token's, 0 where that is its top-1 (or as
    likely); NaN where the reference lists no alternatives.
    """

    starts: NDArray[np.int64]
    log_ratios: Numbers
    deficits: Numbers

    def __len__(self) -> int:
        return len(self.log_ratios)

    @property
    def n_responses(self) -> int:
        """Return the number of responses, including those without a position."""
        return len(self.starts) - 1

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """int64[n]: the index of the response that each position belongs to."""
        return np.repeat(np.arange(self.n_responses), np.diff(self.starts))

    @property
    def places(self) -> NDArray[np.int64]:
        """Return the index of each position in its response, int64[n] from 0."""
        return np.arange(len(self)) - self.starts[self.owners]

    @cached_property
    def gaps(self) -> Numbers:
        """Return |log r| of each position, float64[n]; NaN if either logprob is unknown."""
        return np.abs(self.log_ratios)

    def sum_by_response(self, values: Numbers) -> Numbers:
        """Return the sum of `values` over each response, float64[m]; 0 without positions."""
        summed: Numbers = np.bincount(self.owners, values, self.n_responses).astype(np.float64, copy=False)
        return summed


def measure_positions(sampled: TraceColumns, forced: TraceColumns) -> ForcedPositions:
    """Compare sampled traces with the forced traces of the same tokens, trace by trace.

    Raises ValueError where the two do not have the same tokens.
    """
    if not np.array_equal(sampled.starts, forced.starts) or not np.array_equal(sampled.token_ids, forced.token_ids):
        raise ValueError("a forced trace has the tokens of the response that it scores")
    on_sampler, on_reference = sampled.logprobs.astype(np.float64), forced.logprobs.astype(np.float64)
    return ForcedPositions(sampled.starts, find_log_ratios(on_sampler, on_reference), _deficits(on_reference, forced))


def list_worst(
    positions: ForcedPositions, n: int, *, places: NDArray[np.int64] | None = None
) -> tuple[WorstPosition, ...]:
    """Return the n positions with the largest |log r|, the largest first and equal ones in their order.

    places: int64[n], as `measure_forced` has them.
    """
    places = positions.places if places is None else places
    known = np.flatnonzero(~np.isnan(positions.gaps))
    order = known[np.argsort(-positions.gaps[known], kind="stable")[:n]]
    columns = (positions.owners[order].tolist(), places[order].tolist(), positions.log_ratios[order].tolist())
    return tuple(
        WorstPosition(response=response, position=position, log_ratio=log_ratio)
        for response, position, log_ratio in zip(*columns, strict=True)
    )


def _deficits(on_reference: Numbers, forced: TraceColumns) -> Numbers:
    listed = forced.alternative_logprobs
    top = np.full(len(on_reference), np.nan)
    for column in listed.T:  # n is large and k is small
        np.fmax(top, column, out=top)
    # An engine lists the chosen token in addition to its top k, so the largest may be its own.
    return np.where(np.isnan(top), np.nan, np.maximum(top, on_reference) - np.maximum(on_reference, IMPOSSIBLE))
