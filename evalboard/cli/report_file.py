"""The file of `evalboard diff --html`: refused before anything is read where it cannot be written."""

import hashlib
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from evalboard.cli.export import open_temporary
from evalboard.client.errors import WrongUse

if TYPE_CHECKING:
    from evalboard.logged.comparing import LogComparison
    from evalboard.logged.sources import SplitRun
    from frontend.compare.log_report import About


REMOTE = ("http://", "https://")


class ReportFile:
    """Where a report goes. The file is there when it is whole."""

    def __init__(self, path: str, sides: Sequence[Sequence[str]], fail_on: str = "") -> None:
        """Raise WrongUse if no file can be written at the path, or if it is one of the logs."""
        self._path, self._sides, self._fail_on = Path(path), sides, fail_on
        for log in (Path(log) for side in sides for log in side):
            if self._path.exists() and log.exists() and self._path.samefile(log):
                raise WrongUse(f"--html {path} is one of the logs; name another file.")
        try:
            with open_temporary(self._path):
                raise _Tried
        except _Tried:
            return

    def write_comparison(self, made: "LogComparison", names: Sequence[str], ending: str) -> None:
        """Write the report of two logs. Raises CommandError."""
        from frontend.compare.log_report import render_comparison

        runs = (made.baseline, made.candidate)
        logs = [(name, run.source_id, run.started_at) for name, run in zip(names, runs, strict=True)]
        about = self._describe(logs, ending)
        self._write(render_comparison(made, about))

    def write_split(self, runs: "Sequence[SplitRun]") -> None:
        """Write the report of one log, by who answered. Raises CommandError."""
        from frontend.compare.log_report import render_split

        about = self._describe([(self._sides[0][0], "", None)], "exit code 0: one log, split by who answered")
        self._write(render_split(runs, about))

    def _describe(self, named: "Sequence[tuple[str, str, datetime | None]]", ending: str) -> "About":
        """Return what the report says of itself. named: each side's name, digest and beginning."""
        from evalboard.logged.sources import find_archive
        from frontend.compare.log_report import About, ReportedLog

        logs = list(self._sides[0])
        if len(self._sides) == 2:
            logs += [*(["--"] if sum(map(len, self._sides)) > 2 else []), *self._sides[1]]
        paths = [log for log in logs if log != "--" and not log.startswith(REMOTE)]
        local_logs = [log for log in paths if not find_archive(Path(log))]
        command = ["evalboard", "diff", *logs, "--html", str(self._path)]
        command += ["--fail-on", self._fail_on] if self._fail_on else []
        return About(
            command=shlex.join(command),
            written=datetime.now(UTC),
            logs=tuple(
                ReportedLog(name, _digest(side, source), began)
                for name, side, (_, source, began) in zip(
                    _shorten([name for name, *_ in named]), self._sides, named, strict=True
                )
            ),
            ending=ending,
            keep=shlex.join(["evalboard", "import", *local_logs]) if local_logs else "",
        )

    def _write(self, html: str) -> None:
        data = html.encode()
        with open_temporary(self._path) as file:
            file.write(data)
        typer.echo(f"evalboard: the report is in {self._path} ({len(data) / 1000:,.0f} kB).", err=True)


def _shorten(names: Sequence[str]) -> list[str]:
    """Return names of files without the folders that all of them are in."""
    if any(name.startswith(REMOTE) for name in names):
        return list(names)
    parts = [Path(name).parts for name in names]
    shared = 0
    while all(len(each) > shared + 1 for each in parts) and len({each[shared] for each in parts}) == 1:
        shared += 1
    return [str(Path(*each[shared:])) if each else name for each, name in zip(parts, names, strict=True)]


class _Tried(Exception):
    """A file could be made there; it is gone again."""


def _digest(side: Sequence[str], source: str) -> str:
    """Return the digest of a side's one file, else what an import knows its files by."""
    if len(side) == 1 and Path(side[0]).is_file():
        with Path(side[0]).open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
    return f"files:{source}" if source else ""
