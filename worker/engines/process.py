"""A child process that speaks JSON lines, with deadlines, ended together with its own children."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

LAST_LINES, LINE_CHARACTERS = 200, 2000
READ_BYTES = 1 << 20
TICK_SECONDS = 0.5  # how soon an abort from another thread is noticed
STOP_SECONDS = 10.0


class ProcessEnded(Exception):
    """The child closed its pipes: it has ended, or is about to."""


class DeadlinePassed(Exception):
    """The child did not respond in time."""


class LineTooLong(Exception):
    """The child wrote more than a line may have."""


class EngineInterrupted(Exception):
    """`interrupt` was called from another thread."""


class LineProcess:
    """A child in a session and process group of its own.

    `send` and `receive` belong to one thread; `interrupt` and `last_words` may be called from any.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._command = list(command)
        self._env = dict(env)
        self._stderr: deque[str] = deque(maxlen=LAST_LINES)
        self._received = bytearray()
        # A plain flag, not an Event: a signal handler may set it while this thread holds an Event's lock.
        self._is_interrupted = False
        self._begun = threading.Event()
        self._start_error: OSError | None = None
        self._process: subprocess.Popen[bytes]
        # The kernel's "kill me when my parent dies" means the parent's *thread* that started the
        # child. So the thread that starts it stays until it has ended, reading its stderr.
        self._keeper = threading.Thread(target=self._keep, name="engine-stderr", daemon=True)
        self._keeper.start()
        self._begun.wait()
        if self._start_error is not None:
            raise self._start_error
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None  # noqa: S101  for the type checker: both were asked for
            os.set_blocking(pipe.fileno(), False)

    @property
    def pid(self) -> int:
        return self._process.pid

    def send(self, message: Mapping[str, Any], *, seconds: float) -> None:
        """Write one line. Raises ProcessEnded, DeadlinePassed or Interrupted."""
        data = memoryview(json.dumps(message, allow_nan=False).encode() + b"\n")
        deadline = time.monotonic() + seconds
        while data:
            self._wait(self._process.stdin, selectors.EVENT_WRITE, deadline)
            try:
                data = data[os.write(self._process.stdin.fileno(), data) :]  # type: ignore[union-attr]
            except BlockingIOError:
                continue
            except OSError as broken:
                raise ProcessEnded from broken

    def receive(self, *, deadline: float) -> dict[str, Any]:
        """Read one line as JSON, until `deadline` on the monotonic clock. Raises as `send` does."""
        return dict(json.loads(self.receive_line(deadline=deadline)))

    def receive_line(self, *, deadline: float, most_bytes: int | None = None) -> bytes:
        """Read one line without its end. Raises as `send` does, and LineTooLong."""
        while True:
            end = self._received.find(b"\n")
            if end >= 0:
                line = bytes(self._received[:end])
                del self._received[: end + 1]
                return line
            if most_bytes is not None and len(self._received) > most_bytes:
                raise LineTooLong
            self._wait(self._process.stdout, selectors.EVENT_READ, deadline)
            data = os.read(self._process.stdout.fileno(), READ_BYTES)  # type: ignore[union-attr]
            if not data:
                raise ProcessEnded
            self._received += data

    def interrupt(self) -> None:
        """Make a `send` or `receive` under way, or the next one, raise Interrupted once."""
        self._is_interrupted = True

    def clear_interrupt(self) -> None:
        self._is_interrupted = False

    @property
    def has_ended(self) -> bool:
        """Return whether `kill` was called: the child is gone and reaped."""
        return self._process.returncode is not None

    def kill(self) -> None:
        """End the whole group now."""
        if self.has_ended:
            return
        self._end()
        self._keeper.join(timeout=STOP_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def wait(self, *, seconds: float) -> bool:
        """Return whether the child exits in time, without reaping it, so that `kill` finds its group."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
            time.sleep(0.01)
        return False

    def exit_words(self) -> str:
        """Say how the child ended; call after `kill`."""
        status = self._process.returncode
        if status is None:
            return "is still running"
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        return f"ended with exit status {status}"

    def last_words(self) -> str:
        """Return the end of its stderr."""
        return "\n".join(tuple(self._stderr))

    def _start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self._command, env=self._env, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
        )

    def _end(self) -> None:
        # While the leader is not reaped, its id identifies this group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _keep(self) -> None:
        try:
            self._process = self._start()
        except OSError as problem:
            self._start_error = problem
            return
        finally:
            self._begun.set()
        assert self._process.stderr is not None  # noqa: S101  for the type checker
        with self._process.stderr as stderr:
            for line in _lines(stderr.fileno()):
                self._stderr.append(line)
        with contextlib.suppress(ChildProcessError):  # has been reaped; it may have closed stderr and go on
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)

    def _wait(self, pipe: Any, event: int, deadline: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, event)
            while True:
                if self._is_interrupted:
                    self._is_interrupted = False
                    raise EngineInterrupted
                left = deadline - time.monotonic()
                if selector.select(max(0.0, min(left, TICK_SECONDS))):
                    return
                if left <= 0:
                    raise DeadlinePassed


def _lines(descriptor: int) -> Any:
    """Yield decoded lines as they come; a progress bar's carriage returns end a line too."""
    rest = b""
    while data := os.read(descriptor, 65536):
        *whole, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
        rest = rest[: 4 * LINE_CHARACTERS]  # of a line that does not end
        yield from (line.decode("utf-8", "replace")[:LINE_CHARACTERS] for line in whole if line.strip())
    if rest.strip():
        yield rest.decode("utf-8", "replace")[:LINE_CHARACTERS]
