"""`evalboard import`: runs out of another tool's log."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.client.access import connect
from evalboard.client.log_imports import import_log
from evalboard.importers.paths import open_logs
from evalboard.wording.numbers import counted
from evalboard.wording.results import describe_end

if TYPE_CHECKING:
    from evalboard.contract.imports import Import


def import_logs(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES...", help="Files or folders of logs; - reads standard input."),
    ],
    log_format: Annotated[
        str, typer.Option("--format", help="inspect, lm_eval, promptfoo, batch, litellm, scores, chat or rollouts.")
    ] = "auto",
    suite: Annotated[str, typer.Option(help="The suite that the log answers; default: create one from the log.")] = "",
    scale: Annotated[
        str, typer.Option(help="The scale of scores outside 0 to 1, such as 0..10; default: keep them as text.")
    ] = "",
    second_log_of: Annotated[
        str,
        typer.Option(metavar="RUN", help="A run of the same side at another hour, to check for caching."),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the import as JSON.")] = False,
) -> None:
    """Import runs from another tool's log. Importing the same log again finds the stored runs."""
    with connect() as client, open_logs(files) as logs:
        if logs.left_out:
            typer.echo(f"No known format fits {', '.join(logs.left_out)}: left out.", err=True)
        given = {"suite": suite, "scale": scale, "second_of": second_log_of}
        for group in logs.groups(log_format):
            answer = import_log(client, group, log_format=log_format, **given)
            result = _render_result(answer.value, is_new=answer.is_new)
            typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else result)


def _render_result(log: "Import", *, is_new: bool) -> str:
    """Return what was read, a line for each run, then notes on what is not in the log."""
    runs = counted(len(log.runs), "run")
    lines = [f"{log.tool}, read as {log.format}: {f'{runs} imported' if is_new else f'was imported before: {runs}'}."]
    lines += [f"{describe_end(run)} Suite {run.suite.slug} v{run.suite.version}. {run.url}" for run in log.runs]
    return "\n".join([*lines, *(f"Note: {note}" for note in log.notes)])
