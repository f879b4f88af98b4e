"""`evalboard probe`: check an endpoint itself, and say what was found."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli.arguments import parse_id, parse_pair
from evalboard.cli.errors import FAILED, INCONCLUSIVE, NO_SHIP
from evalboard.cli.output import decide
from evalboard.cli.wait import GiveUpAfter, follow_to_end
from evalboard.client.access import connect
from evalboard.client.progress import probe_progress
from evalboard.client.waiting import GIVE_UP_SECONDS
from evalboard.core.document import read_strict_json
from evalboard.wording import probe_states
from evalboard.wording.capability import LABELS, describe_row
from evalboard.wording.vendors import LABELS as VENDOR_LABELS
from evalboard.wording.vendors import describe_vendor_row
from evalboard.wording.verification import describe_numbers

if TYPE_CHECKING:
    from evalboard.contract.probe import Probe

# By standing (wording.probe_states). A canary without enough earlier runs has not failed: it is one of them.
CODES = {"good": 0, "early": 0, "bad": NO_SHIP, "unsettled": INCONCLUSIVE, "unknown": FAILED}


def probe(
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="The endpoint's slug.")] = "",
    kind: Annotated[
        str,
        typer.Option(
            metavar="seed|batch|routing|canary|capability|determinism|audit|verify|vendor|border",
            help="The kind of probe.",
        ),
    ] = "",
    profile: Annotated[str, typer.Option(help="The profile to use; default: chosen by the server.")] = "",
    parameters: Annotated[str, typer.Option(metavar="JSON", help="The probe's parameters, as a JSON object.")] = "",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="One parameter, such as copies=200; can be repeated."),
    ] = None,
    show: Annotated[str, typer.Option(metavar="ID", help="Show an earlier probe.")] = "",
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Print the calls, tokens and price of the probe, and start nothing.")
    ] = False,
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the probe as JSON when it has ended.")] = False,
) -> None:
    """Probe an endpoint: its seeds, batching, backends, changes, honoured parameters or weights."""
    if show:
        if any((endpoint, kind, profile, parameters, set_, estimate)):
            raise typer.BadParameter("Use it without other arguments.", param_hint="--show")
        parse_id(show, "--show")
    elif not endpoint or not kind:
        raise typer.BadParameter("Give the endpoint's slug and a kind.", param_hint="ENDPOINT --kind")
    body: dict[str, Any] = {"endpoint": endpoint, "kind": kind, "parameters": _parse_parameters(parameters, set_ or [])}
    body |= {"profile": profile} if profile else {}
    with connect() as client:
        if not show and (estimate or kind == "border"):
            expected = client.probe_estimate(body)
            if estimate:
                typer.echo(json.dumps(expected.json, ensure_ascii=False) if as_json else expected.value.sentence)
                return
            typer.echo(expected.value.sentence, err=True)
        probe_id = show or client.create_probe(body).value.id
        answer = follow_to_end(
            lambda: client.probe(probe_id),
            probe_progress,
            sentence=f"Probe {probe_id} goes on.",
            come_back=f"evalboard probe --show {probe_id}",
            give_up_after=give_up_after,
        )
    decide(is_verdict=answer.value.finding is not None)
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else render_result(answer.value))
    raise typer.Exit(choose_exit_code(answer.value))


def choose_exit_code(probe: "Probe") -> int:
    return CODES[probe_states.describe_state(probe.kind, probe.finding.state).standing] if probe.finding else FAILED


def render_result(probe: "Probe") -> str:
    """Return what was probed, the state with its sentence, and what to do."""
    title = f"Probe {probe.id}, {probe.kind} of {probe.endpoint}, profile {probe.profile}"
    if probe.finding is None:
        return f"{title}: {probe.status}. {probe.url}\n{' '.join((probe.error or '').split())}"
    words = probe_states.describe_state(probe.kind, probe.finding.state)
    lines = [f"{title}: {words.word.lower()}. {probe.url}", probe.finding.sentence]
    if probe.sets:
        # Here, as it brings pydantic, which no help waits for.
        from evalboard.contract.verification import read_finding

        lines += [f"  {name}: {value}" for name, value in describe_numbers(read_finding(probe.finding))]
    lines += [f"  {LABELS[row['parameter']]}: {describe_row(row)}" for row in probe.finding.numbers.get("rows", ())]
    lines += [
        f"  {VENDOR_LABELS[row['row']]}: {describe_vendor_row(row)}"
        for row in probe.finding.numbers.get("vendor_rows", ())
    ]
    hop = probe.hop.sentence if probe.hop is not None else None
    control = f"Control: {probe.control}" if probe.control else None
    return "\n".join([*lines, *(line for line in (hop, control, words.advice) if line)])


def _parse_parameters(text: str, pairs: list[str]) -> dict[str, Any]:
    """Return the object of --parameters, updated by --set: each value as JSON, else as text."""
    values = _parse_json(text, "--parameters") if text else {}
    if not isinstance(values, dict):
        raise typer.BadParameter("Must be an object, {…}.", param_hint="--parameters")
    for pair in pairs:
        name, value = parse_pair(pair, "NAME=VALUE", "--set")
        try:
            values[name] = read_strict_json(value)
        except ValueError:
            values[name] = value
    return values


def _parse_json(text: str, option: str) -> Any:
    try:
        return read_strict_json(text)
    except ValueError as problem:
        raise typer.BadParameter(f"It is not valid JSON: {problem}.", param_hint=option) from problem
