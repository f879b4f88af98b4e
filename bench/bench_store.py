"""Responses with traces stored per second, through the services that a worker calls; no engine takes part.

The clock runs from a run's first claim to its end: each shard is claimed, its responses are recorded in the batches
that a fast engine fills, its traces become final, and the repeat is scored. One worker, on one connection.
"""

import io
import secrets
import time
from collections.abc import Sequence

import numpy as np
from django.core.management import call_command
from django.db import connection

from bench.row import Row, median_row
from evalboard.core.trace import Decoded, Timings, TokenTrace
from runs.models import EngineProcess, Shard, WorkerRecord
from runs.run import add_repeats, create_run
from runs.suites import push_suite
from runs.work import (
    claim_shard,
    close_engine_process,
    finish_shard,
    open_engine_process,
    record_outcomes,
    register_worker,
    stop_worker,
)
from tests import outcomes
from worker.shard_steps import BATCH

SEED = 20261121
N_RESPONSES = 2000
N_POSITIONS = 100
ROUNDS = 5
AIM = "at least 2,000"
SETTINGS = ("synchronous_commit", "fsync")  # of PostgreSQL; off, they would make a commit cheap and a crash dear


def measure(*, rounds: int = ROUNDS) -> list[Row]:
    """Record made-up responses of 100 positions, top-2, and the same ones again in a second repeat of the run."""
    call_command("load_samples", no_runs=True, stdout=io.StringIO())
    cases = [{"id": str(n), "prompt": "say blue", "target": "blue"} for n in range(N_RESPONSES)]
    push_suite(document={"slug": "bench", "title": "Bench", "scorer": {"kind": "exact"}, "cases": cases})
    worker, process = serving()
    rng = np.random.default_rng(SEED)
    new: list[float] = []
    equal: list[float] = []
    for _ in range(rounds):
        decoded = [_decoded(case, rng) for case in range(N_RESPONSES)]
        run = create_run(suite="bench", endpoint="sample-float32", profile="pinned", repeats=1)
        new.append(store_all(worker, process, decoded))
        add_repeats(run_id=run.pk, n=1)
        equal.append(store_all(worker, process, decoded))
    close_engine_process(process=process, last_words="")
    stop_worker(worker=worker)
    return [_row("new traces", new, AIM), _row("traces that an earlier repeat holds", equal)]


def serving() -> tuple[WorkerRecord, EngineProcess]:
    name = f"bench-{secrets.token_hex(2)}"
    worker = register_worker(name=name, host="bench", pid=0, pool="default", hardware={}, versions={})
    process = open_engine_process(
        worker=worker,
        manifest=outcomes.manifest(),
        wanted_pins={},
        batch_class="alone",
        line="bench",
        model_name="bench",
        start_seconds=0.0,
    )
    return worker, process


def store_all(worker: WorkerRecord, process: EngineProcess, decoded: Sequence[Decoded]) -> float:
    """Store all that there is to claim, one repeat; return responses per second."""
    shards = Shard.objects.in_bulk()
    began = time.perf_counter()
    while lease := claim_shard(worker=worker):
        shard = shards[lease.id]
        for first in range(shard.first, shard.last + 1, BATCH):
            came = decoded[first : min(first + BATCH, shard.last + 1)]
            record_outcomes(lease=lease, process=process, outcomes=came)
        finish_shard(lease=lease)
    return len(decoded) / (time.perf_counter() - began)


def _row(whose: str, rates: Sequence[float], aim: str = "") -> Row:
    what = f"responses stored per second, {whose} ({N_POSITIONS} positions, made up, seed {SEED}; {_settings()})"
    return median_row(what, rates, "responses/s", aim=aim)


def _settings() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings WHERE name = ANY(%s) ORDER BY name", [list(SETTINGS)])
        return ", ".join(f"{name} {value}" for name, value in cursor.fetchall())


def _decoded(case: int, rng: np.random.Generator) -> Decoded:
    ids = rng.integers(0, 49_152, (N_POSITIONS, 2), dtype=np.int32)
    logprobs = -np.sort(rng.exponential(2.0, (N_POSITIONS, 2)).astype(np.float32))
    return Decoded(
        case_index=case,
        text="blue",
        finish_reason="stop",
        trace=TokenTrace(ids[:, 0].copy(), logprobs[:, 0].copy(), ids, logprobs),
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
