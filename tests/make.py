"""Builders with defaults that a test may ignore. Plain Python and numpy: the core's own tests use them."""

from collections.abc import Sequence

import numpy as np

from evalboard.core.trace import TokenTrace, make_trace


def trace(
    tokens: str | Sequence[int] = "abcd",
    *,
    k: int = 2,
    seed: int = 0,
    grid: int = 19,
    prompt: Sequence[int] | None = None,
) -> TokenTrace:
    """A trace that chose `tokens` (ids, or one token a character) the way a greedy engine does.

    Logits lie on steps of 2**-grid, as float32 (19) or bfloat16 (4) logits do, and the log-softmax is
    float32; the chosen token is rank 0. The same arguments give the same bits.
    """
    ids = [ord(token) for token in tokens] if isinstance(tokens, str) else list(tokens)
    rng = np.random.default_rng(seed)
    rows = []
    for token in ids:
        below = np.sort(np.ldexp(np.rint(np.ldexp(rng.exponential(3.0, size=max(k - 1, 0)), grid)), -grid))
        gaps = np.concatenate([[0.0], below]).astype(np.float32)
        top = -np.float32(np.log(np.exp(-gaps.astype(np.float64)).sum() + rng.exponential(0.1)))
        names = [token, *range(token + 1, token + k)]
        rows.append([(name, float(top - gap)) for name, gap in zip(names, gaps, strict=True)])
    chosen = [row[0][1] for row in rows]
    return make_trace(ids, chosen, [row[:k] for row in rows], prompt)


def trace_of_bits(
    token_ids: Sequence[int], logprobs: Sequence[int], ids: Sequence[Sequence[int]], bits: Sequence[Sequence[int]]
) -> TokenTrace:
    """A trace whose floats are given as their 32 bits; `ids` and `bits` have one row a position, of one length."""
    n = len(token_ids)
    k = len(ids[0]) if n else 0
    return TokenTrace(
        token_ids=np.array(token_ids, dtype=np.int32),
        logprobs=np.array(logprobs, dtype=np.uint32).view(np.float32),
        alternative_ids=np.array(ids, dtype=np.int32).reshape(n, k),
        alternative_logprobs=np.array(bits, dtype=np.uint32).reshape(n, k).view(np.float32),
    )
