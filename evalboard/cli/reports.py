"""The files that a command leaves for CI: JUnit XML, a Markdown summary, the body of a comment."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evalboard.cli.errors import CommandError, exit_code
from evalboard.cli.junit import render_document
from evalboard.cli.results import SuiteResult, collect_gate_results, collect_run_results
from evalboard.cli.summary import SummaryPage, build_release_page, build_run_page, render_comment, render_summary
from evalboard.client.waiting import GIVE_UP_SECONDS, ask_until_answered, make_follower
from evalboard.core.errors import EvalboardError
from evalboard.wording.results import describe_end

if TYPE_CHECKING:
    from evalboard.client.rest import RestClient
    from evalboard.contract.release import Release
    from evalboard.contract.run import Run

JunitFile = Annotated[str, typer.Option("--junit", metavar="FILE", help="Write JUnit XML, one testcase per case.")]
SummaryFile = Annotated[
    str, typer.Option("--summary", metavar="FILE", help='Add a summary in Markdown, as to "$GITHUB_STEP_SUMMARY".')
]
CommentFile = Annotated[
    str, typer.Option("--comment", metavar="FILE", help="Write a Markdown comment for a pull or merge request.")
]


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The path of each report; None if it was not requested."""

    junit: Path | None = None
    summary: Path | None = None
    comment: Path | None = None

    @property
    def is_any(self) -> bool:
        return (self.junit, self.summary, self.comment) != (None, None, None)


def parse_report_files(**files: str) -> ReportFiles:
    """Return the files as they were named; "" is none, as where a CI's variable is not set.

    Raises typer.BadParameter where one could not be written, before an hour is spent on what it should say.
    """
    for name, file in files.items():
        if file and not _is_writable(Path(file)):
            raise typer.BadParameter(f"{file} cannot be written.", param_hint=f"--{name}")
    return ReportFiles(**{name: Path(file) if file else None for name, file in files.items()})


def write_run_reports(files: ReportFiles, client: "RestClient", run: "Run", *, code: int, note: str = "") -> int:
    """Write a run's reports; return the command's exit code: `code`, unless it was 0 and a report failed."""

    def gather() -> tuple[list[SuiteResult], SummaryPage]:
        result = collect_run_results(client, run)
        return [result], build_run_page(run, result, sentence=describe_end(run), note=note)

    return _write(files, gather, code=code)


def write_release_reports(
    files: ReportFiles, client: "RestClient", release: "Release", *, code: int, lean: str | None = None
) -> int:
    """Do the same for a release; `lean` where it gives one and no verdict."""

    def gather() -> tuple[list[SuiteResult], SummaryPage]:
        results = [collect_gate_results(client, gate, release.url) for gate in release.gates]
        return results, build_release_page(release, results, lean=lean)

    return _write(files, gather, code=code)


def _is_writable(path: Path) -> bool:
    if path.exists():
        return not path.is_dir() and os.access(path, os.W_OK)
    return path.parent.is_dir() and os.access(path.parent, os.W_OK)


def _write(files: ReportFiles, gather: Callable[[], tuple[list[SuiteResult], SummaryPage]], *, code: int) -> int:
    if not files.is_any:
        return code
    try:
        with make_follower() as follower:
            results, page = ask_until_answered(
                gather, follower, advice="No report was written.", give_up_after=GIVE_UP_SECONDS
            )
        if files.junit:
            _store(files.junit, render_document(results))
        if files.summary:
            _store(files.summary, render_summary(page), mode="a")  # what earlier commands of the step said stays
        if files.comment:
            _store(files.comment, render_comment(page))
    except EvalboardError as problem:
        typer.echo(f"evalboard: {problem}", err=True)
        return code or exit_code(problem)  # a verdict that was taken is never hidden
    return code


def _store(path: Path, text: str, mode: str = "w") -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as problem:
        raise CommandError(f"{path} cannot be written: {problem.strerror}.") from problem
