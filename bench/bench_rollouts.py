"""What one training step costs its trainer before the request: `evalboard.client.rollouts.log` measures it there.

256 responses of 1,024 tokens, float32, without padding; processor time of one process.
"""

import time
from typing import Any

import numpy as np

from bench.row import Row, median_row
from evalboard.core.rollout_steps import measure_step

N_RESPONSES, N_TOKENS, PROMPT = 256, 1024, 200
LAYERS, TOP, N_EXPERTS = 16, 8, 64
ROUNDS = 15
AIM = "at most 50"


def measure() -> list[Row]:
    """Return the cost of a step without and with what it may bring along."""
    rng = np.random.default_rng(2026)
    shape = (N_RESPONSES, N_TOKENS)
    sampler = -rng.exponential(0.6, shape).astype(np.float32)
    ids = rng.integers(0, 32_000, shape)
    batch = {
        "responses": ids,
        "rollout_log_probs": sampler,
        "old_log_probs": (sampler + rng.normal(0, 0.01, shape)).astype(np.float32),
        "response_mask": np.ones(shape, np.int64),
    }
    listed = rng.integers(0, 32_000, (*shape, TOP))
    listed[..., 0] = ids
    top = listed, np.log(rng.dirichlet(np.ones(TOP + 1), shape)[..., :TOP]).astype(np.float32)
    experts = rng.integers(0, N_EXPERTS, (N_RESPONSES, PROMPT + N_TOKENS, LAYERS, TOP)).astype(np.int16)
    return [
        _row("a step of 256 × 1,024 tokens", batch, AIM),
        _row("with the trainer's top 8", batch, top_k=top),
        _row("with both sides' top 8", batch, top_k=top, sampler_top_k=top),
        _row("with experts of 16 layers", {**batch, "routed_experts": experts}, trainer_experts=experts),
    ]


def _row(what: str, batch: dict[str, Any], aim: str = "", **more: Any) -> Row:
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        measure_step(batch, **more)
        times.append(1000 * (time.process_time() - began))
    return median_row(what, times, "ms", aim=aim)
