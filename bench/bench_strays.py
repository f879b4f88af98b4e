"""Looking through the repeats of a made-up run of 100,000 cases × 5, of which some differ: when it ends, and after.

Of each case that differs every repeat has noise of its own, and 6 % of its answers come from another build.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.utils import timezone

from bench import compare_data
from bench.compare_data import FIELDS, N_CASES, N_POSITIONS, N_REPEATS, SEED
from bench.row import Row
from evalboard.core import digest
from evalboard.core.trace import pack_buckets, pack_digests
from runs.models import (
    CaseColumns,
    EndpointRecord,
    EngineProcess,
    ProfileRecord,
    RepeatRecord,
    ResponseRecord,
    RunRecord,
    SuiteVersionRecord,
    TraceBlock,
)
from runs.store import bulk, packed_digest
from runs.store.traces import TRACES_PER_BLOCK

SHARES = (0.02, 0.6)  # of the cases, that differ
NOISE, OFF = 0.01, 0.3  # nats on each logprob
ROUTED = 0.06
SIZE = f"{N_CASES:,} cases × {N_REPEATS}, {N_POSITIONS} positions, made up, seed {SEED}"

Packed = tuple[bytes, list[bytes]]


def measure() -> list[Row]:
    version = compare_data.make_suite()
    rows = []
    for number, share in enumerate(SHARES):
        run = _make_run(version, number, share)
        command = [sys.executable, "-m", "bench.strays_once", str(run.pk)]
        answer = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(answer.stdout.splitlines()[-1])
        what = f"strays, {share:.0%} of the cases differ"
        rows += [
            Row(f"{what}: when the run ends ({SIZE})", found["end_seconds"], "s"),
            Row(
                f"{what}: the rest, by one worker ({SIZE})", found["rest_seconds"], "s", f"{found['n_listed']:,} listed"
            ),
            Row(f"{what}: longest chunk ({SIZE})", found["longest_seconds"], "s"),
            Row(f"{what}: memory of the worker ({SIZE})", found["peak_mb"], "MB", "peak", "at most 500"),
            Row(f"{what}: GET /runs/{{id}}/ after ({SIZE})", found["get_ms"], "ms", "median of 5"),
        ]
    return rows


def _make_run(version: SuiteVersionRecord, number: int, share: float) -> RunRecord:
    process = compare_data.make_process(10 + number, batch_class="mixed")
    endpoint = EndpointRecord.objects.create(
        slug=f"looked-{number}", model_path="/models/m", dtype="bfloat16", line="m"
    )
    profile = ProfileRecord.objects.filter(slug="fast").latest("version")
    ended = {"status": RunRecord.Status.FINISHED, "finished_at": timezone.now()}
    run = RunRecord.objects.create(
        suite_version=version, endpoint=endpoint, profile=profile, bucket_id=process.bucket_id, **ended
    )
    repeats = [RepeatRecord.objects.create(run=run, index=index + 1, **ended) for index in range(N_REPEATS)]
    is_telling = np.random.default_rng(SEED).random(N_CASES) < share
    jobs = [(start, is_telling[start : start + TRACES_PER_BLOCK]) for start in range(0, N_CASES, TRACES_PER_BLOCK)]
    placed: list[list[tuple[int, int, bytes]]] = [[] for _ in repeats]
    with ProcessPoolExecutor(compare_data.N_PROCESSES) as pool, transaction.atomic():
        for (_, telling), packed in zip(jobs, pool.map(_pack, jobs, chunksize=16), strict=True):
            for at, (data, digests) in enumerate(packed):
                if not digests:
                    placed[at] += placed[0][-len(telling) :]
                    continue
                block = TraceBlock.objects.create(run=run, data=data, n_traces=len(digests), is_packed=True)
                own = iter((block.pk, slot, each) for slot, each in enumerate(digests))
                first = placed[0][-len(telling) :]
                placed[at] += [next(own) if at == 0 or tells else first[case] for case, tells in enumerate(telling)]
        for repeat, places in zip(repeats, placed, strict=True):
            _store(repeat, process, places)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return run


def _store(repeat: RepeatRecord, process: EngineProcess, places: list[tuple[int, int, bytes]]) -> None:
    bulk.copy_values(ResponseRecord, FIELDS, _responses(repeat, process, places))
    repeat.engine_processes.add(process)
    packed = {
        "text_digests": pack_digests([digest.text_digest("answer")] * N_CASES),
        "trace_digests": pack_digests([each for _, _, each in places]),
        "buckets": pack_buckets([0] * N_CASES),
    }
    ids = [process.bucket_id]
    CaseColumns.objects.create(repeat=repeat, bucket_ids=ids, digest=packed_digest(**packed, bucket_ids=ids), **packed)


def _responses(
    repeat: RepeatRecord, process: EngineProcess, places: list[tuple[int, int, bytes]]
) -> Iterator[tuple[Any, ...]]:
    text, prompt = digest.text_digest("answer"), digest.short_digest(b"prompt")
    for case, (block, slot, trace) in enumerate(places):
        ours = (text, trace, prompt, N_POSITIONS, 60, str(case), True, 0)
        yield (repeat.pk, case, process.pk, 1, "answer", "stop", "", "", block, slot, *ours)


def _pack(job: tuple[int, np.ndarray]) -> list[Packed]:
    """One block of each repeat: of the first all cases, of the others those that differ."""
    start, is_telling = job
    rng = np.random.default_rng((SEED, start))
    traces = [compare_data.make_trace(rng) for _ in is_telling]
    blocks = [compare_data.pack(traces)]
    for _ in range(1, N_REPEATS):
        own = [
            compare_data.move(trace, rng, 0, OFF if rng.random() < ROUTED else NOISE, most=np.inf)
            for trace, tells in zip(traces, is_telling, strict=True)
            if tells
        ]
        blocks.append(compare_data.pack(own) if own else (b"", []))
    return blocks
