"""Wrap stdout and stderr, so that a failed write never ends a command with a misleading exit code."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any, TextIO

from evalboard.cli.errors import CommandError


class OutputClosed(Exception):
    """The reader of stdout or stderr has gone, as in `evalboard … | head -1`."""


class OutputLost(CommandError):
    """stdout cannot be written: the disk is full, say."""

    code = "output_lost"
    title = "The result cannot be written"


class Stream:
    """stdout or stderr. Text after the first failed write is dropped.

    Until an exit code is decided, that write and each after it raise OutputClosed or, of stdout, OutputLost.
    """

    def __init__(self, stream: TextIO, *, is_result: bool) -> None:
        self._stream, self._is_result = stream, is_result
        self._problem: OSError | None = None
        self._is_decided = self.is_verdict = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def lost(self) -> str:
        """Why stdout could not be written; "" where it could, or where its reader has gone."""
        if self._problem is None or isinstance(self._problem, BrokenPipeError) or not self._is_result:
            return ""
        return f"The result cannot be written to stdout: {self._problem.strerror}."

    def write(self, text: str) -> int:
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def decide(self, *, is_verdict: bool) -> None:
        self._is_decided = True
        self.is_verdict = self.is_verdict or is_verdict

    def _try(self, use: Callable[[], object]) -> None:
        if self._problem is None:
            try:
                use()
            except OSError as problem:
                self._problem = problem
                _discard(self._stream)
        # At every use, as click tries a stream out and takes no notice of what that raises.
        if self._problem is None or self._is_decided:
            return
        if isinstance(self._problem, BrokenPipeError):
            raise OutputClosed from self._problem
        if self._is_result:
            raise OutputLost(self.lost) from self._problem


@contextmanager
def watch_output() -> Iterator[Stream | None]:
    """Replace stdout and stderr by Streams; yield that of stdout, None if the process has none."""
    out = None if sys.stdout is None else Stream(_buffer(sys.stdout), is_result=True)
    err = None if sys.stderr is None else Stream(sys.stderr, is_result=False)
    streams: list[Any] = [out, err]
    with redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        yield out


def decide(*, is_verdict: bool = False) -> None:
    """Fix the command's exit code, even if writing fails later. Call it before printing.

    is_verdict: keep it on a full disk, too. Otherwise a 0 becomes FAILED, since the result was not written.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Stream):
            stream.decide(is_verdict=is_verdict)


def _buffer(stream: TextIO) -> TextIO:
    """Return a stream that writes a text whole or raises; with PYTHONUNBUFFERED Python may drop part."""
    if not isinstance(getattr(stream, "buffer", None), io.RawIOBase):
        return stream
    return open(stream.fileno(), "w", encoding=stream.encoding, errors=stream.errors, closefd=False)


def _discard(stream: TextIO) -> None:
    """Redirect the stream to /dev/null, because the interpreter flushes it at exit."""
    with suppress(OSError):  # it is no file
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def printable(text: str) -> str:
    """Return a model's text with what would steer a terminal written as an escape."""
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in text
    )
