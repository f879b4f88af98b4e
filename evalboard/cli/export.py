"""`evalboard export`: write a run, its cases, a comparison's pairs or a release to a file, atomically."""

import csv
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from evalboard.cli.arguments import parse_id, parse_pair
from evalboard.cli.errors import CommandError
from evalboard.client.access import connect, find_access
from evalboard.client.errors import WrongUse
from evalboard.client.progress import render_size
from evalboard.client.waiting import follow_transfer
from evalboard.core import table
from evalboard.core.errors import EvalboardError
from evalboard.wording.numbers import counted

if TYPE_CHECKING:
    from evalboard.client.rest import RestClient

ZIP = "zip"
MEDIA_TYPES = {ZIP: "application/zip", table.CSV: "text/csv", table.JSONL: "application/x-ndjson"}
MAX_CELL_CHARS = 1 << 27  # of one response's text, which the module's own limit of 131,072 would refuse


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A download request, and the default name of its file."""

    form: str
    path: str
    params: Mapping[str, str]
    about: str
    file_name: str


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")] = "",
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The output file; default: a generated name in this folder.")
    ] = None,
    cases: Annotated[
        str, typer.Option(metavar="csv|jsonl", help="Export a row per case and repeat instead of the whole run.")
    ] = "",
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="BASELINE CANDIDATE", help="With --cases, instead of RUN: pairs of responses that differ."
        ),
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="With --cases: a filter, such as only=failed; can be repeated."),
    ] = None,
    release: Annotated[
        str, typer.Option(metavar="ID", help="Instead of RUN: a release with all evidence of its verdict.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Write a run to a file: with its traces, or its cases as a table. The file is there once it is whole."""
    request = _parse_request(run, cases, compare, where or [], release)
    target = to or Path(request.file_name)
    with connect() as client, open_temporary(target) as file:
        received = _receive(client, request, file)
        n_rows = _check_whole(request, file, received)
    facts = {"file": str(target), "form": request.form, "n_bytes": received.n_bytes, "n_rows": n_rows}
    if as_json:
        typer.echo(json.dumps({**facts, "sha256": received.sha256}, ensure_ascii=False))
        return
    rows = "" if n_rows is None else f"{counted(n_rows, 'row')}, "
    typer.echo(f"{target}: {request.about}, {rows}{render_size(received.n_bytes)}, sha256 {received.sha256}")


def _parse_request(
    run: str, cases: str, compare: tuple[str, str] | None, where: list[str], release: str
) -> FileRequest:
    if release:
        if run or cases or compare is not None or where:
            raise typer.BadParameter("It goes without RUN and the options of cases.", param_hint="--release")
        release = parse_id(release, "--release")
        return FileRequest(ZIP, f"/releases/{release}/export/", {}, f"release {release}", f"release-{release}.zip")
    filters = dict(parse_pair(text, "NAME=VALUE", "--where") for text in where)
    if cases and cases not in (table.CSV, table.JSONL):
        raise typer.BadParameter("Must be csv or jsonl.", param_hint="--cases")
    if filters and not cases:
        raise typer.BadParameter("Only cases can be filtered; give --cases too.", param_hint="--where")
    if compare is not None:
        if run or not cases:
            raise typer.BadParameter("It goes with --cases, and without RUN.", param_hint="--compare")
        ours, theirs = (parse_id(part, "--compare") for part in compare)
        params = {"baseline": ours, "candidate": theirs, **filters}
        about, name = f"run {theirs} against run {ours}", f"run-{ours}-against-{theirs}-cases.{cases}"
        return FileRequest(cases, f"/compare/cases.{cases}", params, about, name)
    run = parse_id(run, "RUN")
    if cases:
        path, name = f"/runs/{run}/cases.{cases}", f"run-{run}-cases.{cases}"
        return FileRequest(cases, path, filters, f"cases of run {run}", name)
    return FileRequest(ZIP, f"/runs/{run}/export/", {}, f"run {run}", f"run-{run}.zip")


@contextmanager
def open_temporary(target: Path) -> Iterator[IO[bytes]]:
    """Open a new file next to the target; rename it to the target on success, else delete it.

    A link stays, and what it names is replaced. Raises WrongUse for what is no file, such as a device.
    """
    if target.is_dir():
        raise WrongUse(f"{target} is a folder; name a file in it.")
    if target.exists() and (not target.is_file() or _is_stdout(target)):
        raise WrongUse(f"{target} is no file that can be replaced; name another one.")
    real = Path(os.path.realpath(target))
    beside = real.with_name(f".{real.name}.{secrets.token_hex(4)}.part")
    try:  # before the file is there, for Ctrl-C may come as it is made
        try:
            file = beside.open("x+b")
        except OSError as problem:
            raise WrongUse(f"{target} cannot be written: {problem.strerror}.") from problem
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(real)
    except OSError as problem:
        beside.unlink(missing_ok=True)
        raise CommandError(f"{target} cannot be written: {problem.strerror}.") from problem
    except BaseException:  # Ctrl-C too
        beside.unlink(missing_ok=True)
        raise


def _is_stdout(target: Path) -> bool:
    try:
        return os.path.samestat(target.stat(), os.fstat(1))
    except OSError:  # stdout is closed
        return False


def download_run(address: str, target: Path) -> None:
    """Write the archive of the run at an address to a file. Raises WrongUse, or CommandError."""
    server = find_access().url  # the token goes nowhere else
    match = re.fullmatch(re.escape(server) + r"/runs/([0-9]{1,18})/?(?:[?#].*)?", address)
    if match is None:
        raise WrongUse(
            f"{address} is no run of {server}, the server in use. Set EVALBOARD_URL, or name {server}/runs/12."
        )
    request = _parse_request(match[1], "", None, [], "")
    with connect() as client, target.open("w+b") as file:
        run = client.run(match[1]).value
        if not run.is_terminal:
            raise CommandError(f"Run {run.id} is {run.status}. Wait for it with `evalboard wait {run.id}`.")
        _check_whole(request, file, _receive(client, request, file))


@dataclass(frozen=True, slots=True)
class Received:
    n_bytes: int
    sha256: str
    n_rows: int | None  # that the server announced


def _receive(client: "RestClient", request: FileRequest, file: IO[bytes]) -> Received:
    n_bytes, digest = 0, hashlib.sha256()
    source = client.download(request.path, MEDIA_TYPES[request.form], request.params)
    with follow_transfer(request.about) as transfer, source as download:
        for part in download.parts:
            file.write(part)
            digest.update(part)
            n_bytes += len(part)
            transfer.tell(n_bytes)
    return Received(n_bytes, digest.hexdigest(), download.n_rows)


def _check_whole(request: FileRequest, file: IO[bytes], received: Received) -> int | None:
    """Raise if part of a file is missing, which a proxy may hide; return its number of rows."""
    file.flush()
    file.seek(0)
    if request.form == ZIP:
        # Here, as it brings numpy, which no other command waits for.
        from evalboard.core.archive import ReleaseBundle, RunArchive, find_kind

        try:
            (ReleaseBundle if find_kind(file) == ReleaseBundle.kind else RunArchive)(file).check_members()
        except EvalboardError as problem:
            raise CommandError(f"What came is not whole, so nothing was kept. {problem.detail}") from problem
        return None
    n_rows = _count_rows(request.form, file)
    if received.n_rows is not None and n_rows != received.n_rows:
        raise CommandError(f"{n_rows:,} of {received.n_rows:,} rows came, so nothing was kept. Export again.")
    return n_rows


def _count_rows(form: str, file: IO[bytes]) -> int:
    if form == table.JSONL:
        return sum(1 for _ in file)
    csv.field_size_limit(MAX_CELL_CHARS)
    lines = (line.decode() for line in file)  # a cell may hold line ends: the reader puts its lines together
    return sum(1 for _ in csv.reader(lines)) - 1  # the header
