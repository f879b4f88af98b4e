"""Calls to a server of others: what the caller takes beside bare httpx, and the memory of many calls at once.

The server is a process of its own on this machine that answers after a fixed time: 128 tokens with two alternatives.
httpx posts the same and parses the JSON; ours reads the answer into positions besides.
"""

import json
import subprocess
import sys
from statistics import median
from typing import Any

from bench.row import Row, median_row

N_CALLS, N_ROUNDS, IN_FLIGHT, SECONDS = 200, 7, 8, 0.1
MANY_CALLS, MANY_IN_FLIGHT, MANY_SECONDS = 10_000, 64, 0.05


def measure() -> list[Row]:
    """Call in turn by both, then many at once by ours."""
    few, _ = _against_server(SECONDS, IN_FLIGHT, N_CALLS, N_ROUNDS)
    extra = [1000 * (ours - bare) * IN_FLIGHT / N_CALLS for ours, bare in zip(few["ours"], few["bare"], strict=True)]
    ratios = [ours / bare for ours, bare in zip(few["ours"], few["bare"], strict=True)]
    many, n_connections = _against_server(MANY_SECONDS, MANY_IN_FLIGHT, MANY_CALLS, 1)
    what = f"calls to a server of others that answers in {1000 * SECONDS:g} ms, {IN_FLIGHT} in flight"
    most = f"{MANY_CALLS:,} calls to a server of others, {MANY_IN_FLIGHT} in flight"
    rate = f"{MANY_CALLS / median(many['ours']):.0f} calls a second"
    return [
        median_row(f"{what}: a call beside bare httpx", extra, "ms", aim="at most 5"),
        median_row(f"{what}: the whole against bare httpx", ratios, "ratio", aim="at most 1.05"),
        Row(f"{most}: memory", many["peak_mb"], "MB", f"peak; {rate}", "at most 300"),
        Row(f"{most}: connections", float(n_connections), "", "in all", "at most 500, of 20 calls each"),
    ]


def _against_server(seconds: float, in_flight: int, n: int, n_rounds: int) -> tuple[dict[str, Any], int]:
    """Return what was measured, and how many connections the server has had."""
    command = [sys.executable, "-m", "bench.endpoint_server", str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        command = [sys.executable, "-m", "bench.endpoint_once", port, *map(str, (in_flight, n, n_rounds))]
        answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        counted, _ = server.communicate("")
    return json.loads(answer.stdout.splitlines()[-1]), int(counted)
