"""What real traces take, and how fast they are packed and read. No database and no engine is needed:

    python -m tests.bench.bench_trace

measures the traces recorded in tests/core/data (docs/trace-format.md says how). `make bench` also hands in those
of the run it has just made.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import zstandard

from evalboard.core import codec
from evalboard.core.trace import Trace

DATA = Path(__file__).resolve().parents[1] / "core" / "data"
RECORDED = {"float32": "at most 9.5", "bfloat16": ""}  # engine dtype → aim for usual lengths stored alone
USUAL = 100  # positions; shorter answers pay more for what a block costs once
PER_BLOCK = 32
ROUNDS = 15
COMMAND = "python -m tests.bench.bench_trace"

Row = dict[str, Any]


def measure(traces: Sequence[Trace] = ()) -> list[Row]:
    """Rows for the recorded traces of each dtype, then for the given ones, such as those of a fresh run."""
    rows: list[Row] = []
    for dtype, aim in RECORDED.items():
        rows += _sizes(_bare(recorded(dtype)), f"real traces, {dtype}", aim, COMMAND)
    if traces:
        rows += _sizes(_bare(traces), "this run's traces", "", "make bench")
    return rows + _speeds(recorded("float32"))


def recorded(dtype: str) -> list[Trace]:
    return codec.read_block((DATA / f"smollm2-{dtype}.evt").read_bytes())


def _bare(traces: Sequence[Trace]) -> list[Trace]:
    """Without prompt ids, which are not positions."""
    return [replace(trace, prompt_token_ids=None) for trace in traces]


def _sizes(traces: Sequence[Trace], whose: str, aim: str, command: str) -> list[Row]:
    def row(what: str, size: float, of: Sequence[Trace], aim: str = "") -> Row:
        told = f"{whose}, {what}"
        return {"what": told, "value": size / _positions(of), "unit": "bytes/position", "aim": aim, "command": command}

    def alone(of: Sequence[Trace]) -> int:
        return sum(len(codec.encode_block([trace])) for trace in of)

    usual = [trace for trace in traces if len(trace) >= USUAL]
    blocks = [traces[start : start + PER_BLOCK] for start in range(0, len(traces), PER_BLOCK)]
    texts = [_as_json(trace) for trace in traces]
    mean = _positions(traces) / len(traces)
    rows = [row(f"alone, {USUAL} positions or more", alone(usual), usual, aim)] if usual else []
    return [
        *rows,
        row(f"alone, all lengths (mean {mean:.0f})", alone(traces), traces),
        row(f"in blocks of {PER_BLOCK}", sum(len(codec.encode_block(block)) for block in blocks), traces),
        row("the same as JSON", sum(map(len, texts)), traces),
        row(
            "the same as JSON under zstd, each alone", sum(len(zstandard.compress(text, 19)) for text in texts), traces
        ),
    ]


def _speeds(traces: Sequence[Trace]) -> list[Row]:
    block, n = traces[:PER_BLOCK], _positions(traces[:PER_BLOCK])
    packed = codec.encode_block(block)
    timed: list[tuple[str, Callable[[], object]]] = [
        (f"packing a block of {PER_BLOCK} real traces", lambda: codec.encode_block(block)),
        ("packing the same alone", lambda: [codec.encode_block([trace]) for trace in block]),
        (f"reading a block of {PER_BLOCK} real traces", lambda: codec.read_block(packed)),
    ]
    return [
        {"what": what, "value": n / _seconds(work), "unit": "positions/s", "aim": "", "command": COMMAND}
        for what, work in timed
    ]


def _seconds(work: Callable[[], object]) -> float:
    spans = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        spans.append(time.perf_counter() - began)
    return median(spans)


def _positions(traces: Sequence[Trace]) -> int:
    return sum(len(trace) for trace in traces)


def _as_json(trace: Trace) -> bytes:
    """The same facts as compact JSON, each float as the shortest decimal that gives the float32 back."""
    positions = [
        [
            int(token),
            _decimal(logprob),
            [[found.token_id, _decimal(np.float32(found.logprob))] for found in alternatives],
        ]
        for token, logprob, alternatives in zip(
            trace.token_ids, trace.logprobs, map(trace.alternatives, range(len(trace))), strict=True
        )
    ]
    return json.dumps(positions, separators=(",", ":")).encode()


def _decimal(logprob: np.float32) -> float | None:
    return float(str(logprob)) if np.isfinite(logprob) else None


if __name__ == "__main__":
    for found in measure():
        sys.stdout.write(f"{found['value']:>14,.2f} {found['unit']:<15} {found['what']}\n")
