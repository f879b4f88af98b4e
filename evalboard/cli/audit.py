"""`evalboard audit` prints and checks the audit trail; `evalboard comment` writes comments."""

import json
from codecs import iterdecode
from pathlib import Path
from typing import Annotated, Any

import typer

from evalboard.cli.errors import FAILED
from evalboard.client.access import connect
from evalboard.client.errors import WrongUse
from evalboard.core.document import read_strict_json
from evalboard.wording.numbers import counted

JSON_LINES = "application/x-ndjson"


def audit(
    person: Annotated[str, typer.Option(metavar="NAME", help="Only what this person did.")] = "",
    act: Annotated[str, typer.Option(help="Only this act: created, changed, deleted, refused ….")] = "",
    kind: Annotated[str, typer.Option(help="Only changes of this kind: run, policy, person ….")] = "",
    subject: Annotated[str, typer.Option(metavar="ID", help="Only changes of the row with this id.")] = "",
    at: Annotated[str, typer.Option(metavar="DAYS", help="A day, or two as 2026-11-01..2026-11-20, in UTC.")] = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="Check the server's lines instead, and their seals.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--verify-file", metavar="FILE", help="Check an exported file instead, offline.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result of a check as JSON.")] = False,
) -> None:
    """Print the audit trail as JSON lines, oldest first, or check that no line was changed or removed."""
    if file is not None:
        _report(_check_file(file), as_json=as_json)
        return
    given = {"person": person, "act": act, "kind": kind, "subject": subject, "at": at}
    with connect() as client:
        if verify:
            _report(client.audit_check().json, as_json=as_json)
            return
        filters = {name: value for name, value in given.items() if value}
        with client.download("/audit/lines.jsonl", JSON_LINES, filters) as download:
            for part in iterdecode(download.parts, "utf-8"):
                typer.echo(part, nl=False)


def _check_file(file: Path) -> dict[str, Any]:
    from evalboard.core.audit import follow_chain

    try:
        with file.open(encoding="utf-8") as lines:
            chain = follow_chain(map(read_strict_json, filter(str.strip, lines)))
    except (OSError, ValueError) as problem:
        raise WrongUse(f"{file} cannot be read: {problem}.") from problem
    except (KeyError, TypeError, AttributeError) as problem:
        raise WrongUse(f"{file} is no export of the audit trail: a line lacks {problem}.") from problem
    return chain.to_json()


def _report(checked: dict[str, Any], *, as_json: bool) -> None:
    sealed = f" Lines up to {checked['sealed_to']} are sealed." if checked.get("sealed_to") else ""
    whole = f"{counted(checked['n_lines'], 'line')}, whole.{sealed} Line {checked['last']}: {checked['digest']}"
    text = f"The audit trail was changed. {checked['problem']}" if checked["problem"] else whole
    typer.echo(json.dumps(checked) if as_json else text)
    if checked["problem"]:
        raise typer.Exit(FAILED)


def comment(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="run, case or release.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its id; of a case SUITE/ID.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The comment, in Markdown.")] = "",
    withdraw: Annotated[str, typer.Option(metavar="ID", help="Withdraw this comment of yours.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the comments as JSON.")] = False,
) -> None:
    """Comment on a run, a case or a release. Without TEXT, list its comments."""
    if text and withdraw:
        raise typer.BadParameter("Give TEXT or --withdraw, not both.", param_hint="TEXT")
    with connect() as client:
        if text:
            client.create_comment(kind, name, text)
        elif withdraw:
            client.withdraw_comment(withdraw)
        comments = list(client.comments(kind, name))[::-1]
    if as_json:
        typer.echo(json.dumps([each.json for each in comments], ensure_ascii=False))
        return
    for each in comments:
        row = each.value
        text = "withdrawn" if row.withdrawn_at else row.text
        typer.echo(f"{row.id}  {row.created_at:%Y-%m-%d %H:%M} UTC  {row.person or 'a removed person'}\n{text}\n")
    if not comments:
        typer.echo(f"There is no comment on {kind} {name}.")
