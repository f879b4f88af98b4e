"""`evalboard replay`: decode one case of a run again, and say whether it comes out the same."""

import json
from typing import Annotated, Any

import typer

from evalboard.cli import place
from evalboard.cli.answers import ReplayAnswer
from evalboard.cli.client import Client
from evalboard.cli.errors import FAILED, INTERRUPTED
from evalboard.cli.patience import GIVE_UP_SECONDS, follow
from evalboard.cli.progress import follower


def replay(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")] = "",
    case: Annotated[str, typer.Argument(metavar="CASE", help="The case's id.")] = "",
    repeat: Annotated[int, typer.Option(min=1, help="The repeat whose response it is held against.")] = 1,
    batch_sizes: Annotated[
        str, typer.Option(metavar="1,2,4", help="At each size, the batch filled with the suite's other cases.")
    ] = "",
    dtype: Annotated[str, typer.Option(metavar="float32,bfloat16", help="Under each dtype.")] = "",
    neighbours: Annotated[
        int, typer.Option(min=1, help="How many different choices of the other cases at each batch size.")
    ] = 1,
    show: Annotated[str, typer.Option(metavar="ID", help="Come back to a replay that was asked for before.")] = "",
    give_up_after: Annotated[
        float, typer.Option(min=0, help="Seconds without an answer of the server after which to stop waiting.")
    ] = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the replay as JSON when it has ended.")] = False,
) -> None:
    """Decode a case again under the run's profile, and say whether it is identical, drifted or flipped, and where."""
    body: dict[str, Any] = {"case": case, "repeat": repeat, "neighbours": neighbours}
    body["batch_sizes"] = [_number(part, "--batch-sizes") for part in _parts(batch_sizes)]
    body["dtypes"] = _parts(dtype)
    if show:
        if run or case:
            raise typer.BadParameter("It names the replay by itself, without RUN and CASE.", param_hint="--show")
        _number(show, "--show")
    elif not case:
        raise typer.BadParameter("Give the run's id and the case's id.", param_hint="RUN CASE")
    else:
        _number(run, "RUN")
    with Client(place.find()) as client:
        replay_id = show or client.create_replay(run, body).id
        _finish(client, replay_id, give_up_after=give_up_after, as_json=as_json)


def _finish(client: Client, replay_id: str, *, give_up_after: float, as_json: bool) -> None:
    """Follow a replay to its end, print what it found, and exit with its code."""
    come_back = f"evalboard replay --show {replay_id}"
    try:
        with follower() as told:
            ended = follow(lambda: client.replay(replay_id), told, come_back=come_back, give_up_after=give_up_after)
    except KeyboardInterrupt:
        typer.echo(f"Replay {replay_id} goes on. Come back with: {come_back}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(json.dumps(ended.json, ensure_ascii=False) if as_json else _result(ended))
    raise typer.Exit(0 if ended.status == "finished" else FAILED)


def _result(ended: ReplayAnswer) -> str:
    """A line for each variant, where there are several, then what they say together."""
    found = ended.json
    title = f"Replay {ended.id} of case {found['case']}, run {found['run']} repeat {found['repeat']}: {ended.status}."
    rows = [(str(each["name"]), str(each["phrase"])) for each in found["results"]]
    width = max((len(name) for name, _ in rows), default=0)
    table = [f"  {name:<{width}}  {phrase}" for name, phrase in rows] if len(rows) > 1 else []
    closing = found["reading"] or [" ".join(str(found["error"]).split())]
    return "\n".join([f"{title} {found['url']}", *table, *closing])


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _number(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise typer.BadParameter(f"{text or 'Nothing'} is not a whole number.", param_hint=name)
    return int(text[:18])
