"""A trace: by position, the chosen token, its logprob, and the alternatives."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evalboard.core import digest

NO_TOKEN = -1  # fills a row whose engine listed fewer alternatives than its neighbours
IMPOSSIBLE = -1000.0  # no float32 softmax reaches it: engines write -inf, -9999 or -1e30 for a forbidden token


@dataclass(frozen=True, slots=True)
class Alternative:
    """One token the model could have chosen at a position; logprob in nats."""

    token_id: int
    logprob: float


@dataclass(frozen=True, eq=False)
class TokenTrace:
    """One response as the engine decoded it.

    token_ids: int32[n], the chosen token of each position.
    logprobs: float32[n], natural logarithm of the chosen token's probability.
    alternative_ids: int32[n, k], the engine's top k in its order; NO_TOKEN where it listed fewer.
    alternative_logprobs: float32[n, k], NaN beside NO_TOKEN.
    prompt_token_ids: int32[m] or None; evidence kept beside the trace, not part of its digest.

    Every float keeps its bits, non-finite ones included.
    """

    token_ids: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    alternative_ids: NDArray[np.int32]
    alternative_logprobs: NDArray[np.float32]
    prompt_token_ids: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        n = len(self.token_ids)
        if self.token_ids.shape != (n,) or self.logprobs.shape != (n,):
            raise ValueError("token_ids and logprobs must be flat and of one length")
        if self.alternative_ids.shape != self.alternative_logprobs.shape or self.alternative_ids.ndim != 2:
            raise ValueError("alternative_ids and alternative_logprobs must have one shape [n, k]")
        if len(self.alternative_ids) != n:
            raise ValueError("there must be one row of alternatives for each position")

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def k(self) -> int:
        """Return the largest number of alternatives at a position."""
        return int(self.alternative_ids.shape[1])

    @cached_property
    def digest(self) -> bytes:
        """Return the short digest of the decoded trace: equal only if every id and bit is equal."""
        shape = np.array([len(self), self.k], dtype="<u4").tobytes()
        parts = (
            self.token_ids.astype("<i4", copy=False).tobytes(),
            _bits(self.logprobs),
            self.alternative_ids.astype("<i4", copy=False).tobytes(),
            _bits(self.alternative_logprobs),
        )
        return digest.short_digest(shape + b"".join(parts))

    def alternatives(self, position: int) -> list[Alternative]:
        """Return the engine's top k at one position, in its order."""
        ids, logprobs = self.alternative_ids[position], self.alternative_logprobs[position]
        return [
            Alternative(int(token), float(logprob))
            for token, logprob in zip(ids, logprobs, strict=True)
            if token != NO_TOKEN
        ]

    def margins(self) -> NDArray[np.float32]:
        """Return float32[n]: logprob of top-1 minus top-2 in nats, NaN where fewer than two are listed.

        Taken from the values, never from their order: engines do not promise to order exact ties.
        """
        if self.k < 2:
            return np.full(len(self), np.nan, dtype=np.float32)
        ranked = -np.sort(-self.alternative_logprobs, axis=1)  # NaN sorts last
        with np.errstate(invalid="ignore"):  # -inf minus -inf is NaN: no margin is known there
            return ranked[:, 0] - ranked[:, 1]


def make_trace(
    token_ids: Sequence[int],
    logprobs: Sequence[float],
    alternatives: Sequence[Sequence[tuple[int, float]]],
    prompt_token_ids: Sequence[int] | None = None,
) -> TokenTrace:
    """Build a trace from plain lists; rows of alternatives may have different lengths."""
    k = max((len(row) for row in alternatives), default=0)
    ids = np.full((len(token_ids), k), NO_TOKEN, dtype=np.int32)
    values = np.full((len(token_ids), k), np.nan, dtype=np.float32)
    for position, row in enumerate(alternatives):
        for rank, (token, logprob) in enumerate(row):
            ids[position, rank] = token
            values[position, rank] = logprob
    return TokenTrace(
        token_ids=np.asarray(token_ids, dtype=np.int32),
        logprobs=np.asarray(logprobs, dtype=np.float32),
        alternative_ids=ids,
        alternative_logprobs=values,
        prompt_token_ids=None if prompt_token_ids is None else np.asarray(prompt_token_ids, dtype=np.int32),
    )


def _bits(values: NDArray[np.float32]) -> bytes:
    return values.astype("<f4", copy=False).tobytes()
