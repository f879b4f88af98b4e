"""How far the logprobs of two traces lie apart, position by position, where the tokens agree."""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core.alignment import Alignment, Positions
from evalboard.core.trace import NO_TOKEN, Trace

DECIMALS = 1e-4  # a log of decimals keeps four or more: a smaller difference may be one of writing
IMPOSSIBLE = -1000.0  # no float32 softmax reaches it: engines write -inf, -9999 or -1e30 for a forbidden token

Bools = NDArray[np.bool_]
Numbers = NDArray[np.float64]
Cells = NDArray[np.float32]
Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Drift:
    """The positions that agree, and what can be compared there.

    baseline_positions, candidate_positions: intp[m].
    differs: bool[m], whether the logprob of any token that both sides list differs.
    gaps: float64[m] in nats, the largest gap of those tokens; NaN where there is none, infinite where only one side
    forbids a token.
    shifts: float64[m] in nats, the top-2 gap shift D, NaN where the top two are not the same on both sides.
    """

    baseline_positions: Positions
    candidate_positions: Positions
    differs: Bools
    gaps: Numbers
    shifts: Numbers


def measure(alignment: Alignment, *, is_decimal: bool = False) -> Drift:
    """Compare the positions that agree: bit for bit, or where a log gave decimals by more than DECIMALS."""
    baseline, candidate = alignment.shared()
    with np.errstate(invalid="ignore"):  # -inf minus -inf, and NaN, which is no number and is not compared
        differs, gaps = _gaps(baseline, candidate, is_decimal)
        shifts = _shifts(baseline, candidate)
    return Drift(alignment.baseline_positions, alignment.candidate_positions, differs, gaps, shifts)


def top_two(trace: Trace) -> tuple[Ids, Cells]:
    """int32[n, 2] and float32[n, 2]: the two most likely alternatives, equal logprobs by token id.

    With two alternatives they come in the engine's order. [n, 0] where fewer are listed.
    """
    ids, logprobs = trace.alternative_ids, trace.alternative_logprobs
    if trace.k < 2:
        return ids[:, :0], logprobs[:, :0]
    if trace.k == 2 or not len(trace):
        return ids[:, :2], logprobs[:, :2]
    is_ranked = (logprobs[:, :2] > logprobs[:, 1:3]).all(axis=1) & ~(logprobs[:, 3:] > logprobs[:, 2:-1]).any(axis=1)
    ids_out, logprobs_out = ids[:, :2].copy(), logprobs[:, :2].copy()
    odd = np.flatnonzero(~is_ranked)
    if len(odd):
        order = np.lexsort((ids[odd], -logprobs[odd]), axis=1)[:, :2]
        ids_out[odd] = np.take_along_axis(ids[odd], order, axis=1)
        logprobs_out[odd] = np.take_along_axis(logprobs[odd], order, axis=1)
    return ids_out, logprobs_out


def highest(cells: NDArray[np.floating]) -> Numbers:
    """float64[n]: the largest number in each row of [n, k], NaN where there is none."""
    # Column by column: n is large and k is small.
    return functools.reduce(np.fmax, cells.T, np.full(len(cells), np.nan))


def _gaps(baseline: Trace, candidate: Trace, is_decimal: bool) -> tuple[Bools, Numbers]:
    listed, listed_too = _both_listed(baseline, candidate)
    ours = _forbidden_alike(np.column_stack([baseline.logprobs, listed]))
    theirs = _forbidden_alike(np.column_stack([candidate.logprobs, listed_too]))
    gaps = np.abs(ours.astype(np.float64) - theirs)
    are_other_bits = (ours.view(np.uint32) != theirs.view(np.uint32)) & (gaps >= 0)  # no NaN is
    differs = gaps > DECIMALS if is_decimal else are_other_bits
    return functools.reduce(np.logical_or, differs.T), highest(gaps)


def _forbidden_alike(logprobs: Cells) -> Cells:
    """The logprobs with every way to write "impossible" as -inf."""
    if logprobs.min(initial=0) > IMPOSSIBLE:
        return logprobs
    return np.where(logprobs <= IMPOSSIBLE, np.float32(-np.inf), logprobs)


def _both_listed(baseline: Trace, candidate: Trace) -> tuple[Cells, Cells]:
    """float32[n, k] each: the logprobs of the baseline's alternatives on both sides, NaN where one side lacks them."""
    ids, other_ids = baseline.alternative_ids, candidate.alternative_ids
    logprobs, other_logprobs = baseline.alternative_logprobs, candidate.alternative_logprobs
    if np.array_equal(ids, other_ids):
        return logprobs, other_logprobs
    if not ids.size or not other_ids.size:
        return logprobs[:, :0], other_logprobs[:, :0]
    is_same = (ids[:, :, None] == other_ids[:, None, :]) & (ids != NO_TOKEN)[:, :, None]
    found = np.take_along_axis(other_logprobs, is_same.argmax(axis=2), axis=1)
    return logprobs, np.where(is_same.any(axis=2), found, np.float32(np.nan))


def _shifts(baseline: Trace, candidate: Trace) -> Numbers:
    ids, logprobs = top_two(baseline)
    other_ids, other_logprobs = top_two(candidate)
    if not ids.shape[1] or not other_ids.shape[1]:
        return np.full(len(baseline), np.nan)
    is_straight = (ids[:, 0] == other_ids[:, 0]) & (ids[:, 1] == other_ids[:, 1])
    is_crossed = (ids[:, 0] == other_ids[:, 1]) & (ids[:, 1] == other_ids[:, 0])
    known = is_straight | is_crossed
    for cells in (logprobs, other_logprobs):
        known &= (cells[:, 0] > IMPOSSIBLE) & (cells[:, 1] > IMPOSSIBLE)
    margin = logprobs[:, 0].astype(np.float64) - logprobs[:, 1]
    other_margin = other_logprobs[:, 0].astype(np.float64) - other_logprobs[:, 1]
    np.negative(other_margin, where=is_crossed, out=other_margin)
    return np.where(known, margin - other_margin, np.nan)
