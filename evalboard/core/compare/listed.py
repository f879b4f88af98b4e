"""The tokens that both sides of many pairs list at one position each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare.alignment import Bools, Ids
from evalboard.core.compare.drift import Numbers
from evalboard.core.trace import IMPOSSIBLE, NO_TOKEN, TraceColumns

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Listed:
    """The alternatives of p positions. ids: int32[p, k]; logprobs: float64[p, k], -inf if forbidden.

    is_listed: bool[p, k], valid cells: those of a token with a number, the last if a token is listed twice. step: in
    nats, by which equal logprobs may differ.
    """

    ids: Ids
    logprobs: Numbers
    is_listed: Bools
    step: float = 0.0

    @property
    def n(self) -> Rows:
        """Return how many tokens each position lists."""
        n: Rows = self.is_listed.sum(axis=1, dtype=np.int64)
        return n

    @property
    def highest(self) -> Numbers:
        """The largest logprob of each position, -inf where nothing is listed."""
        highest: Numbers = np.where(self.is_listed, self.logprobs, -np.inf).max(axis=1, initial=-np.inf)
        return highest

    @property
    def lowest(self) -> Numbers:
        """The smallest logprob of each position, infinite where nothing is listed."""
        lowest: Numbers = np.where(self.is_listed, self.logprobs, np.inf).min(axis=1, initial=np.inf)
        return lowest

    @property
    def second(self) -> Numbers:
        """Return each position's second largest logprob: the largest again for a tie, -inf if it is single."""
        listed = np.where(self.is_listed, self.logprobs, -np.inf)
        return np.sort(np.column_stack([np.full((len(listed), 2), -np.inf), listed]), axis=1)[:, -2]

    @property
    def margin(self) -> Numbers:
        """The largest logprob minus the second, not finite where fewer than two are listed."""
        return self.highest - self.second

    @property
    def is_top_two(self) -> Bools:
        """bool[p, k]: the two most likely tokens of each position, more where logprobs are equal."""
        return self.is_listed & (self.logprobs >= self.second[:, None] - self.step)

    def has(self, tokens: Ids) -> Bools:
        """Return whether each position lists a token of its own."""
        return np.asarray(self._is_token(tokens).any(axis=1))

    def look_up(self, tokens: Ids, otherwise: Numbers) -> Numbers:
        """Return the logprob of a token at each position; `otherwise` where it is not listed."""
        if not self.ids.shape[1]:
            return otherwise
        is_token = self._is_token(tokens)
        cells = np.take_along_axis(self.logprobs, is_token.argmax(axis=1)[:, None], axis=1)[:, 0]
        return np.where(is_token.any(axis=1), cells, otherwise)

    def _is_token(self, tokens: Ids) -> Bools:
        is_token: Bools = self.ids == tokens[:, None]
        return self.is_listed & is_token


def list_rows(columns: TraceColumns, rows: Rows, *, step: float = 0.0) -> Listed:
    """Return the alternatives of some rows of the columns. step: as in Listed."""
    ids, logprobs = columns.alternative_ids[rows], columns.alternative_logprobs[rows].astype(np.float64)
    is_listed = (ids != NO_TOKEN) & ~np.isnan(logprobs)
    is_same = (ids[:, :, None] == ids[:, None, :]) & is_listed[:, None, :]
    is_listed &= ~np.triu(is_same, 1).any(axis=2)
    return Listed(ids, np.where(logprobs > IMPOSSIBLE, logprobs, -np.inf), is_listed, step)


def are_top_two_equal(ours: Listed, theirs: Listed) -> list[bool | None]:
    """Tell whether two sides can agree on their top two; where logprobs are equal, a side has several.

    None where a side lists fewer than two.
    """
    is_same = ours.is_top_two[:, :, None] & theirs.is_top_two[:, None, :] & _are_one(ours, theirs)
    are_equal = is_same.sum(axis=(1, 2)) >= 2
    are_known = (ours.n >= 2) & (theirs.n >= 2)
    return [equal if known else None for equal, known in zip(are_equal.tolist(), are_known.tolist(), strict=True)]


def find_largest_gap(ours: Listed, theirs: Listed) -> Numbers:
    """Return float64[p] in nats: the largest gap of tokens listed on both sides; NaN without any."""
    left, right = ours.logprobs[:, :, None], theirs.logprobs[:, None, :]
    gaps = np.where(left == right, 0.0, np.abs(left - right))
    is_shared = _are_one(ours, theirs)
    largest = np.where(is_shared, gaps, -np.inf).max(axis=(1, 2), initial=-np.inf)
    return np.where(is_shared.any(axis=(1, 2)), largest, np.nan)


def are_disjoint(ours: Listed, theirs: Listed) -> Bools:
    """Tell where two sides list more than one token each and share none."""
    return (np.minimum(ours.n, theirs.n) > 1) & ~np.asarray(_are_one(ours, theirs).any(axis=(1, 2)))


def _are_one(ours: Listed, theirs: Listed) -> Bools:
    """Return bool[p, k, other k]: which cells of two sides have the same token."""
    are_one: Bools = ours.ids[:, :, None] == theirs.ids[:, None, :]
    return are_one & ours.is_listed[:, :, None] & theirs.is_listed[:, None, :]
