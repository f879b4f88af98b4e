"""Two serving stacks, simulated: one model's logits with rounding, noise, shifts and faults, as pairs of traces.

A position has three tokens whose logits lie between 8 and 31, where bfloat16's step is 1/16 or 1/8 nat. Every logit
is moved by its own noise on each side and rounded; the largest is chosen, equal ones by the lower id.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evalboard.core.trace import Trace

N_TOKENS = 300
NOISE = 0.03  # nats for each logit and side
Numbers = NDArray[np.float64]


def pairs(
    n: int,
    *,
    seed: int,
    shift: float = 0.0,
    share_shifted: float = 1.0,
    is_drawn_once: bool = False,
    noise: float = NOISE,
) -> Iterator[tuple[Trace, Trace]]:
    """n pairs of answers to n prompts.

    shift: standard deviation in nats by which every logit of the candidate's is off, in `share_shifted` of the
    answers, evenly spread. is_drawn_once: the candidate's sampler takes the second token at one position.
    """
    rng = np.random.default_rng(seed)
    for index in range(n):
        logits = _logits(rng)
        is_shifted = int((index + 1) * share_shifted) > int(index * share_shifted)
        moved = logits + rng.normal(0, shift, logits.shape) if shift and is_shifted else logits
        drawn = int(rng.integers(N_TOKENS)) if is_drawn_once else None
        yield _decoded(logits, rng, noise), _decoded(moved, rng, noise, drawn)


def _logits(rng: np.random.Generator) -> Numbers:
    top = rng.uniform(16, 31, N_TOKENS)
    second = top - rng.exponential(8, N_TOKENS)
    third = second - rng.exponential(4, N_TOKENS)
    return np.column_stack([top, second, third])


def _bfloat16(values: Numbers) -> Numbers:
    step = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(values), 1e-3))) - 7)
    return np.asarray(np.rint(values / step) * step)


def _decoded(logits: Numbers, rng: np.random.Generator, noise: float, drawn: int | None = None) -> Trace:
    found = _bfloat16(logits + rng.normal(0, noise, logits.shape)).astype(np.float32)
    logprobs = found - np.log(np.exp(found.astype(np.float64)).sum(axis=1, keepdims=True)).astype(np.float32)
    order = np.argsort(-found, axis=1, kind="stable")[:, :2]
    ids = (order + 3 * np.arange(N_TOKENS)[:, None]).astype(np.int32)
    listed = np.take_along_axis(logprobs, order, axis=1).astype(np.float32)
    ranks = np.zeros(N_TOKENS, np.intp)
    if drawn is not None:
        ranks[drawn] = 1
    rows = np.arange(N_TOKENS)
    return Trace(ids[rows, ranks], listed[rows, ranks], ids, listed)
