"""`evalboard up`: everything on this machine."""

import os
from typing import Annotated

import typer

CANNOT_START = 4  # as every command that could not do its work


def up(
    port: Annotated[
        int, typer.Option(envvar="PORT", min=1, max=65535, help="Port of the page, on 127.0.0.1 only.")
    ] = 8800,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """Start database, page and runner on this machine, and stay until Ctrl-C."""
    # Here, so that the other commands run where only `evalboard[cli]` is installed.
    from evalboard.local.errors import CannotStart
    from evalboard.local.report import Report
    from evalboard.local.up import Ended, Options, Up

    report = Report(typer.echo, as_json=as_json)
    try:
        Up(Options.read(os.environ, port=port), report).run()
    except CannotStart as problem:
        typer.echo(f"Evalboard cannot start: {problem.detail}", err=True)
        raise typer.Exit(CANNOT_START) from None
    except Ended:  # asked for once more while everything was being ended
        raise typer.Exit(130) from None
