"""`evalboard baseline set`: what candidates of a model line are held against from now on."""

import json
from typing import Annotated

import typer

from evalboard.cli import place, run_words
from evalboard.cli.answers import RunAnswer
from evalboard.cli.client import Client

app = typer.Typer(help="Baselines.", no_args_is_help=True)


@app.callback()
def baseline() -> None:
    """Baselines."""


@app.command("set")
def set_(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a finished run.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why this one; it is kept with the baseline.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the baseline as JSON.")] = False,
) -> None:
    """Make a run the current baseline of its suite, model line and profile."""
    if not run.isascii() or not run.isdigit():
        raise typer.BadParameter("A run's id is a number.", param_hint="RUN")
    with Client(place.find()) as client:
        suite = str(client.run(run).json["suite"]["slug"])
        made = client.set_baseline(suite, {"run": run, "reason": reason})
    if as_json:
        typer.echo(json.dumps(made, ensure_ascii=False))
        return
    of = RunAnswer(made["run"])
    score = "" if of.range is None else f": {run_words.span(of.range)}"
    typer.echo(
        f"Run {of.id} is the baseline of {made['suite']} for {made['line']} under {made['profile']}{score}. {of.url}"
    )
