"""The commands of forced scoring: `force`, `on-policy`, `verify`."""

import typer
from typer.core import TyperGroup

from evalboard.cli.forced.force import force
from evalboard.cli.forced.on_policy import on_policy
from evalboard.cli.forced.verify import verify


def register(program: typer.Typer, _: type[TyperGroup]) -> None:
    """Add the commands."""
    program.command()(force)
    program.command("on-policy")(on_policy)
    program.command()(verify)
