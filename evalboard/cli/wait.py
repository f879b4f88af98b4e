"""`evalboard wait`, and what `evalboard run --wait` does after starting its run."""

import json
from typing import Annotated

import typer

from evalboard.cli import place, reports, run_words
from evalboard.cli.answers import RunAnswer
from evalboard.cli.client import Client
from evalboard.cli.errors import FAILED, INTERRUPTED
from evalboard.cli.patience import GIVE_UP_SECONDS, follow
from evalboard.cli.progress import follower
from evalboard.cli.reports import CommentFile, JunitFile, Reports, SummaryFile


def wait(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    give_up_after: Annotated[
        float, typer.Option(min=0, help="Seconds without an answer of the server after which to stop waiting.")
    ] = GIVE_UP_SECONDS,
    junit: JunitFile = "",
    summary: SummaryFile = "",
    comment: CommentFile = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as JSON when it has ended.")] = False,
) -> None:
    """Wait until a run has ended. Exit code 0: finished; 4: anything else."""
    if not run.isascii() or not run.isdigit():
        raise typer.BadParameter("A run's id is a number.", param_hint="RUN")
    asked = reports.asked(junit=junit, summary=summary, comment=comment)
    with Client(place.find()) as client:
        ended = until_ended(client, run, come_back=f"evalboard wait {run}", give_up_after=give_up_after)
        conclude(client, ended, asked, as_json=as_json)


def until_ended(client: Client, run_id: str, *, come_back: str, give_up_after: float) -> RunAnswer:
    """Follow a run to its end. Ctrl-C ends the command, never the run."""
    try:
        with follower() as told:
            return follow(lambda: client.run(run_id), told, come_back=come_back, give_up_after=give_up_after)
    except KeyboardInterrupt:
        typer.echo(f"Run {run_id} goes on. Come back with: {come_back}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def conclude(client: Client, run: RunAnswer, asked: Reports, *, as_json: bool) -> None:
    """Print a run's result, write the reports, and exit with its code."""
    typer.echo(json.dumps(run.json, ensure_ascii=False) if as_json else f"{run_words.of_end(run)} {run.url}")
    for warning in [] if as_json else run.warnings:
        typer.echo(f"warning: {warning}", err=True)
    code = 0 if run.status == "finished" else FAILED
    raise typer.Exit(reports.of_run(asked, client, run, code=code))
