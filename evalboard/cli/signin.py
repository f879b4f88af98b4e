"""`evalboard signin`: a link for another browser."""

import json
import os
from typing import Annotated

import typer

from evalboard.cli.errors import CommandError


def signin(as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False) -> None:
    """Print a fresh one-time sign-in link of what `make up` runs on this machine."""
    # Here, so that the other commands run where only `evalboard[cli]` is installed.
    from evalboard.local.errors import CannotStart
    from evalboard.local.signin import fresh_link

    try:
        link = fresh_link(os.environ)
    except CannotStart as problem:
        raise CommandError(problem.detail) from problem
    typer.echo(json.dumps({"url": link}) if as_json else link)
