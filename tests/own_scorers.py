"""A worker that has a team's own scorer: the program that `evalboard scorer new` writes, under a real runner."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalboard.cli.scorer_files import write_program
from tests.worker.test_remote_runs import no_engine
from worker.runner import Runner

NAME = "folded"
SPEC = {"kind": "command", "name": NAME}


@contextmanager
def working(settings: Any, folder: Path, name: str = NAME) -> Iterator[Runner]:
    """A runner without an engine whose folder of scorers has the program; `work()` takes what waits."""
    settings.SCORERS_DIR = folder / "scorers"
    settings.SCORERS_DIR.mkdir(exist_ok=True)
    write_program(settings.SCORERS_DIR / name)
    with running() as runner:
        yield runner


@contextmanager
def running() -> Iterator[Runner]:
    """A runner with the programs of the settings' folder."""
    runner = Runner(pool="default", hardware={"kind": "none"}, make_engine=no_engine)
    try:
        yield runner
    finally:
        runner.stop()
        runner.run_forever()  # which closes what is open, and leaves
