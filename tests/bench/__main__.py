"""`make bench`: measure on the real engine and a real PostgreSQL; a table here, JSON in bench/.

The part `sampled` needs no PostgreSQL. The parts `verdict` and `probes` need neither: they simulate, and write what
they measure into docs/verdict.md and docs/probes.md.

Machines are noisy: what is compared is run in turn within one call, and medians and ratios are given.
"""

import argparse
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.bench.database import temporary_database

ROOT = Path(__file__).resolve().parents[2]
Row = dict[str, Any]
PARTS = ("run", "store", "team", "compare", "api", "sign_in", "sampled", "verdict", "probes")
WITHOUT_ENGINE = {"api", "sign_in"}
WITHOUT_DATABASE = {"sampled", "verdict", "probes"}


def main() -> int:
    options = _options()
    rows: list[Row] = []
    if set(options.only) - WITHOUT_DATABASE:
        with temporary_database():
            import django

            django.setup()
            rows += _measure(options)
    if "sampled" in options.only:
        from tests.bench import bench_sampled

        rows += bench_sampled.measure()
    if "verdict" in options.only:
        from tests.bench import bench_verdict

        rows += bench_verdict.measure()
    if "probes" in options.only:
        from tests.bench import bench_probes

        rows += bench_probes.measure()
    _print(rows)
    path = ROOT / "bench" / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": _machine(), "rows": rows}, indent=2) + "\n")
    print(f"\nWritten to {path.relative_to(ROOT)}.")
    return 0


def _measure(options: argparse.Namespace) -> list[Row]:
    from tests.bench import bench_api, bench_compare, bench_run, bench_sign_in, bench_store, bench_team, bench_trace

    if set(options.only) - WITHOUT_ENGINE:
        bench_run.prepare()
    rows: list[Row] = []
    if "run" in options.only:
        rows += bench_run.measure(rounds=options.rounds)
        rows += bench_trace.measure(bench_run.recorded_traces())
    if "store" in options.only:
        rows += bench_store.measure()
    if "team" in options.only:
        rows += bench_team.measure(rounds=min(options.rounds, 3))
    if "compare" in options.only:
        rows += bench_compare.measure()
    if "api" in options.only:
        rows += bench_api.measure()
    if "sign_in" in options.only:
        rows += bench_sign_in.measure()
    return rows


def _print(rows: list[Row]) -> None:
    table = Table(title="Evalboard bench")
    for head in ("what", "value", "unit", "aim"):
        table.add_column(head, justify="right" if head == "value" else "left")
    for row in rows:
        value = row["value"]
        table.add_row(row["what"], f"{value:,.3f}" if isinstance(value, float) else str(value), row["unit"], row["aim"])
    Console(width=120).print(table)


def _machine() -> dict[str, Any]:
    return {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often what is compared is run in turn")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="which parts; all without it")
    return parser.parse_args()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
    sys.exit(main())
