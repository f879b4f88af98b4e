"""Two made-up runs of 100,000 cases × 5 repeats compared: how long, in how much memory, and how fast its pages are.

Each figure is taken in a process of its own, as a web server or worker would be, against the bench's PostgreSQL.
"""

import json
import subprocess
import sys
from typing import Any

from tests.bench import compare_data
from tests.bench.compare_data import FLIPPED, N_CASES, N_POSITIONS, N_REPEATS, SEED

ROUNDS = 3

Row = dict[str, Any]


def measure() -> list[Row]:
    runs = compare_data.make_runs()
    return [*_flipped(runs), *_moved(runs), *_long_traces()]


def _flipped(runs: compare_data.Runs) -> list[Row]:
    first = [_in_a_process("first", runs.baseline, runs.flipped) for _ in range(ROUNDS)]
    shown = _in_a_process("shown", runs.baseline, runs.flipped)
    what = f"{FLIPPED:.0%} of responses flipped"
    middle = sorted(first, key=lambda found: found["seconds"])[len(first) // 2]
    spread = f"s, median of {ROUNDS}, to {max(found['seconds'] for found in first):.2f}"
    return [
        _row(f"first comparison, {what}", middle["seconds"], spread, "at most 2"),
        _row("the same again (stored)", 1000 * shown["again_seconds"], "ms, median of 20", "at most 100"),
        _row("compare page", 1000 * shown["page_seconds"], "ms of server time, median of 20", "at most 200"),
        _row("compare page filtered, page 3", 1000 * shown["filtered_seconds"], "ms of server time", "at most 200"),
        _row("GET /compare/cases/", 1000 * shown["cases_seconds"], "ms of server time, median of 20", "at most 200"),
        _row("memory of the comparing process", max(found["peak_mb"] for found in first), "MB, peak", "at most 500"),
    ]


def _moved(runs: compare_data.Runs) -> list[Row]:
    found = _in_a_process("moved", runs.baseline, runs.moved)
    what = "every logprob moved"
    return [
        _row(f"{what}: counts by digest", found["counts_seconds"], "s", ""),
        _row(f"{what}: the rest, by one worker", found["rest_seconds"], f"s, {found['n_pairs']:,} traces each", ""),
        _row(f"{what}: longest chunk", found["longest_seconds"], "s", ""),
        _row(f"{what}: memory of the worker", found["peak_mb"], "MB, peak", "at most 500"),
        _row(f"{what}: compare page", 1000 * found["page_seconds"], "ms of server time", "at most 200"),
    ]


def _long_traces() -> list[Row]:
    """The page of one case whose two traces have 2,000 positions and part late."""
    baseline, candidate = compare_data.make_long_pair()
    found = _in_a_process("pair", baseline, candidate)
    what = f"trace diff page of two {compare_data.LONG:,}-position traces, made up, seed {SEED}"
    unit = "ms of server time, median of 20"
    row = _row(what, 1000 * found["page_seconds"], unit, "at most 100")
    return [row | {"what": what}]


def _in_a_process(what: str, baseline: int, candidate: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench.compare_once", what, str(baseline), str(candidate)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def _row(what: str, value: float, unit: str, aim: str) -> Row:
    size = f"{N_CASES:,} cases × {N_REPEATS} equal repeats, {N_POSITIONS} positions, made up, seed {SEED}"
    return {
        "what": f"{what} ({size})",
        "value": value,
        "unit": unit,
        "aim": aim,
        "command": 'make bench ARGS="--only compare"',
    }
