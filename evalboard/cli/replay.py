"""`evalboard replay`: decode one case of a run again, and say whether it comes out the same."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli.arguments import parse_id, parse_number, split
from evalboard.cli.errors import FAILED
from evalboard.cli.wait import GiveUpAfter, follow_to_end
from evalboard.client.access import connect
from evalboard.client.waiting import GIVE_UP_SECONDS, replay_progress

if TYPE_CHECKING:
    from evalboard.contract.replay import Replay


def replay(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")] = "",
    case: Annotated[str, typer.Argument(metavar="CASE", help="The case's id.")] = "",
    repeat: Annotated[int, typer.Option(min=1, help="The repeat whose response it is compared with.")] = 1,
    batch_sizes: Annotated[
        str, typer.Option(metavar="1,2,4", help="At each size, the batch filled with the suite's other cases.")
    ] = "",
    dtype: Annotated[str, typer.Option(metavar="float32,bfloat16", help="Under each dtype.")] = "",
    neighbours: Annotated[
        int, typer.Option(min=1, help="How many different choices of the other cases at each batch size.")
    ] = 1,
    show: Annotated[str, typer.Option(metavar="ID", help="Come back to a replay that was asked for before.")] = "",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the replay as JSON when it has answer.")] = False,
) -> None:
    """Decode a case again under the run's profile, and say whether it is identical, drifted or flipped, and where."""
    body: dict[str, Any] = {"case": case, "repeat": repeat, "neighbours": neighbours}
    body["batch_sizes"] = [parse_number(part, "--batch-sizes") for part in split(batch_sizes)]
    body["dtypes"] = split(dtype)
    if show:
        if run or case:
            raise typer.BadParameter("It names the replay by itself, without RUN and CASE.", param_hint="--show")
        parse_id(show, "--show")
    elif not case:
        raise typer.BadParameter("Give the run's id and the case's id.", param_hint="RUN CASE")
    else:
        parse_id(run, "RUN")
    with connect() as client:
        replay_id = show or client.create_replay(run, body).value.id
        answer = follow_to_end(
            lambda: client.replay(replay_id),
            replay_progress,
            sentence=f"Replay {replay_id} goes on.",
            come_back=f"evalboard replay --show {replay_id}",
            give_up_after=give_up_after,
        )
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else _render_result(answer.value))
    raise typer.Exit(0 if answer.value.status == "finished" else FAILED)


def _render_result(replay: "Replay") -> str:
    """Return a line for each variant, where there are several, then what they say together."""
    title = f"Replay {replay.id} of case {replay.case}, run {replay.run} repeat {replay.repeat}: {replay.status}."
    rows = [(str(each["name"]), str(each["phrase"])) for each in replay.results]
    width = max((len(name) for name, _ in rows), default=0)
    table = [f"  {name:<{width}}  {phrase}" for name, phrase in rows] if len(rows) > 1 else []
    closing = replay.reading or [" ".join((replay.error or "").split())]
    return "\n".join([f"{title} {replay.url}", *table, *closing])
