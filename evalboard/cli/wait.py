"""`evalboard wait`, and what `evalboard run --wait` does after starting its run."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

from evalboard.cli.arguments import parse_id
from evalboard.cli.errors import FAILED, INTERRUPTED
from evalboard.cli.output import decide
from evalboard.cli.reports import (
    CommentFile,
    JunitFile,
    ReportFiles,
    SummaryFile,
    parse_report_files,
    write_run_reports,
)
from evalboard.client.access import connect
from evalboard.client.program import as_typed
from evalboard.client.progress import WaitProgress, run_progress
from evalboard.client.waiting import GIVE_UP_SECONDS, follow, make_follower
from evalboard.wording.results import describe_draws, describe_end

if TYPE_CHECKING:
    from evalboard.client.answers import Answer
    from evalboard.client.rest import RestClient
    from evalboard.contract.run import Run

GiveUpAfter = Annotated[float, typer.Option(min=0, help="Give up after so many seconds without an answer.")]

Json = dict[str, Any]
Result = TypeVar("Result")


def wait(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    junit: JunitFile = "",
    summary: SummaryFile = "",
    comment: CommentFile = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as JSON when it has ended.")] = False,
) -> None:
    """Wait until a run has ended. Exit code 0: finished; 4: anything else."""
    parse_id(run, "RUN")
    files = parse_report_files(junit=junit, summary=summary, comment=comment)
    with connect() as client:
        answer = follow_run(client, run, come_back=f"evalboard wait {run}", give_up_after=give_up_after)
        conclude(client, answer.value, files, as_json=answer.json if as_json else None)


def follow_run(
    client: "RestClient", run_id: str, *, come_back: str, give_up_after: float, sentence: str = ""
) -> "Answer[Run]":
    """Follow a run to its end."""
    return follow_to_end(
        lambda: client.run(run_id),
        run_progress,
        sentence=sentence or f"Run {run_id} goes on.",
        come_back=come_back,
        give_up_after=give_up_after,
    )


def follow_to_end(
    ask: Callable[[], Result],
    read_progress: Callable[[Result], WaitProgress],
    *,
    sentence: str,
    come_back: str,
    give_up_after: float,
) -> Result:
    """Follow something to its end. Ctrl-C ends the command, not the work.

    sentence: printed then, to say that the work continues.
    """
    try:
        with make_follower() as follower:
            return follow(ask, read_progress, follower, come_back=come_back, give_up_after=give_up_after)
    except KeyboardInterrupt:
        typer.echo(as_typed(f"{sentence} Come back with: {come_back}"), err=True)
        raise typer.Exit(INTERRUPTED) from None


def conclude(client: "RestClient", run: "Run", files: ReportFiles, *, as_json: Json | None, note: str = "") -> NoReturn:
    """Print how a run ended, write the reports, and exit with its code.

    as_json: printed in place of the sentences. `note` says what to do next.
    """
    decide()
    if as_json is not None:
        typer.echo(json.dumps(as_json, ensure_ascii=False))
    else:
        typer.echo(f"{describe_end(run)} {run.url}")
        split = run.noise.split
        parts = split.text if split is not None and split.total else ""
        for line in (describe_draws(run), parts, f"next: {as_typed(note)}" if note else ""):
            if line:
                typer.echo(line)
        for warning in run.warnings:
            typer.echo(f"{warning.severity}: {warning.text}", err=True)
        for step in run.trouble.steps if run.trouble else ():
            command = f": {step.command}" if step.command else ""
            typer.echo(as_typed(f"to do: {step.text}{command}"), err=True)
    code = 0 if run.status == "finished" else FAILED
    raise typer.Exit(write_run_reports(files, client, run, code=code, note=note))
