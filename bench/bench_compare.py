"""Two made-up runs of 5 repeats compared: how long, in how much memory, and how fast its pages are.

Of 100,000 cases everything is measured, of fewer what a person waits for.
Each figure is taken in a process of its own, as a web server or worker would be, against the bench's PostgreSQL.
"""

import json
import subprocess
import sys
from typing import Any

from bench import compare_data
from bench.compare_data import FLIPPED, N_CASES, N_POSITIONS, N_REPEATS, SEED
from bench.row import Row, median_row

FEWER = (1_000, 10_000)
SIZE = f"{N_CASES:,} cases × {N_REPEATS} equal repeats, {N_POSITIONS} positions, made up, seed {SEED}"
SHOWN = "of server time, median of 20"

ROUNDS = 3


def measure() -> list[Row]:
    rows = [row for n_cases in FEWER for row in _fewer(n_cases)]
    runs = compare_data.make_runs()
    return [*rows, *_flipped(runs), *_moved(runs)]


def _fewer(n_cases: int) -> list[Row]:
    runs, size = compare_data.make_runs(n_cases), SIZE.replace(f"{N_CASES:,}", f"{n_cases:,}")
    seconds = [_in_a_process("first", runs.baseline, runs.flipped)["seconds"] for _ in range(ROUNDS)]
    moved = [_in_a_process("moved", runs.baseline, runs.moved) for _ in range(ROUNDS)]
    in_all = [found["counts_seconds"] + found["rest_seconds"] for found in moved]
    shown = _in_a_process("page", runs.baseline, runs.flipped)
    return [
        median_row(f"first comparison, {FLIPPED:.0%} of responses flipped ({size})", seconds, "s", aim="at most 1"),
        median_row(f"every logprob moved: all of it, by one worker ({size})", in_all, "s"),
        Row(f"compare page ({size})", 1000 * shown["page_seconds"], "ms", SHOWN, "at most 50"),
    ]


def _flipped(runs: compare_data.Runs) -> list[Row]:
    first = [_in_a_process("first", runs.baseline, runs.flipped) for _ in range(ROUNDS)]
    shown = _in_a_process("shown", runs.baseline, runs.flipped)
    what = f"{FLIPPED:.0%} of responses flipped"
    seconds = [found["seconds"] for found in first]
    return [
        median_row(f"first comparison, {what} ({SIZE})", seconds, "s", aim="at most 1"),
        _shown("the same again (stored)", shown["again_seconds"], "at most 100"),
        _shown("compare page", shown["page_seconds"], "at most 50"),
        _shown("compare page filtered, page 3", shown["filtered_seconds"], "at most 50"),
        _shown("GET /compare/cases/", shown["cases_seconds"], "at most 50"),
        _memory("memory of the comparing process", max(found["peak_mb"] for found in first)),
    ]


def _moved(runs: compare_data.Runs) -> list[Row]:
    found = _in_a_process("moved", runs.baseline, runs.moved)
    what = "every logprob moved"
    return [
        Row(f"{what}: counts by digest ({SIZE})", found["counts_seconds"], "s"),
        Row(f"{what}: the rest, by one worker ({SIZE})", found["rest_seconds"], "s", f"{found['n_pairs']:,} pairs"),
        Row(f"{what}: longest chunk ({SIZE})", found["longest_seconds"], "s"),
        _memory(f"{what}: memory of the worker", found["peak_mb"]),
        _shown(f"{what}: compare page", found["page_seconds"], "at most 50"),
    ]


def _in_a_process(what: str, baseline: int, candidate: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.compare_once", what, str(baseline), str(candidate)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def _shown(what: str, seconds: float, aim: str) -> Row:
    return Row(f"{what} ({SIZE})", 1000 * seconds, "ms", SHOWN, aim)


def _memory(what: str, peak_mb: float) -> Row:
    return Row(f"{what} ({SIZE})", peak_mb, "MB", "peak", "at most 500")
