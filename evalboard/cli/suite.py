"""`evalboard suite push`: a file of cases becomes a suite's newest version."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.cli.errors import INTERRUPTED
from evalboard.client.access import connect
from evalboard.client.waiting import GIVE_UP_SECONDS, follow_transfer, make_follower
from evalboard.wording.numbers import counted

if TYPE_CHECKING:
    from evalboard.client.answers import Answer
    from evalboard.client.rest import RestClient
    from evalboard.client.suite_parts import SuiteLines
    from evalboard.contract.suite import SuiteVersion

app = typer.Typer(help="Suites.", no_args_is_help=True)


@app.callback()
def suite() -> None:
    """Suites."""


@app.command()
def push(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON, or JSONL with one case per line.")],
    slug: Annotated[str, typer.Option(help="The suite's slug; default: from the document, else the file name.")] = "",
    title: Annotated[str, typer.Option(help="The suite's title; default: from the document, else the slug.")] = "",
    mapping: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="Convert another tool's JSONL with this mapping.")
    ] = "",
    give_up_after: Annotated[
        float, typer.Option(min=0, help="For a large file: give up after so many seconds without an answer.")
    ] = GIVE_UP_SECONDS,
    as_json: Annotated[bool, typer.Option("--json", help="Print the suite version as JSON.")] = False,
) -> None:
    """Store a suite, or find that its content is stored already."""
    # Here, and the scorers with it, which check a case's options: no other command waits for them.
    from evalboard.cli.suite_file import is_large, load_document, open_lines

    with connect() as client:
        if is_large(file):
            with open_lines(file, slug=slug, title=title, mapping=mapping) as lines:
                answer = _send(client, lines, give_up_after=give_up_after)
        else:
            answer = client.push_suite(load_document(file, slug=slug, title=title, mapping=mapping))
    stored = answer.value
    state = "stored" if answer.is_new else "was there already"
    sentence = f"{stored.slug} v{stored.version} {state}: {counted(stored.n_cases, 'case')}. {stored.url}"
    typer.echo(json.dumps(answer.json, ensure_ascii=False) if as_json else sentence)


def _send(client: "RestClient", lines: "SuiteLines", *, give_up_after: float) -> "Answer[SuiteVersion]":
    """Send a large suite in parts, and wait until it is read."""
    from evalboard.client.suite_parts import AGAIN, read_upload, send_parts

    try:
        with follow_transfer(f"suite {lines.slug}") as transfer:
            upload_id = send_parts(client, lines, tell=transfer.tell, give_up_after=give_up_after)
        with make_follower() as follower:
            return read_upload(client, upload_id, follower, give_up_after=give_up_after)
    except KeyboardInterrupt:
        typer.echo(AGAIN, err=True)
        raise typer.Exit(INTERRUPTED) from None
