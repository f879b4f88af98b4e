"""`evalboard run`: ask for a run, and wait for it if told to."""

import json
from typing import Annotated, Any

import typer

from evalboard.cli import place
from evalboard.cli import wait as waiting
from evalboard.cli.client import Client


def run(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The suite's slug.")],
    endpoint: Annotated[str, typer.Option(help="The endpoint's slug.")],
    profile: Annotated[str, typer.Option(help="The profile's slug.")],
    repeats: Annotated[int, typer.Option(min=1, help="How many passes over the suite.")] = 5,
    model: Annotated[
        str,
        typer.Option(metavar="PATH", help="Another checkpoint of the endpoint's model line, a folder on the worker."),
    ] = "",
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Such as commit=1f3a; may be given several times.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run has ended.")] = False,
    give_up_after: Annotated[
        float, typer.Option(min=0, help="With --wait: seconds without an answer after which to stop waiting.")
    ] = waiting.GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the run as JSON.")] = False,
) -> None:
    """Start a run of a suite. Without --wait it prints where the run is and ends."""
    body: dict[str, Any] = {"suite": suite, "endpoint": endpoint, "profile": profile, "repeats": repeats}
    body["labels"] = dict(map(_label, label or []))
    if model:
        body["model"] = {"path": model}
    with Client(place.find()) as client:
        started = client.create_run(body)
        if not wait:
            typer.echo(
                json.dumps(started.json, ensure_ascii=False)
                if as_json
                else f"Run {started.id} is {started.status}: {started.n_total} responses to decode. {started.url}"
            )
            return
        typer.echo(f"Run {started.id}: {started.url}", err=True)
        waiting.finish(client, started.id, give_up_after=give_up_after, as_json=as_json)


def _label(text: str) -> tuple[str, str]:
    key, has_value, value = text.partition("=")
    if not key or not has_value:
        raise typer.BadParameter(f"{text} is not KEY=VALUE.", param_hint="--label")
    return key, value
