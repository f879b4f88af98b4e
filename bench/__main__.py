"""`make bench`: measure on the real engine and a real PostgreSQL; a table here, JSON in bench/results/.

Each part runs in a process of its own, on a database of its own where it needs one. The parts that simulate write what
they measure into docs/ as well. Every figure is held against the one that was kept last, with --keep, in
bench/figures.json.

Machines are noisy: what is compared is run in turn within one call, and medians and ratios are given.
"""

import argparse
import io
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import stored_figures
from bench.database import temporary_database
from bench.row import Row, read_row
from bench.stored_figures import Figure, Standing
from bench.yardstick import read_yardstick

ROOT = Path(__file__).resolve().parents[1]
WITH_DATABASE = (
    "run",
    "endpoints",
    "store",
    "size",
    "team",
    "compare",
    "strays",
    "browser",
    "imports",
    "peers",
    "api",
    "pages",
    "sign_in",
    "find",
    "scorers",
)
WITHOUT_DATABASE = ("cli", "diff", "sampled", "verdict", "edges", "probes", "truth", "forced", "rollouts")
PARTS = (*WITH_DATABASE, *WITHOUT_DATABASE)


def main() -> int:
    """Measure the parts one after another, print them against the stored figures, and write them down."""
    options = _options()
    if options.rows_to:
        options.rows_to.write_text(json.dumps([asdict(row) for row in _measure_here(options.only[0])]))
        return 0
    date = f"{datetime.now(UTC):%Y-%m-%dT%H%M%S}"
    folder = ROOT / "bench" / "results"
    folder.mkdir(exist_ok=True)
    measured: dict[str, list[Figure]] = {}
    failed = []
    for part in options.only:
        before = read_yardstick()
        rows = _measure(part, folder / f"{date}-{part}.rows.json")
        if rows is None:
            failed.append(part)
            continue
        yardstick = (before + read_yardstick()) / 2
        measured[part] = [Figure(row, yardstick, date[:10]) for row in rows]
        _print(part, measured[part])
    path = folder / f"{date}.json"
    figures = {part: [asdict(figure) for figure in found] for part, found in measured.items()}
    path.write_text(json.dumps({"machine": _machine(), "figures": figures}, indent=2) + "\n")
    print(f"\nWritten to {path.relative_to(ROOT)}.")
    if options.keep:
        stored_figures.store(measured)
        print(f"Kept in {stored_figures.PATH.relative_to(ROOT)}.")
    if failed:
        print(f"Not measured, see above: {', '.join(failed)}.")
    return 1 if failed else 0


def _measure(part: str, rows_to: Path) -> list[Row] | None:
    """Measure one part in a process of its own; None where it failed."""
    command = [sys.executable, "-m", "bench", "--only", part, "--rows-to", str(rows_to)]
    if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
        return None
    rows = [read_row(plain) for plain in json.loads(rows_to.read_text())]
    rows_to.unlink()
    return rows


def _measure_here(part: str) -> list[Row]:
    if part in WITHOUT_DATABASE:
        return _rows(part)
    with temporary_database():
        import django
        from django.core.management import call_command

        django.setup()
        call_command("migrate", verbosity=0)
        call_command("load_profiles", stdout=io.StringIO())
        return _rows(part)


def _rows(part: str) -> list[Row]:
    rows: list[Row] = import_module(f"bench.bench_{part}").measure()
    return rows


def _print(part: str, figures: Sequence[Figure]) -> None:
    table = Table(title=f'make bench ARGS="--only {part}"')
    for head in ("what", "value", "unit", "aim", "kept", "against it"):
        table.add_column(head, justify="right" if head in ("value", "kept") else "left")
    stored = stored_figures.load().get(part, {})
    standings = []
    for figure in figures:
        row, last = figure.row, stored.get(figure.row.what)
        unit = f"{row.unit}, {row.note}" if row.unit and row.note else row.unit or row.note
        if last is None or last.row.unit != row.unit:
            table.add_row(row.what, _number(row.value), unit, row.aim, "", "new")
            continue
        standing = last.judge(row, yardstick=figure.yardstick)
        standings.append(standing)
        table.add_row(row.what, _number(row.value), unit, row.aim, _number(last.row.value), standing.value)
    Console(width=150).print(table)
    if standings:
        counts = ", ".join(f"{standings.count(each)} {each.value}" for each in Standing)
        print(f"Against the figures kept: {counts}.")


def _number(value: float | str) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else str(value)


def _machine() -> Mapping[str, Any]:
    return {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="which parts; all without it")
    parser.add_argument("--keep", action="store_true", help="put these figures in place of those kept")
    parser.add_argument("--rows-to", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
    sys.exit(main())
