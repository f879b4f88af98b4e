"""`evalboard baseline`: choose and list the runs that candidates of a model line are compared with."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.cli.arguments import parse_id
from evalboard.cli.lists import print_list
from evalboard.cli.output import printable
from evalboard.client.access import connect
from evalboard.wording.numbers import score_range

if TYPE_CHECKING:
    from evalboard.contract.baseline import Baseline

app = typer.Typer(help="Baselines.", no_args_is_help=True)


@app.callback()
def baseline() -> None:
    """Baselines."""


@app.command("set")
def set_(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a finished run.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="The reason, stored with the baseline.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the baseline as JSON.")] = False,
) -> None:
    """Make a run the current baseline of its suite, model line and profile."""
    parse_id(run, "RUN")
    with connect() as client:
        suite = client.run(run).value.suite.slug
        answer = client.set_baseline(suite, {"run": run, "reason": reason})
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else _render(answer.value))


@app.command("list")
def list_(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's slug.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the baselines as JSON.")] = False,
) -> None:
    """List the baselines of a suite, newest first, and which of them count."""
    with connect() as client:
        print_list(client.baselines(suite), _list_cells, empty=f"{suite} has no baseline yet.", as_json=as_json)


def _list_cells(baseline: "Baseline") -> tuple[str, ...]:
    state = "expired" if baseline.expired else "current" if baseline.is_current else "replaced"
    score = "–" if baseline.run.range is None else score_range(*baseline.run.range)
    return f"run {baseline.run.id}", baseline.line, baseline.profile, score, state, printable(baseline.reason)


def _render(baseline: "Baseline") -> str:
    score = "" if baseline.run.range is None else f": {score_range(*baseline.run.range)}"
    place = f"{baseline.suite} for {baseline.line} under {baseline.profile}"
    return f"Run {baseline.run.id} is the baseline of {place}{score}. {baseline.run.url}"
