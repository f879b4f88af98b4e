"""Logs of other tools imported whole, from the file to the stored and scored run; time and memory of a response.

Each import is a process of its own, as a web server's would be, against the bench's PostgreSQL. Time is of the
processor, of the importing process and of the one that reads the log for it; the database's own is not in it.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.import_data import N_POSITIONS, SEED, write_chat_lines, write_inspect_log
from bench.row import Row

# No more than 512 MiB are read of one log, unpacked: 2,300 of Inspect's samples, 9,000 of the lines.
LOGS: tuple[tuple[str, str, Callable[[Path, int], None], tuple[int, ...], float], ...] = (
    ("Inspect log", "eval", write_inspect_log, (1000, 2000), 3.0),
    ("raw chat lines", "jsonl", write_chat_lines, (1000, 8_000), 1.2),
)


def measure() -> list[Row]:
    """Import each kind of log at each size."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, ending, write, sizes, aim in LOGS:
            for n in sizes:
                path = Path(folder) / f"{ending}-{n}.{ending}"
                write(path, n)
                rows += _rows(f"{name} of {n:,} responses", _in_a_process(path), aim)
                path.unlink()
    return rows


def _in_a_process(path: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.import_once", str(path)]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return measured


def _rows(what: str, measured: dict[str, Any], aim: float) -> list[Row]:
    """Time is the processor's, of both processes and with their starts."""
    what, n = f"import, {what} of {N_POSITIONS} positions, made up, seed {SEED}", measured["n_responses"]
    by_the_clock = f"of the processor, a response; {1000 * measured['seconds'] / n:.2f} by the clock"
    return [
        Row(what, 1000 * measured["processor_seconds"] / n, "ms", by_the_clock, f"at most {aim:g}"),
        Row(f"{what}: the importing process", measured["peak_mb"], "MB", "peak", "at most 500"),
        Row(f"{what}: its reader", measured["reader_peak_mb"], "MB", "peak", "at most 500"),
    ]
