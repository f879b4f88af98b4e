"""Commands that run on this machine: `evalboard up`, `signin`, `tour`, `worker` and `scheduler`.

Each imports its part of the product when called: other commands run with only the command line installed. There, each
of these says what to install.
"""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from evalboard.cli.errors import FAILED, INTERRUPTED, CommandError
from evalboard.client.program import as_typed

AsJson = Annotated[
    bool, typer.Option("--json", help="Log one JSON object per line; with --self-test, print its result as JSON.")
]

# Built-in profiles, and what is exchanged in them: worker/prove.py reads the names.
PROOF_SETUPS = (
    "fast",
    "pinned",
    "invariant",
    "pinned-cached",
    "invariant-cached",
    "invariant-tp2",
    "invariant-pp2",
    "fast-fp8",
    "pinned-fp8",
    "invariant-fp8",
)
worker_app = typer.Typer(rich_markup_mode=None)
ROOT = Path(__file__).resolve().parents[2]


def up(
    port: Annotated[
        int, typer.Option(envvar="PORT", min=1, max=65535, help="Port of the page, on 127.0.0.1 only.")
    ] = 8800,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Start database, page and runner on this machine, and stay until Ctrl-C."""
    _check_product("up")
    from evalboard.local.report import CannotStart, Report
    from evalboard.local.up import Ended, Options, Up

    report = Report(typer.echo, as_json=as_json)
    try:
        Up(Options.read(os.environ, port=port), report).run()
    except CannotStart as problem:
        typer.echo(f"Evalboard cannot start: {as_typed(problem.detail)}", err=True)
        raise typer.Exit(FAILED) from None
    except Ended:  # asked for once more while everything was being ended
        raise typer.Exit(INTERRUPTED) from None


def signin(as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False) -> None:
    """Print a one-time sign-in link for the server that `make up` runs on this machine."""
    _check_product("signin")
    from evalboard.local.signin import fresh_link

    link = fresh_link(os.environ)
    typer.echo(json.dumps({"url": link}) if as_json else link)


def tour(
    remove: Annotated[bool, typer.Option("--remove", help="Remove the tour's data; signed releases stay.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Put the sample of the tour onto the board that runs on this machine, or take it away."""
    _check_product("tour")
    from evalboard.local.manage import manage, running_folder
    from evalboard.local.signin import PERSON

    folder, _ = running_folder(os.environ)
    options = ["--remove"] if remove else []
    text = manage(os.environ, folder, "sample_tour", PERSON, *options, failed="The tour was left as it is")
    typer.echo(json.dumps({"text": text}) if as_json else text)


@worker_app.callback(invoke_without_command=True)
def worker(
    context: typer.Context,
    pool: Annotated[str, typer.Option(help="The pool of endpoints to serve.")] = "default",
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Test this node's arithmetic, store the result, and exit.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve a pool with this machine's engine until SIGTERM or Ctrl-C. Needs DATABASE_URL and REDIS_URL."""
    if context.invoked_subcommand is not None:
        return
    _check_product("worker")
    test = ["--self-test", *(["--json"] if as_json else [])] if self_test else []
    _become(f"--pool={pool}", *test, as_json=as_json)


@worker_app.command()
def prove(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="Folders, or repositories as NAME@REVISION; else the sample model."),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The archive.")] = Path("proof.zip"),
    suite: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A suite as JSON or JSONL; else the sample suite.")
    ] = None,
    setup: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"One of {', '.join(PROOF_SETUPS)}; several times. All unless given."),
    ] = None,
    dtype: Annotated[str, typer.Option(metavar="bfloat16|float16|float32")] = "bfloat16",
    max_model_len: Annotated[int, typer.Option(min=64, help="Context in tokens.")] = 2048,
    passes: Annotated[int, typer.Option(min=2, max=20, help="Decodings of the suite in the first engine.")] = 3,
    prompts: Annotated[int, typer.Option(min=1, max=10, help="Prompts of the determinism probe.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the proof without manifests as JSON.")] = False,
) -> None:
    """Measure what this node's engine does, and write one archive. Needs no server and no database.

    Exit code: 0 if no setup moved a bit that it holds still, 1 if one did, 4 if one could not be measured.
    """
    _check_product("worker prove")
    from evalboard.local.engine import own_python
    from evalboard.local.manage import ROOT, data_folder

    unknown = sorted(set(setup or ()) - set(PROOF_SETUPS))
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(PROOF_SETUPS)}.", param_hint="--setup")
    file = suite or ROOT / "runs" / "samples" / "sample.json"
    order = {
        "models": [str(Path(model).resolve()) if Path(model).exists() else model for model in models or ()],
        "sample_model": str(data_folder(os.environ).sample_model),
        "suite": str(file.resolve()),
        "setups": setup or list(PROOF_SETUPS),
        "dtype": dtype,
        "max_model_len": max_model_len,
        "n_passes": passes,
        "n_prompts": prompts,
        "python": os.environ.get("EVALBOARD_VLLM_PYTHON") or str(own_python(ROOT)),
        "out": str(output.resolve()),
        "as_json": as_json,
    }
    _become("prove", json.dumps(order), as_json=as_json)


def scheduler(as_json: AsJson = False) -> None:
    """Sweep and ring at fixed times, until SIGTERM or Ctrl-C. One for an installation; two do no harm."""
    _check_product("scheduler")
    _become("--scheduler", as_json=as_json)


def _check_product(command: str) -> None:
    """Refuse a command of a server where only the command line is installed. Raises CommandError."""
    missing = "psycopg" if find_spec("psycopg") is None else ""
    if command == "up" and not (ROOT / "manage.py").exists():  # a wheel has none
        missing = missing or "manage.py"
    if missing:
        raise CommandError(
            f"`{command}` runs or reaches into a server on this machine, and only the command line is installed here "
            f"({missing} is missing). In a checkout of Evalboard, `make install` installs the rest; "
            f"then type `.venv/bin/evalboard {command}` there."
        )


def _become(*options: str, as_json: bool) -> None:
    """Take this process's place, so that a signal reaches the worker itself."""
    environment = {**os.environ, "EVALBOARD_LOG_FORMAT": "json"} if as_json else dict(os.environ)
    sys.stdout.flush()
    command = [sys.executable, "-m", "worker", *options]
    os.execve(sys.executable, command, environment)  # noqa: S606  no shell is wanted
