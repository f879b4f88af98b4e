"""Bytes that a stored response takes of PostgreSQL, everything counted: rows, indexes, traces, columns, scores.

Responses take the worker's path (bench_store). Their positions are those of the recorded float32 traces, and their
texts are cut out of docs/, so that both pack as real ones do.
"""

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from django.core.management import call_command
from django.db import connection

from evalboard.core.trace import Decoded, Timings, Trace, join_traces
from runs.run import add_repeats, create_run
from runs.suites import push_suite
from tests.bench.bench_store import serving, store_all
from tests.bench.bench_trace import recorded
from tests.bench.row import Row

SEED = 20261121
N_RESPONSES = 2000
N_POSITIONS, N_CHARACTERS = 200, 660
N_LARGEST = 6  # tables, or their indexes, that are named
ALONE, BESIDE, REPEAT = "at most 2,300", "at most 1,200", "0"
DOCS = Path(__file__).resolve().parents[2] / "docs"
SIZES = """
SELECT relname, pg_table_size(relid), pg_indexes_size(relid) FROM pg_stat_user_tables WHERE schemaname = 'public'
"""


def measure() -> list[Row]:
    """Store a run, the same responses as its second repeat, and a run of the same tokens whose logprobs moved."""
    call_command("load_samples", no_runs=True, stdout=io.StringIO())
    cases = [{"id": str(n), "prompt": "say blue", "target": "blue"} for n in range(N_RESPONSES)]
    push_suite(document={"slug": "bench", "title": "Bench", "scorer": {"kind": "exact"}, "cases": cases})
    worker, process = serving()
    rng = np.random.default_rng(SEED)
    decoded = _decoded(rng)
    sizes = [_sizes()]
    run = create_run(suite="bench", endpoint="sample-float32", profile="pinned", repeats=1)
    store_all(worker, process, decoded)
    sizes.append(_sizes())
    add_repeats(run_id=run.pk, n=1)
    store_all(worker, process, decoded)
    sizes.append(_sizes())
    create_run(suite="bench", endpoint="sample-float32", profile="pinned", repeats=1)
    store_all(worker, process, [replace(each, trace=_moved(each.trace, rng)) for each in decoded])
    sizes.append(_sizes())
    named = (("alone", ALONE), ("an identical repeat", REPEAT), ("beside a run of the same tokens", BESIDE))
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


def _decoded(rng: np.random.Generator) -> list[Decoded]:
    positions = join_traces(recorded("float32"))
    text = " ".join(path.read_text() for path in sorted(DOCS.glob("*.md")))
    n = len(positions.token_ids)
    decoded = []
    for case in range(N_RESPONSES):
        at = np.arange(start := int(rng.integers(n)), start + N_POSITIONS) % n
        first = int(rng.integers(len(text) - N_CHARACTERS))
        trace = Trace(
            positions.token_ids[at],
            positions.logprobs[at],
            positions.alternative_ids[at],
            positions.alternative_logprobs[at],
        )
        decoded.append(
            Decoded(
                case_index=case,
                text=text[first : first + N_CHARACTERS],
                finish_reason="length",
                trace=_moved(trace, rng),
                n_prompt_tokens=20,
                prompt_digest=rng.bytes(16),
                seed_sent=42,
                request_id=f"{case}-0",
                n_cached_tokens=0,
                n_preemptions=0,
                batch_min=1,
                batch_max=1,
                timings=Timings(0.0, 0.0, 0.0),
            )
        )
    return decoded


def _moved(trace: Trace, rng: np.random.Generator) -> Trace:
    """Return the trace with each position's logprobs moved together, as another log-sum moves them: no bits repeat."""
    listed = trace.alternative_logprobs - rng.exponential(1e-3, (len(trace), 1)).astype(np.float32)
    own = listed[np.arange(len(trace)), (trace.alternative_ids == trace.token_ids[:, None]).argmax(axis=1)]
    return replace(trace, logprobs=own, alternative_logprobs=listed)
