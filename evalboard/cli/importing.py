"""`evalboard import`: runs out of another tool's log."""

import json
from pathlib import Path
from typing import Annotated

import typer

from evalboard.cli import place, run_words
from evalboard.cli.answers import ImportAnswer, RunAnswer
from evalboard.cli.client import Client
from evalboard.cli.transfer import transfer


def import_logs(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="The files of one log, or of several.")],
    log_format: Annotated[
        str, typer.Option("--format", help="inspect, lm_eval, promptfoo, batch, litellm or chat.")
    ] = "auto",
    suite: Annotated[
        str, typer.Option(help="The slug of a suite whose cases the log answers; else a suite is made of the log.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the import as JSON.")] = False,
) -> None:
    """Read another tool's log, and store its runs. The same log again finds what was stored."""
    named = files[0].name if len(files) == 1 else f"{len(files)} files"
    with Client(place.find()) as client, transfer(named) as told:
        answer = client.import_logs(files, log_format=log_format, suite=suite, tell=told.tell)
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else _result(answer))


def _result(answer: ImportAnswer) -> str:
    """What was read, a line for each run, then what the log does not say."""
    n_runs = len(answer.runs)
    runs = "1 run" if n_runs == 1 else f"{n_runs} runs"
    state = f"{runs} imported" if answer.is_new else f"was imported before: {runs}"
    lines = [f"{answer.json['tool']}, read as {answer.json['format']}: {state}."]
    lines += [f"{run_words.of_end(run)} {_place(run)}" for run in answer.runs]
    return "\n".join([*lines, *(f"Note: {note}" for note in answer.json["notes"])])


def _place(run: RunAnswer) -> str:
    return f"Suite {run.suite} v{run.json['suite']['version']}. {run.url}"
