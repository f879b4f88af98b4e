"""What real traces take, and how fast they are packed and read. No database and no engine is needed:

    python -m bench.bench_trace

measures the traces recorded in tests/core/data (docs/formats.md says how), and

    python -m bench.bench_trace parts

what smaller and larger parts would take. `make bench` also hands in those of the run it has just made.
"""

import functools
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import zstandard

from bench.row import Row
from evalboard.core.trace import Reading, TokenTrace, codec, directory, encode_block, read_block, start_size

DATA = Path(__file__).resolve().parents[1] / "tests" / "core" / "data"
RECORDED = {"float32": "at most 9.5", "bfloat16": ""}  # engine dtype → aim for usual lengths stored alone
USUAL = 100  # positions; shorter answers pay more for what a block costs once
PER_BLOCK = 32
N_BLOCKS = 300
ROUNDS = 15


def measure(traces: Sequence[TokenTrace] = ()) -> list[Row]:
    """Return rows for the recorded traces of each dtype, then for the given ones, such as those of a fresh run."""
    return measure_sizes(traces) + _speeds(recorded("float32"))


def measure_sizes(traces: Sequence[TokenTrace] = ()) -> list[Row]:
    """Return the rows of `measure` that are sizes, which no machine changes."""
    rows: list[Row] = []
    for dtype, aim in RECORDED.items():
        rows += _sizes(_bare(recorded(dtype)), f"real traces, {dtype}", aim)
    if traces:
        rows += _sizes(_bare(traces), "this run's traces", "")
    return rows


def recorded(dtype: str) -> list[TokenTrace]:
    return read_block((DATA / f"smollm2-{dtype}.evt").read_bytes())


def _bare(traces: Sequence[TokenTrace]) -> list[TokenTrace]:
    """Without prompt ids, which are not positions."""
    return [replace(trace, prompt_token_ids=None) for trace in traces]


def _sizes(traces: Sequence[TokenTrace], whose: str, aim: str) -> list[Row]:
    def row(what: str, size: float, of: Sequence[TokenTrace], aim: str = "") -> Row:
        return Row(f"{whose}, {what}", size / _positions(of), "bytes/position", aim=aim)

    def alone(of: Sequence[TokenTrace]) -> int:
        return sum(len(encode_block([trace])) for trace in of)

    usual = [trace for trace in traces if len(trace) >= USUAL]
    blocks = [traces[start : start + PER_BLOCK] for start in range(0, len(traces), PER_BLOCK)]
    texts = [_as_json(trace) for trace in traces]
    mean = _positions(traces) / len(traces)
    rows = [row(f"alone, {USUAL} positions or more", alone(usual), usual, aim)] if usual else []
    return [
        *rows,
        row(f"alone, all lengths (mean {mean:.0f})", alone(traces), traces),
        row(f"in blocks of {PER_BLOCK}", sum(len(encode_block(block)) for block in blocks), traces),
        row("the same as JSON", sum(map(len, texts)), traces),
        row(
            "the same as JSON under zstd, each alone", sum(len(zstandard.compress(text, 19)) for text in texts), traces
        ),
    ]


def _speeds(traces: Sequence[TokenTrace]) -> list[Row]:
    block, n = traces[:PER_BLOCK], _positions(traces[:PER_BLOCK])
    packed = encode_block(block)
    timed: list[tuple[str, Callable[[], object]]] = [
        (f"packing a block of {PER_BLOCK} real traces", lambda: encode_block(block)),
        ("packing the same alone", lambda: [encode_block([trace]) for trace in block]),
        (f"reading a block of {PER_BLOCK} real traces", lambda: read_block(packed)),
    ]
    one_of_each = _seconds(lambda: _read_one_of_each(packed)) / N_BLOCKS
    what = f"reading one trace out of each of {N_BLOCKS} blocks of {PER_BLOCK}"
    speeds = [Row(what, n / _seconds(work), "positions/s") for what, work in timed]
    return [*speeds, Row(what, 1 / one_of_each, "traces/s")]


def measure_parts() -> list[Row]:
    """Rows for parts of other sizes: what they take, and the processor time that reading one trace costs."""
    rows: list[Row] = []
    used = codec.PART_CELLS
    for cells in (1, used // 4, used // 2, used, 2 * used, directory.MAX_CELLS):
        codec.PART_CELLS = cells
        for dtype in RECORDED:
            traces = _bare(recorded(dtype))
            blocks = [encode_block(traces[start : start + PER_BLOCK]) for start in range(0, len(traces), PER_BLOCK)]
            size = sum(map(len, blocks)) / _positions(traces)
            work = functools.partial(_read_one_of_each, blocks[0])
            microseconds = 1e6 * _seconds(work, time.process_time) / N_BLOCKS
            what = f"{dtype}, parts of {cells:,} cells"
            rows += [Row(what, size, "bytes/position"), Row(f"{what}, reading one trace", microseconds, "µs")]
    codec.PART_CELLS = used
    return rows


def _read_one_of_each(block: bytes) -> None:
    """Read one trace out of each of many blocks, as a comparison does."""
    start = block[: start_size(block)]
    reading = Reading([start] * N_BLOCKS, [(at, 7 * at % PER_BLOCK) for at in range(N_BLOCKS)])
    reading.columns([block[piece.offset : piece.offset + piece.size] for piece in reading.pieces])


def _seconds(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    spans = []
    for _ in range(ROUNDS):
        began = clock()
        work()
        spans.append(clock() - began)
    return median(spans)


def _positions(traces: Sequence[TokenTrace]) -> int:
    return sum(len(trace) for trace in traces)


def _as_json(trace: TokenTrace) -> bytes:
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
    for found in measure_parts() if sys.argv[1:] == ["parts"] else measure():
        sys.stdout.write(f"{found.value:>14,.2f} {found.unit:<15} {found.what}\n")
