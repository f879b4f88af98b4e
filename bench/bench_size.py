"""Bytes that a stored response takes of PostgreSQL, everything counted: rows, indexes, traces, columns, scores;
and those that a forced scoring of it takes.

Responses take the worker's path (bench_store). Their positions are those of the recorded float32 traces, and their
texts are cut out of docs/, so that both pack as real ones do.
"""

import io
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from django.core.management import call_command
from django.db import connection

from bench.bench_store import serving, store_all
from bench.row import Row
from bench.size_data import N_CHARACTERS, N_POSITIONS, N_PROMPT_TOKENS, N_RESPONSES, SEED, make_decoded, move
from evalboard.core.trace import Forced
from runs.forced import (
    AnswerToForce,
    ForcedOutcome,
    claim_forced,
    create_forced,
    finish_forced,
    next_answers,
    record_forced,
)
from runs.models import EngineProcess, WorkerRecord
from runs.run import add_repeats, create_run
from runs.suites import push_suite

N_LARGEST = 6  # tables, or their indexes, that are named
ALONE, BESIDE, REPEAT = "at most 2,300", "at most 1,200", "0"
SIZES = """
SELECT relname, pg_table_size(relid), pg_indexes_size(relid) FROM pg_stat_user_tables WHERE schemaname = 'public'
"""


def measure() -> list[Row]:
    """Store a run, the same responses as its second repeat, a run of the same tokens whose logprobs moved, and that
    run's forced scoring.
    """
    call_command("load_samples", no_runs=True, stdout=io.StringIO())
    cases = [{"id": str(n), "prompt": "say blue", "target": "blue"} for n in range(N_RESPONSES)]
    push_suite(document={"slug": "bench", "title": "Bench", "scorer": {"kind": "exact"}, "cases": cases})
    worker, process = serving()
    rng = np.random.default_rng(SEED)
    decoded = make_decoded(rng)
    sizes = [_sizes()]
    run = create_run(suite="bench", endpoint="sample-float32", profile="pinned", repeats=1)
    store_all(worker, process, decoded)
    sizes.append(_sizes())
    add_repeats(run_id=run.pk, n=1)
    store_all(worker, process, decoded)
    sizes.append(_sizes())
    moved = create_run(suite="bench", endpoint="sample-float32", profile="pinned", repeats=1)
    store_all(worker, process, [replace(each, trace=move(each.trace, rng)) for each in decoded])
    sizes.append(_sizes())
    _score(moved.pk, worker, process, rng)
    sizes.append(_sizes())
    named = (
        ("alone", ALONE),
        ("an identical repeat", REPEAT),
        ("beside a run of the same tokens", BESIDE),
        ("its forced scoring", ""),
    )
    rows: list[Row] = []
    for (what, aim), before, after in zip(named, sizes, sizes[1:], strict=False):
        rows += _rows(what, aim, {name: after[name] - before.get(name, 0) for name in after})
    return rows


def _rows(what: str, aim: str, grown: Mapping[str, int]) -> list[Row]:
    """The whole, and what of it takes the most."""
    made_of = f"{N_POSITIONS} positions, {N_CHARACTERS} characters, real positions and texts, seed {SEED}"
    whole = Row(
        f"bytes per response, everything, {what} ({made_of})", sum(grown.values()) / N_RESPONSES, "bytes", aim=aim
    )
    parts = [
        Row(f"… of which {name}, {what}", grown[name] / N_RESPONSES, "bytes")
        for name in sorted(grown, key=lambda name: -grown[name])[:N_LARGEST]
        if grown[name] >= N_RESPONSES
    ]
    return [whole, *parts]


def _sizes() -> dict[str, int]:
    """Return the bytes of every table, and of its indexes, after VACUUM."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
        cursor.execute(SIZES)
        rows = cursor.fetchall()
    tables = {name: size for name, size, _ in rows}
    return tables | {f"indexes of {name}": size for name, _, size in rows}


def _score(run_id: int, worker: WorkerRecord, process: EngineProcess, rng: np.random.Generator) -> None:
    """Store a forced scoring of a run's answers by the worker's path; no logprob of theirs comes again."""
    create_forced(run_id=run_id, endpoint="sample-float32")
    lease = claim_forced(worker=worker)
    assert lease is not None
    while answers := next_answers(lease.id):
        record_forced(lease=lease, outcomes=[_forced(each, process, rng) for each in answers])
    finish_forced(lease=lease)


def _forced(answer: AnswerToForce, process: EngineProcess, rng: np.random.Generator) -> ForcedOutcome:
    assert answer.trace is not None
    prompt = rng.integers(0, 49_152, N_PROMPT_TOKENS, dtype=np.int32)
    trace = replace(move(answer.trace, rng), prompt_token_ids=prompt)
    outcome = Forced(0, trace, n_cached_tokens=0, batch_min=1, batch_max=1)
    return ForcedOutcome(answer, "same", is_rendered=False, process=process, outcome=outcome)
