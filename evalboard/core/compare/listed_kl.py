"""Estimate how far two answers' distributions differ, over their common start, by tokens both list."""

import numpy as np

from evalboard.core.trace import NO_TOKEN, TokenTrace

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
