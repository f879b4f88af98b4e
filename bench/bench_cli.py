"""How long the command takes from its start to its help: processor time, each in a process of its own."""

import resource
import subprocess
import sys

from bench.row import Row, median_row

ROUNDS = 15
LINES = ("--help", "run --help", "compare --help")


def measure() -> list[Row]:
    """Start the interpreter alone as well, in turn: what it takes is no command's."""
    trials: dict[str, list[float]] = {line: [] for line in ("", *LINES)}
    for _ in range(ROUNDS):
        for line, seconds in trials.items():
            seconds.append(_processor_seconds(line))
    return [
        median_row(
            f"evalboard {line}" if line else "the interpreter alone", seconds, "s", aim="at most 0.2" if line else ""
        )
        for line, seconds in trials.items()
    ]


def _processor_seconds(line: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = "from evalboard.cli.main import main; main()" if line else ""
    subprocess.run([sys.executable, "-c", code, *line.split()], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
