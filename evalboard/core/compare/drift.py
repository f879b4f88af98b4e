"""Measure how far the logprobs of two traces differ, by position, where the tokens agree."""

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare.alignment import NEVER, Alignment, Bools, Ids, Positions, find_firsts
from evalboard.core.compare.paired_rows import PairedRows, Vocabularies, lay_pairs
from evalboard.core.stats import MIN_POSITIONS
from evalboard.core.trace import IMPOSSIBLE, NO_TOKEN, TokenTrace, TraceColumns

# A log of decimals keeps four or more: two logprobs that differ by no more may be one, written twice, and D, which is
# made of four, may be off by two such steps.
DECIMAL_STEP = 1e-4

Numbers = NDArray[np.float64]
Cells = NDArray[np.float32]


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


def measure_drift(sides: Alignment | PairedRows, *, is_decimal: bool = False) -> Drift:
    """Compare the positions that agree: bit for bit; or where a log gave decimals, to a DECIMAL_STEP."""
    baseline, candidate = sides.shared()
    with np.errstate(invalid="ignore"):  # -inf minus -inf, and NaN, which is no number and is not compared
        differs, gaps = _gaps(baseline, candidate, is_decimal)
        shifts = _shifts(baseline, candidate, is_decimal=is_decimal)
    return Drift(sides.baseline_positions, sides.candidate_positions, differs, gaps, shifts)


def measure_distances(
    baseline: TraceColumns,
    candidate: TraceColumns,
    *,
    vocabularies: Sequence[Vocabularies | None] | None = None,
    is_decimal: bool = False,
) -> tuple[Numbers, Bools]:
    """Return float64[p] in nats²: the mean square of D over each pair's positions that agree.

    Second: bool[p], pairs that are equal as decimals: the same tokens, no logprob of which differs by more than
    DECIMAL_STEP. NaN if D is known at fewer than MIN_POSITIONS. Without decimals, no pair counts as equal, for traces
    that are equal to the bit need not be measured.
    """
    laid = lay_pairs(baseline, candidate, vocabularies)
    with np.errstate(invalid="ignore"):
        shared = laid.shared()
        shifts = find_known_shifts(_shifts(*shared, is_decimal=is_decimal), laid.starts)
        are_equal = np.zeros(len(laid), np.bool_)
        if is_decimal:
            are_equal = (laid.parts_at[:, 0] == NEVER) & ~laid.is_approximate
            are_equal &= find_firsts(_gaps(*shared, is_decimal)[0], laid.starts) == NEVER
    n = np.diff(shifts.starts)
    return np.where(n >= MIN_POSITIONS, shifts.squares / np.maximum(n, 1), np.nan), are_equal


@dataclass(frozen=True, eq=False)
class KnownShifts:
    """D where it is known, of p pairs.

    values: float64[u] in nats; rows: intp[u], their places among the rows that agree; pair i has those from starts[i]
    to starts[i + 1]. squares: float64[p], the sum of their squares.
    """

    values: Numbers
    rows: Positions
    starts: NDArray[np.intp]
    squares: Numbers


def find_known_shifts(shifts: Numbers, starts: NDArray[np.int64]) -> KnownShifts:
    """Return the known shifts; those of pair i are from starts[i] to starts[i + 1]."""
    rows = np.flatnonzero(~np.isnan(shifts))
    places, values = np.searchsorted(rows, starts), shifts[rows]
    own = (values[start:end] for start, end in itertools.pairwise(places.tolist()))
    # Each pair's sum for itself: one over many pairs would round differently.
    squares = np.array([each @ each for each in own], np.float64)
    return KnownShifts(values, rows, places, squares)


def top_two(trace: TokenTrace, *, step: float = 0.0) -> tuple[Ids, Cells]:
    """Return int32[n, 2] and float32[n, 2]: the two most likely alternatives, equal logprobs by token id.

    With two alternatives they come in the engine's order. [n, 0] where fewer are listed. step: in nats, by which equal
    logprobs may differ.
    """
    ids, logprobs = trace.alternative_ids, trace.alternative_logprobs
    if trace.k < 2:
        return ids[:, :0], logprobs[:, :0]
    if trace.k == 2 or not len(trace):
        return ids[:, :2], logprobs[:, :2]
    is_ranked = (logprobs[:, :2] - logprobs[:, 1:3] > step).all(axis=1)
    is_ranked &= ~(logprobs[:, 3:] > logprobs[:, 2:-1]).any(axis=1)
    ids_out, logprobs_out = ids[:, :2].copy(), logprobs[:, :2].copy()
    odd = np.flatnonzero(~is_ranked)
    if len(odd):
        order = np.lexsort((ids[odd], _rank(logprobs[odd], step)), axis=1)[:, :2]
        ids_out[odd] = np.take_along_axis(ids[odd], order, axis=1)
        logprobs_out[odd] = np.take_along_axis(logprobs[odd], order, axis=1)
    return ids_out, logprobs_out


def _rank(logprobs: Cells, step: float) -> Numbers:
    """Return [n, k] to sort alternatives by: lower for a larger logprob, the same for equal ones."""
    if not step:
        return np.negative(logprobs, dtype=np.float64)
    order = np.argsort(-logprobs, axis=1)
    falls = ~(np.diff(np.take_along_axis(logprobs, order, axis=1), axis=1) >= -step)  # so NaN, which comes last, is one
    ranks = np.zeros(logprobs.shape)
    np.put_along_axis(ranks, order[:, 1:], np.cumsum(falls, axis=1), axis=1)
    return ranks


def highest(cells: NDArray[np.floating]) -> Numbers:
    """Return float64[n]: the largest number in each row of [n, k], NaN where there is none."""
    # Column by column: n is large and k is small.
    return functools.reduce(np.fmax, cells.T, np.full(len(cells), np.nan))


def _gaps(baseline: TokenTrace, candidate: TokenTrace, is_decimal: bool) -> tuple[Bools, Numbers]:
    listed, listed_too = _both_listed(baseline, candidate)
    differs, gaps = np.zeros(len(baseline), np.bool_), np.full(len(baseline), np.nan)
    # Column by column: there are many positions and few alternatives.
    for ours, theirs in zip((baseline.logprobs, *listed.T), (candidate.logprobs, *listed_too.T), strict=True):
        left, right = _forbidden_alike(ours), _forbidden_alike(theirs)
        gap = np.abs(left.astype(np.float64) - right)
        if is_decimal:
            gap[gap <= DECIMAL_STEP] = 0.0
        are_other_bits = (left.view(np.uint32) != right.view(np.uint32)) & (gap >= 0)  # no NaN is
        differs |= gap > 0 if is_decimal else are_other_bits
        np.fmax(gaps, gap, out=gaps)
    return differs, gaps


def _forbidden_alike(logprobs: Cells) -> Cells:
    """Return the logprobs with every way to write "impossible" as -inf."""
    if logprobs.min(initial=0) > IMPOSSIBLE:
        return logprobs
    return np.where(logprobs <= IMPOSSIBLE, np.float32(-np.inf), logprobs)


def _both_listed(baseline: TokenTrace, candidate: TokenTrace) -> tuple[Cells, Cells]:
    """Return both sides' logprobs of the baseline's alternatives: float32[n, k], NaN if missing."""
    ids, other_ids = baseline.alternative_ids, candidate.alternative_ids
    logprobs, other_logprobs = baseline.alternative_logprobs, candidate.alternative_logprobs
    if not ids.size or not other_ids.size:
        return logprobs[:, :0], other_logprobs[:, :0]
    is_other = np.ones(len(ids), np.bool_)
    if ids.shape == other_ids.shape:
        is_other = (ids != other_ids).any(axis=1)
        if not is_other.any():
            return logprobs, other_logprobs
    rows = np.flatnonzero(is_other)
    is_same = (ids[rows][:, :, None] == other_ids[rows][:, None, :]) & (ids[rows] != NO_TOKEN)[:, :, None]
    reordered = np.take_along_axis(other_logprobs[rows], is_same.argmax(axis=2), axis=1)
    in_order = np.empty_like(logprobs) if len(rows) == len(ids) else other_logprobs.copy()
    in_order[rows] = np.where(is_same.any(axis=2), reordered, np.float32(np.nan))
    return logprobs, in_order


def _shifts(baseline: TokenTrace, candidate: TokenTrace, *, is_decimal: bool) -> Numbers:
    step = DECIMAL_STEP if is_decimal else 0.0
    ids, logprobs = top_two(baseline, step=step)
    other_ids, other_logprobs = top_two(candidate, step=step)
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
    shifts: Numbers = np.where(known, margin - other_margin, np.nan)
    if is_decimal:
        shifts[np.abs(shifts) <= 2 * step] = 0.0
    return shifts


LEAST = 1e-6  # what the tokens that are not listed have together, at least: decimals are no more exact


def sum_listed_kl(ours: TokenTrace, theirs: TokenTrace) -> tuple[float, int]:
    """Return the sum of KL(ours ‖ theirs) in nats until the answers diverge, and its number of positions.

    Both traces' ids must be of one vocabulary. Tokens that not both list count as one, so that each term is at most the
    KL of the whole distributions. A position at which no token is listed on both sides is not counted.
    """
    n = min(len(ours), len(theirs))
    apart = np.flatnonzero(ours.token_ids[:n] != theirs.token_ids[:n])
    n = int(apart[0]) + 1 if len(apart) else n
    sides = [(each.alternative_ids[:n], each.alternative_logprobs[:n].astype(np.float64)) for each in (ours, theirs)]
    (ids, logprobs), (other_ids, other_logprobs) = sides
    are_one = (ids[:, :, None] == other_ids[:, None, :]) & (ids != NO_TOKEN)[:, :, None]
    are_one &= np.isfinite(logprobs)[:, :, None] & np.isfinite(other_logprobs)[:, None, :]
    is_shared = are_one.any(axis=2)
    beside = np.where(are_one, other_logprobs[:, None, :], -np.inf).max(axis=2, initial=-np.inf)
    chance, other = (
        np.where(is_shared, np.exp(each), 0.0) for each in (np.minimum(logprobs, 0), np.minimum(beside, 0))
    )
    with np.errstate(invalid="ignore"):
        terms = np.where(is_shared, chance * (logprobs - beside), 0.0).sum(axis=1)
    rest, other_rest = (np.maximum(1 - each.sum(axis=1), LEAST) for each in (chance, other))
    is_counted = is_shared.any(axis=1)
    total = np.maximum(terms + rest * np.log(rest / other_rest), 0.0)[is_counted].sum()
    return float(total), int(is_counted.sum())
