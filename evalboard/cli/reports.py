"""The files that a command leaves for CI: JUnit XML, a Markdown summary, the body of a comment."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from evalboard.cli import junit, results, run_words, summary
from evalboard.cli.answers import ReleaseAnswer, RunAnswer
from evalboard.cli.client import Client
from evalboard.cli.errors import CommandError, WrongUse
from evalboard.cli.patience import GIVE_UP_SECONDS, answered
from evalboard.cli.progress import follower
from evalboard.cli.results import SuiteResult
from evalboard.cli.summary import Page

JunitFile = Annotated[str, typer.Option("--junit", metavar="FILE", help="Write JUnit XML: one testcase a case.")]
SummaryFile = Annotated[
    str, typer.Option("--summary", metavar="FILE", help='Add a summary in Markdown, as to "$GITHUB_STEP_SUMMARY".')
]
CommentFile = Annotated[
    str, typer.Option("--comment", metavar="FILE", help="Write a comment for a pull or merge request, in Markdown.")
]


@dataclass(frozen=True, slots=True)
class Reports:
    """Where each is wanted; None: it is not."""

    junit: Path | None = None
    summary: Path | None = None
    comment: Path | None = None

    @property
    def is_wanted(self) -> bool:
        return (self.junit, self.summary, self.comment) != (None, None, None)


def asked(**files: str) -> Reports:
    """The files as they were named; "" is none, as where a CI's variable is not set.

    Raises typer.BadParameter where one could not be written, before an hour is spent on what it should say.
    """
    for name, file in files.items():
        if file and not _is_writable(Path(file)):
            raise typer.BadParameter(f"{file} cannot be written.", param_hint=f"--{name}")
    return Reports(**{name: Path(file) if file else None for name, file in files.items()})


def of_run(wanted: Reports, client: Client, run: RunAnswer, *, code: int, note: str = "") -> int:
    """Write what is wanted of a run; the command's exit code, `code` unless it was 0 and a report failed."""

    def gather() -> tuple[list[SuiteResult], Page]:
        result = results.of_run(client, run)
        return [result], summary.of_run(run, result, said=run_words.of_end(run), note=note)

    return _write(wanted, gather, code=code)


def of_release(wanted: Reports, client: Client, judged: ReleaseAnswer, *, code: int, lean: str | None = None) -> int:
    """The same of a release; `lean` where it gives one and no verdict."""

    def gather() -> tuple[list[SuiteResult], Page]:
        found = [results.of_gate(client, gate, judged.url) for gate in judged.gates]
        return found, summary.of_release(judged, found, lean=lean)

    return _write(wanted, gather, code=code)


def _is_writable(path: Path) -> bool:
    if path.exists():
        return not path.is_dir() and os.access(path, os.W_OK)
    return path.parent.is_dir() and os.access(path.parent, os.W_OK)


def _write(wanted: Reports, gather: Callable[[], tuple[list[SuiteResult], Page]], *, code: int) -> int:
    if not wanted.is_wanted:
        return code
    try:
        with follower() as told:
            found, page = answered(gather, told, advice="No report was written.", give_up_after=GIVE_UP_SECONDS)
        if wanted.junit:
            _store(wanted.junit, junit.document(found))
        if wanted.summary:
            _store(wanted.summary, summary.text(page), mode="a")  # what earlier commands of the step said stays
        if wanted.comment:
            _store(wanted.comment, summary.comment(page))
    except CommandError as problem:
        typer.echo(f"evalboard: {problem}", err=True)
        return code or problem.exit_code  # a verdict that was taken is never hidden
    return code


def _store(path: Path, text: str, mode: str = "w") -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise WrongUse(f"{path} cannot be written: {problem.strerror}.") from problem
