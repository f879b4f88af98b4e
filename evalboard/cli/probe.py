"""`evalboard probe`: check an endpoint itself, and say what was found."""

import json
from typing import Annotated, Any

import typer

from evalboard.cli import place
from evalboard.cli.answers import ProbeAnswer
from evalboard.cli.client import Client
from evalboard.cli.errors import FAILED, INCONCLUSIVE, INTERRUPTED, NO_SHIP
from evalboard.cli.patience import GIVE_UP_SECONDS, follow
from evalboard.cli.progress import follower
from evalboard.core import probe_states
from evalboard.core.document import read_strict_json

# By standing (core.probe_states). A canary without enough earlier runs has not failed: it is one of them.
CODES = {"good": 0, "early": 0, "bad": NO_SHIP, "unsettled": INCONCLUSIVE, "unknown": FAILED}


def probe(
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="The endpoint's slug.")] = "",
    kind: Annotated[str, typer.Option(metavar="seed|batch|routing|canary", help="What to find out.")] = "",
    profile: Annotated[
        str, typer.Option(help="The profile whose engine answers; the server's choice unless set.")
    ] = "",
    parameters: Annotated[str, typer.Option(metavar="JSON", help="Parameters of the probe as one object.")] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="One parameter, copies=200 say; several times."),
    ] = None,
    show: Annotated[str, typer.Option(metavar="ID", help="Come back to a probe that was asked for before.")] = "",
    give_up_after: Annotated[
        float, typer.Option(min=0, help="Seconds without an answer of the server after which to stop waiting.")
    ] = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the probe as JSON when it has ended.")] = False,
) -> None:
    """Find out whether an endpoint honours seeds, is moved by batching, is one engine, or has changed."""
    if show:
        if any((endpoint, kind, profile, parameters, set_)):
            raise typer.BadParameter("It names the probe by itself, without anything else.", param_hint="--show")
        if not show.isascii() or not show.isdigit():
            raise typer.BadParameter(f"{show} is not a whole number.", param_hint="--show")
    elif not endpoint or not kind:
        raise typer.BadParameter("Give the endpoint's slug and a kind.", param_hint="ENDPOINT --kind")
    body: dict[str, Any] = {"endpoint": endpoint, "kind": kind, "parameters": _parameters(parameters, set_ or [])}
    with Client(place.find()) as client:
        probe_id = show or client.create_probe(body | ({"profile": profile} if profile else {})).id
        _finish(client, probe_id, give_up_after=give_up_after, as_json=as_json)


def _finish(client: Client, probe_id: str, *, give_up_after: float, as_json: bool) -> None:
    """Follow a probe to its end, print what it found, and exit with its code."""
    come_back = f"evalboard probe --show {probe_id}"
    try:
        with follower() as told:
            ended = follow(lambda: client.probe(probe_id), told, come_back=come_back, give_up_after=give_up_after)
    except KeyboardInterrupt:
        typer.echo(f"Probe {probe_id} goes on. Come back with: {come_back}", err=True)
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(json.dumps(ended.json, ensure_ascii=False) if as_json else result(ended))
    raise typer.Exit(exit_code(ended))


def exit_code(ended: ProbeAnswer) -> int:
    return CODES[_words(ended).standing] if ended.finding else FAILED


def result(ended: ProbeAnswer) -> str:
    """What was asked, the state in a word with its sentence, and what to do about it."""
    asked = f"Probe {ended.id}, {ended.json['kind']} of {ended.json['endpoint']}, profile {ended.json['profile']}"
    if ended.finding is None:
        why = " ".join(str(ended.json["error"]).split())
        return f"{asked}: {ended.status}. {ended.json['url']}\n{why}"
    words = _words(ended)
    lines = [f"{asked}: {words.word.lower()}. {ended.json['url']}", str(ended.finding["sentence"])]
    return "\n".join([*lines, *([words.advice] if words.advice else [])])


def _words(ended: ProbeAnswer) -> probe_states.Words:
    return probe_states.words(str(ended.json["kind"]), str(ended.json["finding"]["state"]))


def _parameters(text: str, pairs: list[str]) -> dict[str, Any]:
    """The object of --parameters, and over it what --set names; its value is JSON, or else text as it stands."""
    found = _read(text, "--parameters") if text else {}
    if not isinstance(found, dict):
        raise typer.BadParameter("Must be an object, {…}.", param_hint="--parameters")
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{pair} is not NAME=VALUE.", param_hint="--set")
        try:
            found[name] = read_strict_json(value)
        except ValueError:
            found[name] = value
    return found


def _read(text: str, option: str) -> Any:
    try:
        return read_strict_json(text)
    except ValueError as problem:
        raise typer.BadParameter(f"It is not valid JSON: {problem}.", param_hint=option) from problem
