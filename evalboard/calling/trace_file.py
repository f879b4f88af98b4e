"""Write a recording: a line for each call as it ends, so that the file is always complete."""

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

from evalboard.calling.calls import Answered, CallOutcome
from evalboard.calling.recording import Key, Recording
from evalboard.core.errors import Conflict, InvalidInput
from evalboard.importers.json_files import parse
from evalboard.wording.numbers import listed

START = b'{"case_id":'  # of every line, also of one that was cut


class TraceFile:
    """A log being recorded, as a context manager; a file without a line is removed at the end.

    done: the calls that it holds answers of. n_failed: of those that it holds no answer of, only a reason.
    first_reason: that of the first. left_out: how many calls were not sent a setting. Failed calls of an earlier
    recording are made again.
    """

    def __init__(self, path: Path, recording: Recording, *, is_new: bool = False) -> None:
        """Prepare the file. is_new: discard its present content."""
        self.path, self._recording, self._is_new = path, recording, is_new
        self.done: set[Key] = set()
        self.n_failed = 0
        self.first_reason = ""
        self.left_out: Counter[str] = Counter()

    def __enter__(self) -> Self:
        """Read the present content. Raises InvalidInput for another recording's, Conflict if in use."""
        self._file = _open_alone(self.path)
        try:
            if self._is_new:
                self._file.truncate(0)
            lines = list(self._read())
            if not all(lines):
                self._drop(lines)
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        with self._file:
            if self.path.is_file() and self.path.stat().st_size == 0:
                self.path.unlink()

    def add(self, outcome: CallOutcome) -> None:
        """Write a call's result. Raises OSError, and then the file is unchanged."""
        line = self._recording.make_line(outcome)
        end = self._file.seek(0, os.SEEK_END)
        try:
            _write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")
            self._note(line, is_answered=isinstance(outcome, Answered))
        except BaseException:  # Ctrl-C too: a line is either there and counted, or neither
            self.done.discard((line["case_id"], line["repeat"]))
            with suppress(OSError):
                self._file.truncate(end)
            raise

    def _note(self, line: Mapping[str, Any], *, is_answered: bool) -> None:
        if is_answered:
            self.done.add((line["case_id"], line["repeat"]))
        else:
            self.n_failed += 1
            self.first_reason = self.first_reason or line["error"]["message"]
        self.left_out.update(line.get("left_out", ()))

    def _read(self) -> Iterator[bool]:
        """Note each line; yield whether it stays. The last one may have been cut in its middle."""
        with self.path.open("rb") as lines:
            for number, content in enumerate(lines, start=1):
                is_whole = content.endswith(b"\n") or not content.startswith(START[: len(content)])
                yield is_whole and self._read_line(content, number)

    def _read_line(self, content: bytes, number: int) -> bool:
        """Register an earlier line; return whether it has an answer. Raises InvalidInput."""
        line: dict[str, Any] = {}
        with suppress(InvalidInput):
            line = parse(content, where="")
        settings = line.get("settings")
        if not isinstance(settings, dict):
            raise InvalidInput(
                f"{self.path} was not written by this command (line {number}). Name another file, or overwrite it "
                "with --again."
            )
        self._compare(settings)
        if "error" not in line:
            self._note(line, is_answered=True)
        return "error" not in line

    def _compare(self, settings: Mapping[str, Any]) -> None:
        """Raise InvalidInput where a line was recorded under other settings."""
        ours = json.loads(json.dumps(self._recording.settings))
        differing = [name for name in {**settings, **ours} if settings.get(name) != ours.get(name)]
        if differing:
            shown = [
                f"{name} ({json.dumps(settings.get(name))}, now {json.dumps(ours.get(name))})" for name in differing
            ]
            raise InvalidInput(
                f"{self.path} was recorded with other settings: {listed(shown)}. Repeat them to go on with it, name "
                "another file, or overwrite it with --again."
            )

    def _drop(self, stays: list[bool]) -> None:
        """Write the file again without lines that are no answers; it is replaced as a whole."""
        beside = self.path.with_name(f"{self.path.name}.part")
        new = _open_alone(beside)
        new.truncate(0)
        with self._file, self.path.open("rb") as lines:
            for content, is_good in zip(lines, stays, strict=True):
                if is_good:
                    _write(new, content)
            beside.replace(self.path)
        self._file = new


def _write(file: IO[bytes], content: bytes) -> None:
    while content:
        content = content[file.write(content) or 0 :]


def _open_alone(path: Path) -> IO[bytes]:
    """Open a file and lock it. Raises Conflict if it is being written, and InvalidInput if it cannot."""
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path} is no file that can be continued.")
    try:
        file = path.open("a+b", buffering=0)
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be written: {problem.strerror}.") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise Conflict(f"Another command is writing {path}.") from None
    return file
