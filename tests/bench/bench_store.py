"""Responses with traces stored per second, through the path that a worker takes."""

import time
from typing import Any

import numpy as np

from evalboard.core.provenance import Decoded, Timings
from evalboard.core.trace import Trace
from runs import services
from runs.models import EngineProcess, Shard, Worker
from worker.recorder import BATCH

SEED = 20261121
N_RESPONSES = 2000
N_POSITIONS = 100


def measure() -> list[dict[str, Any]]:
    """Record made-up responses of 100 positions, top-2, in the batches that a fast engine fills."""
    rng = np.random.default_rng(SEED)
    cases = [{"id": str(n), "prompt": "say blue", "target": "blue"} for n in range(N_RESPONSES)]
    services.push_suite(document={"slug": "bench", "title": "Bench", "scorer": {"kind": "exact"}, "cases": cases})
    services.create_run(suite="bench", endpoint="sample-float32", profile="pinned", repeats=1)
    process = EngineProcess.objects.latest("id")
    worker = Worker.objects.latest("id")
    decoded = [_decoded(case, rng) for case in range(N_RESPONSES)]
    began = time.perf_counter()
    while lease := services.claim_shard(worker=worker):
        shard = Shard.objects.get(pk=lease.shard_id)
        for first in range(shard.first, shard.last + 1, BATCH):
            outcomes = decoded[first : min(first + BATCH, shard.last + 1)]
            services.record_outcomes(lease=lease, process=process, outcomes=outcomes)
        services.finish_shard(lease=lease)
    rate = N_RESPONSES / (time.perf_counter() - began)
    what = f"responses stored per second ({N_POSITIONS} positions, made up, seed {SEED})"
    return [{"what": what, "value": rate, "unit": "responses/s", "aim": "", "command": "make bench"}]


def _decoded(case: int, rng: np.random.Generator) -> Decoded:
    ids = rng.integers(0, 49_152, (N_POSITIONS, 2), dtype=np.int32)
    logprobs = -np.sort(rng.exponential(2.0, (N_POSITIONS, 2)).astype(np.float32))
    return Decoded(
        case_index=case,
        text="blue",
        finish_reason="stop",
        trace=Trace(ids[:, 0].copy(), logprobs[:, 0].copy(), ids, logprobs),
        n_prompt_tokens=20,
        prompt_digest=bytes(16),
        seed_sent=42,
        request_id=str(case),
        n_cached_tokens=0,
        n_preemptions=0,
        batch_min=1,
        batch_max=1,
        timings=Timings(0.0, 0.0, 0.0),
    )
