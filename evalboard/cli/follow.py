"""`evalboard follow`: be notified about a run, suite, endpoint or other thing; list and stop it."""

import json
from typing import Annotated

import typer

from evalboard.client.access import connect
from evalboard.client.errors import WrongUse
from evalboard.wording.numbers import listed

NOWHERE = "You have no address yet, so nothing reaches you. Add one with --address."


def follow(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="run, suite, case, endpoint, release, probe, experiment, replay or forced."
        ),
    ] = "",
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its slug or id; of a case SUITE/ID.")] = "",
    stop: Annotated[bool, typer.Option("--stop", help="Stop the notifications.")] = False,
    address: Annotated[
        str, typer.Option(metavar="URL", help="Add an address of your own: https://… of a chat, or mailto:….")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print what you follow as JSON.")] = False,
) -> None:
    """Be notified when something ends, is served by another server, turns, or waits for a decision.

    Without arguments, list what you follow and the addresses that are notified.
    """
    if bool(kind) != bool(name):
        raise typer.BadParameter("Give both, such as: run 12.", param_hint="KIND NAME")
    with connect() as client:
        if address:
            client.create_address(address)
        if kind and stop:
            known = {(each.value.kind, each.value.name): each.value.id for each in client.follows()}
            if (kind, name) not in known:
                raise WrongUse(f"You do not follow {kind} {name}.")
            client.unfollow(known[kind, name])
        elif kind:
            client.follow(kind, name)
        follows = list(client.follows())
        addresses = [each.value.url for each in client.addresses()]
    if as_json:
        typer.echo(json.dumps([each.json for each in follows], ensure_ascii=False))
        return
    named = [f"{each.value.kind} {each.value.name}" for each in follows]
    typer.echo(f"You follow {listed(named) if named else 'nothing'}.")
    typer.echo(f"Evalboard notifies you at {listed(addresses)}." if addresses else NOWHERE)
