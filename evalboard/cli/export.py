"""`evalboard export`: a run, its cases or the pairs of a comparison, as a file that is whole or not there."""

import csv
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated

import typer

from evalboard.cli import place
from evalboard.cli.answers import Download
from evalboard.cli.client import Client
from evalboard.cli.errors import CommandError, WrongUse
from evalboard.cli.transfer import size, transfer
from evalboard.core import table
from evalboard.core.errors import EvalboardError

ZIP = "zip"
MEDIA_TYPES = {ZIP: "application/zip", table.CSV: "text/csv", table.JSONL: "application/x-ndjson"}
MAX_CELL_CHARS = 1 << 27  # of one response's text, which the module's own limit of 131,072 would refuse


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of the server, and what it is called where nobody says another name."""

    form: str
    path: str
    params: Mapping[str, str]
    about: str
    file_name: str


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")] = "",
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to; default: a name of its own in this folder.")
    ] = None,
    cases: Annotated[
        str, typer.Option(metavar="csv|jsonl", help="A row for each case and repeat, in place of the whole run.")
    ] = "",
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="BASELINE CANDIDATE", help="With --cases, in place of RUN: the pairs that differ."),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="With --cases: a filter, such as only=failed; several times."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write a run to a file: with its traces, or its cases as a table. The file is there once it is whole."""
    wanted = _wanted(run, cases, compare, where or [])
    target = to or Path(wanted.file_name)
    with Client(place.find()) as client, _temporary(target) as file:
        found = _receive(client, wanted, file)
        n_rows = _check(wanted, file, found)
    facts = {"file": str(target), "form": wanted.form, "n_bytes": found.n_bytes, "n_rows": n_rows}
    if as_json:
        typer.echo(json.dumps({**facts, "sha256": found.sha256}, ensure_ascii=False))
        return
    rows = "" if n_rows is None else f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}, "
    typer.echo(f"{target}: {wanted.about}, {rows}{size(found.n_bytes)}, sha256 {found.sha256}")


def _wanted(run: str, cases: str, compare: tuple[str, str] | None, where: list[str]) -> Wanted:
    filters = dict(map(_filter, where))
    if cases and cases not in (table.CSV, table.JSONL):
        raise typer.BadParameter("Must be csv or jsonl.", param_hint="--cases")
    if filters and not cases:
        raise typer.BadParameter("Only cases can be filtered; give --cases too.", param_hint="--where")
    if compare is not None:
        if run or not cases:
            raise typer.BadParameter("It goes with --cases, and without RUN.", param_hint="--compare")
        ours, theirs = (_id(part, "--compare") for part in compare)
        params = {"baseline": ours, "candidate": theirs, **filters}
        about, name = f"run {ours} against run {theirs}", f"run-{ours}-against-{theirs}-cases.{cases}"
        return Wanted(cases, f"/compare/cases.{cases}", params, about, name)
    run = _id(run, "RUN")
    if cases:
        return Wanted(cases, f"/runs/{run}/cases.{cases}", filters, f"cases of run {run}", f"run-{run}-cases.{cases}")
    return Wanted(ZIP, f"/runs/{run}/export/", {}, f"run {run}", f"run-{run}.zip")


def _id(text: str, option: str) -> str:
    if not text.isascii() or not text.isdigit():
        raise typer.BadParameter(f"{text or 'Nothing'} is no id; an id is a number.", param_hint=option)
    return text


def _filter(text: str) -> tuple[str, str]:
    name, has_value, value = text.partition("=")
    if not name or not has_value:
        raise typer.BadParameter(f"{text} is not NAME=VALUE.", param_hint="--where")
    return name, value


@contextmanager
def _temporary(target: Path) -> Iterator[IO[bytes]]:
    """A new file beside the target, which takes its name where all went well, and else is gone."""
    if target.is_dir():
        raise WrongUse(f"{target} is a folder; name a file in it.")
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        file = beside.open("x+b")
    except OSError as problem:
        raise WrongUse(f"{target} cannot be written: {problem.strerror}.") from problem
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(target)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise CommandError(f"{target} cannot be written: {problem.strerror}.") from problem
    except BaseException:  # Ctrl-C too
        beside.unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class Received:
    n_bytes: int
    sha256: str
    n_rows: int | None  # that the server announced


def _receive(client: Client, wanted: Wanted, file: IO[bytes]) -> Received:
    n_bytes, hashed = 0, hashlib.sha256()
    with transfer(wanted.about) as told, client.download(wanted.path, MEDIA_TYPES[wanted.form], wanted.params) as found:
        announced: Download = found
        for part in announced.parts:
            file.write(part)
            hashed.update(part)
            n_bytes += len(part)
            told.tell(n_bytes)
    return Received(n_bytes, hashed.hexdigest(), announced.n_rows)


def _check(wanted: Wanted, file: IO[bytes], found: Received) -> int | None:
    """Whether all of it came, which a proxy between may hide; how many rows there are."""
    file.flush()
    file.seek(0)
    if wanted.form == ZIP:
        from evalboard.core.run_archive_reader import RunArchive  # numpy with it, which no other command waits for

        try:
            RunArchive(file).check_members()
        except EvalboardError as problem:
            raise CommandError(f"What came is not whole, so nothing was kept. {problem.detail}") from problem
        return None
    n_rows = _n_rows(wanted.form, file)
    if found.n_rows is not None and n_rows != found.n_rows:
        raise CommandError(f"{n_rows:,} of {found.n_rows:,} rows came, so nothing was kept. Export again.")
    return n_rows


def _n_rows(form: str, file: IO[bytes]) -> int:
    if form == table.JSONL:
        return sum(1 for _ in file)
    csv.field_size_limit(MAX_CELL_CHARS)
    lines = (line.decode() for line in file)  # a cell may hold line ends: the reader puts its lines together
    return sum(1 for _ in csv.reader(lines)) - 1  # the header
