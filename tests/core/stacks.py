"""Two serving stacks, simulated: one model's logits with rounding, noise, shifts and faults, as pairs of traces.

A position has three tokens whose logits lie between 8 and 31, where bfloat16's step is 1/16 or 1/8 nat. Every logit
is moved by its own noise on each side and rounded; the largest is chosen, equal ones by the lower id.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare import Divergence, find_divergences
from evalboard.core.trace import join_traces
from evalboard.core.trace.trace import TokenTrace

N_TOKENS = 300
N_REPEATED = 60  # tokens of an answer that is decoded many times
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
) -> Iterator[tuple[TokenTrace, TokenTrace]]:
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


def repeated(
    n: int, k: int, *, noise: tuple[float, float], shift: float = 0.0, seed: int = 0
) -> Iterator[tuple[list[TokenTrace], list[TokenTrace]]]:
    """n prompts, each answered k times by either side. noise: of each side's logits, in nats; shift as in `pairs`."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        logits = _logits(rng)[:N_REPEATED]
        moved = logits + rng.normal(0, shift, logits.shape) if shift else logits
        yield tuple(
            [_decoded(each, rng, sd) for _ in range(k)] for each, sd in zip((logits, moved), noise, strict=True)
        )


def drawn_pair(
    rng: np.random.Generator, *, noise: float, temperature: float, is_one_seed: bool
) -> tuple[TokenTrace, TokenTrace]:
    """Two draws of one answer, by the largest of logits over temperature plus Gumbel noise: the same of one seed."""
    logits = _flat_logits(rng)
    gumbel = rng.gumbel(size=logits.shape)
    first = draw(logits, gumbel, rng, noise=noise, temperature=temperature)
    other = gumbel if is_one_seed else rng.gumbel(size=logits.shape)
    return first, draw(logits, other, rng, noise=noise, temperature=temperature)


def drawn(n: int, k: int, *, noise: float, temperature: float, seed: int = 0) -> Iterator[list[TokenTrace]]:
    """n prompts, each answered by k draws with seeds of their own."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        logits = _flat_logits(rng)
        yield [draw(logits, rng.gumbel(size=logits.shape), rng, noise=noise, temperature=temperature) for _ in range(k)]


def draw(logits: Numbers, gumbel: Numbers, rng: np.random.Generator, *, noise: float, temperature: float) -> TokenTrace:
    """One draw of an answer, whose logits are moved by noise of their own."""
    moved = logits + rng.normal(0, noise, logits.shape) if noise else logits
    logprobs = (moved - np.log(np.exp(moved).sum(axis=1, keepdims=True))).astype(np.float32)
    chosen = (moved / temperature + gumbel).argmax(axis=1)
    order = np.argsort(-moved, axis=1, kind="stable")
    rows = np.arange(len(logits))
    ids = (order + logits.shape[1] * rows[:, None]).astype(np.int32)
    return TokenTrace(
        (chosen + logits.shape[1] * rows).astype(np.int32),
        logprobs[rows, chosen],
        ids,
        np.take_along_axis(logprobs, order, axis=1),
    )


def _flat_logits(rng: np.random.Generator) -> Numbers:
    """A flat model's, so that draws part soon, with all of float32's digits."""
    return rng.normal(0, 1.5, (N_REPEATED, 8))


def find_partings(pairs: Iterable[tuple[TokenTrace, TokenTrace]]) -> list[Divergence]:
    """Return how each pair parts, all of them found at once."""
    baselines, candidates = zip(*pairs, strict=True)
    return find_divergences(join_traces(baselines), join_traces(candidates))


def _logits(rng: np.random.Generator) -> Numbers:
    top = rng.uniform(16, 31, N_TOKENS)
    second = top - rng.exponential(8, N_TOKENS)
    third = second - rng.exponential(4, N_TOKENS)
    return np.column_stack([top, second, third])


def _bfloat16(values: Numbers) -> Numbers:
    step = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(values), 1e-3))) - 7)
    return np.asarray(np.rint(values / step) * step)


def _decoded(logits: Numbers, rng: np.random.Generator, noise: float, drawn: int | None = None) -> TokenTrace:
    found = _bfloat16(logits + rng.normal(0, noise, logits.shape)).astype(np.float32)
    logprobs = found - np.log(np.exp(found.astype(np.float64)).sum(axis=1, keepdims=True)).astype(np.float32)
    rows = np.arange(len(logits))
    order = np.argsort(-found, axis=1, kind="stable")[:, :2]
    ids = (order + 3 * rows[:, None]).astype(np.int32)
    listed = np.take_along_axis(logprobs, order, axis=1).astype(np.float32)
    ranks = np.zeros(len(logits), np.intp)
    if drawn is not None:
        ranks[drawn] = 1
    return TokenTrace(ids[rows, ranks], listed[rows, ranks], ids, listed)
