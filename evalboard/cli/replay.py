"""`evalboard replay`: decode a case of a run, or a production request, again and show the result."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli.arguments import parse_id, parse_number, split
from evalboard.cli.errors import FAILED
from evalboard.cli.output import decide, printable
from evalboard.cli.wait import GiveUpAfter, follow_to_end
from evalboard.client.access import connect
from evalboard.client.errors import WrongUse
from evalboard.client.progress import replay_progress
from evalboard.client.waiting import GIVE_UP_SECONDS
from evalboard.core.document import read_strict_json

if TYPE_CHECKING:
    from evalboard.contract.replay import Replay


def replay(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")] = "",
    case: Annotated[str, typer.Argument(metavar="CASE", help="The case's id.")] = "",
    repeat: Annotated[int, typer.Option(min=1, help="The repeat to compare the answer with.")] = 1,
    batch_sizes: Annotated[
        str, typer.Option(metavar="1,2,4", help="Batch sizes to try; batches are filled with other cases of the suite.")
    ] = "",
    dtype: Annotated[str, typer.Option(metavar="float32,bfloat16", help="Dtypes to try.")] = "",
    neighbours: Annotated[
        int, typer.Option(min=1, help="Different sets of other cases to try at each batch size.")
    ] = 1,
    profile: Annotated[
        str, typer.Option(help="Production's settings: a profile instead of the run’s. Required with --body.")
    ] = "",
    body: Annotated[
        str, typer.Option(metavar="FILE", help="A chat completion request from production; - reads stdin.")
    ] = "",
    on: Annotated[str, typer.Option(metavar="ENDPOINT", help="The endpoint that decodes --body.")] = "",
    show: Annotated[str, typer.Option(metavar="ID", help="Show an earlier replay.")] = "",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the replay as JSON when it has ended.")] = False,
) -> None:
    """Decode a case again under the run's profile: is it identical, drifted or flipped, and where?

    With --body, decode one production request under production's settings instead, and show the answer.
    """
    case_options = [run, case, batch_sizes, dtype, repeat != 1, neighbours != 1]
    if show:
        if any((*case_options, profile, body, on)):
            raise typer.BadParameter("Use it without RUN, CASE and other options.", param_hint="--show")
        parse_id(show, "--show")
    elif body:
        if any(case_options):
            raise typer.BadParameter("It has no run and no suite: give --on and --profile alone.", param_hint="--body")
        if not on or not profile:
            raise typer.BadParameter("Say what decodes it: --on ENDPOINT --profile NAME.", param_hint="--body")
    elif on:
        raise typer.BadParameter("A case is decoded on its run's endpoint; --on goes with --body.", param_hint="--on")
    elif not case:
        raise typer.BadParameter("Give the run's id and the case's id.", param_hint="RUN CASE")
    else:
        parse_id(run, "RUN")
    fields: dict[str, Any] = {"case": case, "repeat": repeat, "neighbours": neighbours}
    fields["batch_sizes"] = [parse_number(part, "--batch-sizes") for part in split(batch_sizes)]
    fields["dtypes"] = split(dtype)
    fields |= {"profile": profile} if profile else {}
    request = {"endpoint": on, "profile": profile, "body": _read_request(body)} if body else None
    with connect() as client:
        if request is not None:
            replay_id = client.create_body_replay(request).value.id
        else:
            replay_id = show or client.create_replay(run, fields).value.id
        answer = follow_to_end(
            lambda: client.replay(replay_id),
            replay_progress,
            sentence=f"Replay {replay_id} goes on.",
            come_back=f"evalboard replay --show {replay_id}",
            give_up_after=give_up_after,
        )
    decide()
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else _render_result(answer.value))
    raise typer.Exit(0 if answer.value.status == "finished" else FAILED)


def _read_request(file: str) -> Any:
    """Read a chat-completion body. Raises WrongUse where there is none."""
    try:
        text = typer.get_text_stream("stdin").read() if file == "-" else Path(file).read_text(encoding="utf-8")
        return read_strict_json(text)
    except OSError as problem:
        raise WrongUse(f"{file} cannot be read: {problem.strerror}.") from problem
    except ValueError as problem:  # also text that is no UTF-8
        raise WrongUse(
            f"{file} is no JSON: {problem}. Save the body of the request alone, as it was sent."
        ) from problem


def _render_result(replay: "Replay") -> str:
    """Return a line for each variant, their common conclusion, and production's answer."""
    label = " [production]" if replay.production else ""
    title = f"Replay {replay.id} of {replay.title}{label}: {replay.status}."
    rows = [(str(each["name"]), str(each["phrase"])) for each in replay.results]
    width = max((len(name) for name, _ in rows), default=0)
    table = [f"  {name:<{width}}  {phrase}" for name, phrase in rows] if len(rows) > 1 else []
    closing = replay.reading or [" ".join((replay.error or "").split())]
    answer = replay.production.answer if replay.production else None
    return "\n".join([f"{title} {replay.url}", *table, *closing, *(["", printable(answer.text)] if answer else [])])
