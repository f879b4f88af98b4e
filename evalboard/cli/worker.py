"""`evalboard worker` and `evalboard scheduler`: processes of an installation, not clients of one.

They take this process's place, so that a signal reaches the worker itself.
"""

import os
import sys
from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Log one JSON object a line; with --self-test, its result.")]


def worker(
    pool: Annotated[str, typer.Option(help="The endpoints' pool that this worker serves.")] = "default",
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Test this node's arithmetic, keep the result with the node, and end.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Join a pool with this machine's engine, until SIGTERM or Ctrl-C. DATABASE_URL and REDIS_URL say whose pool."""
    test = ["--self-test", *(["--json"] if as_json else [])] if self_test else []
    _become("--pool", pool, *test, as_json=as_json)


def scheduler(as_json: AsJson = False) -> None:
    """Sweep and ring at fixed times, until SIGTERM or Ctrl-C. One for an installation; two do no harm."""
    _become("--scheduler", as_json=as_json)


def _become(*options: str, as_json: bool) -> None:
    environment = {**os.environ, "EVALBOARD_LOG_FORMAT": "json"} if as_json else dict(os.environ)
    sys.stdout.flush()
    command = [sys.executable, "-m", "worker", *options]
    os.execve(sys.executable, command, environment)  # noqa: S606  no shell is wanted
