"""`evalboard vendors`: the vendor card of endpoints that claim one model."""

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalboard.cli.errors import NO_SHIP
from evalboard.cli.lists import columns
from evalboard.cli.output import decide
from evalboard.cli.summary import escape
from evalboard.cli.wait import GiveUpAfter, follow_to_end
from evalboard.client.access import connect
from evalboard.client.program import as_typed
from evalboard.client.progress import probe_progress
from evalboard.client.waiting import GIVE_UP_SECONDS
from evalboard.core import table
from evalboard.wording.vendors import CELL_NAMES, STATE_WORDS, list_cells

if TYPE_CHECKING:
    from evalboard.client.rest import RestClient
    from evalboard.contract.vendors import VendorCard, VendorCell

FORMS = ("text", "markdown", "csv")


def vendors(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="The slug of the suite that verifications use.")],
    endpoints: Annotated[str, typer.Option(metavar="A,B,C", help="Slugs of the endpoints, with commas between them.")],
    reference: Annotated[
        str, typer.Option(help="The endpoint that the others are compared with, such as the model's maker.")
    ] = "",
    until: Annotated[str, typer.Option(metavar="DATE", help="Use nothing newer than this day or time.")] = "",
    measure: Annotated[
        bool,
        typer.Option("--measure", help="First probe each endpoint, and the reference: kinds vendor and capability."),
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="With --measure, also verify each endpoint's weights by the suite.")
    ] = False,
    form: Annotated[str, typer.Option("--format", metavar="text|markdown|csv", help="Output format.")] = "text",
    give_up_after: GiveUpAfter = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the card as JSON.")] = False,
) -> None:
    """Compare endpoints that claim one model: the newest checks of each, side by side."""
    if form not in FORMS:
        raise typer.BadParameter(f"Must be one of {', '.join(FORMS)}.", param_hint="--format")
    if verify and not measure:
        raise typer.BadParameter("Use it with --measure.", param_hint="--verify")
    query = {"endpoints": endpoints, "suite": suite, "reference": reference, "until": until}
    query = {name: value for name, value in query.items() if value}
    with connect() as client:
        card = client.vendor_card(**query)  # names that do not exist are refused before any call
        if measure:
            slugs = [column.endpoint for column in card.value.endpoints]
            _measure(client, slugs, reference, suite if verify else "", give_up_after)
            card = client.vendor_card(**query)
    decide()
    typer.echo(json.dumps(card.json, ensure_ascii=False) if as_json else render_card(card.value, form))
    is_fault = any(cell.state == "fault" for row in card.value.rows for cell in row.cells)
    raise typer.Exit(NO_SHIP if is_fault else 0)


def _measure(client: "RestClient", slugs: list[str], reference: str, suite: str, give_up_after: float) -> None:
    """Start all probes, then wait for each."""
    bodies: list[dict[str, Any]] = [
        {"endpoint": slug, "kind": kind, "parameters": {}}
        for slug in dict.fromkeys([*slugs, *([reference] if reference else [])])
        for kind in ("vendor", "capability")
    ]
    bodies += [{"endpoint": slug, "kind": "verify", "parameters": {"suite": suite}} for slug in slugs if suite]
    for probe_id in [client.create_probe(body).value.id for body in bodies]:
        follow_to_end(
            partial(client.probe, probe_id),
            probe_progress,
            sentence=f"Probe {probe_id} goes on.",
            come_back=f"evalboard probe --show {probe_id}",
            give_up_after=give_up_after,
        )


def render_card(card: "VendorCard", form: str) -> str:
    """Return a card as CSV, as a table in Markdown, or as text with a sentence for each fault."""
    if form == "csv":
        return b"".join(table.write(table.CSV, CELL_NAMES, list_cells(card))).decode().rstrip()
    heads = ("row", *(column.endpoint for column in card.endpoints))
    if form == "markdown":
        lines = [
            (row.label, *(f"{STATE_WORDS[cell.state]}: {cell.sentence}" for cell in row.cells)) for row in card.rows
        ]
        cells = [heads, *lines]
        marked = [f"| {' | '.join(map(escape, each))} |" for each in cells]
        return "\n".join([marked[0], f"|{' --- |' * len(heads)}", *marked[1:]])
    shown = [(row.label, *map(_render_state, row.cells)) for row in card.rows]
    sentences = [
        f"{column.endpoint}, {row.label}: {cell.sentence}"
        for row in card.rows
        for column, cell in zip(card.endpoints, row.cells, strict=True)
        if cell.state in ("fault", "several")
    ]
    mixed = [line for column in card.endpoints if column.mixes for line in (column.mixes, *column.commands)]
    return as_typed("\n".join([*columns([heads, *shown]), *sentences, *mixed]))


def _render_state(cell: "VendorCell") -> str:
    return STATE_WORDS[cell.state] if cell.n is None else f"{STATE_WORDS[cell.state]} ({cell.n})"
