"""The first divergence of two logs of made-up responses: Inspect's own API beside a comparison here, of the same files.

Inspect is installed into bench/results/peers, apart from what is locked. Reading the logs is its work; here they were
read when they were imported (bench_imports has what that takes), and the comparison reads what is stored. Each is a
process of its own; processor time leaves the database's out.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from django.db import connection

from bench import peer_install
from bench.import_data import N_POSITIONS, SEED, write_inspect_log
from bench.row import Row
from evalboard.importers.files import LogFile
from runs.imports import import_logs

ROOT = Path(__file__).resolve().parents[1]
N_RESPONSES, N_FLIPS, SHIFT = (
    1000,
    46,
    1e-4,
)  # of each log; of those, how many flip; by how many nats every logprob moves

STORED = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'runs\\_%'"


def measure(n: int = N_RESPONSES, n_flips: int = N_FLIPS) -> list[Row]:
    python = peer_install.install()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{name}.eval" for name in ("baseline", "candidate")]
        write_inspect_log(paths[0], n, is_of_today=True)
        write_inspect_log(paths[1], n, n_flips=n_flips, shift=SHIFT, is_of_today=True)
        theirs = _in_a_process([str(python), str(Path(__file__).with_name("peer_inspect.py")), *map(str, paths)])
        n_before = _n_bytes()
        runs = [import_logs(files=[LogFile(path.name, path)], user=None)[1][0].pk for path in paths]
        n_bytes = _n_bytes() - n_before
    ours = _in_a_process([sys.executable, "-m", "bench.peer_ours", *map(str, runs)])
    assert theirs["n_flips"] == ours["n_flips"] == n_flips, (theirs, ours)
    what = (
        f"first divergence of 2 × {n:,} responses of {N_POSITIONS} positions, {n_flips} flips, every logprob moved, "
        f"made up, seed {SEED}"
    )
    inspect = f"Inspect {theirs['version']}"
    return [
        _row(f"{what}: {inspect}, its own API", theirs),
        _row(f"{what}: Evalboard, first comparison", ours),
        Row(f"{what}: {inspect} against Evalboard", theirs["processor_seconds"] / ours["processor_seconds"], "times"),
        Row(f"{what}: {inspect}, its logs", theirs["n_bytes"] / 1e6, "MB"),
        Row(f"{what}: Evalboard, tables and indexes", n_bytes / 1e6, "MB"),
    ]


def _row(what: str, measured: dict[str, Any]) -> Row:
    return Row(what, measured["processor_seconds"], "s", f"of the processor; {measured['seconds']:.1f} s by the clock")


def _n_bytes() -> int:
    with connection.cursor() as cursor:
        cursor.execute(STORED)
        return int(cursor.fetchone()[0])


def _in_a_process(command: list[str]) -> dict[str, Any]:
    answer = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found
