"""Child processes that never outlive their parent, each with a log file of its own."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
MOMENT_SECONDS = 1.0
PEEK = os.WEXITED | os.WNOHANG | os.WNOWAIT  # has it ended? without taking its exit status
_libc = ctypes.CDLL(None, use_errno=True)


class Child:
    """One process in its own process group, so that a Ctrl-C reaches it only through its parent, in order.

    Should the parent die without a word, the kernel sends the child `end_signal`. That holds for the thread that
    starts it: start children from the main thread.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        log: Path | None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        end_signal: signal.Signals = signal.SIGTERM,
        patience: float = 10.0,
        captures: bool = False,
    ) -> None:
        """Start it. `patience` is the seconds it gets to end itself.

        log: None lets the child write where its parent does.
        captures: what it writes on stdout goes to `output` alone, so that no file keeps it.
        """
        self.name = name
        self.log = log
        self._end_signal = end_signal
        self._patience = patience
        self._output = b""
        out = log.open("ab") if log else None
        try:
            self._process = subprocess.Popen(
                list(command),
                env=None if env is None else dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if captures else out,
                stderr=out,
                process_group=0,
                preexec_fn=die_with_parent(end_signal),
            )
        finally:
            if out:
                out.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_status(self) -> int | None:
        """Return None while it runs, negative for a signal. Kill what an ended child left running."""
        if self._process.returncode is None and os.waitid(os.P_PID, self.pid, PEEK) is not None:
            # Before poll() below: until then no other group can get this number.
            self._signal_group(signal.SIGKILL)
        return self._process.poll()

    def output(self) -> str:
        """Return what it has written on stdout so far. Call it regularly, or a full pipe blocks the child."""
        pipe = self._process.stdout
        if pipe is not None and not pipe.closed:
            os.set_blocking(pipe.fileno(), False)
            while part := pipe.read(65_536):  # None: nothing more yet
                self._output += part
            if part == b"":
                pipe.close()
        return self._output.decode(errors="replace")

    def stop(self, tell: Callable[[str], None] = lambda words: None) -> None:
        """Ask the child to end, wait, and kill what is left of its group. Safe to call twice.

        tell: called with what is waited for, and how long at most, if that takes more than a moment.
        """
        if self.exit_status() is not None:
            return
        self._process.send_signal(self._end_signal)
        if wait_until(lambda: self.exit_status() is not None, min(MOMENT_SECONDS, self._patience)):
            return
        if self._patience > MOMENT_SECONDS:
            tell(f"Waiting for {self.name} to end, for at most {self._patience:.0f} s; Ctrl-C ends it at once.")
        if not wait_until(lambda: self.exit_status() is not None, self._patience - MOMENT_SECONDS):
            self.kill()

    def kill(self) -> None:
        """End the whole group at once."""
        if self.exit_status() is None:
            self._signal_group(signal.SIGKILL)
            self._process.wait()

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def end_of_log(self, lines: int) -> str:
        """Return the last non-empty lines of its log, to explain why it died."""
        if self.log is None or not self.log.exists():
            return ""
        with self.log.open("rb") as file:
            file.seek(max(0, self.log.stat().st_size - 16_384))
            last_lines = [line for line in file.read().decode(errors="replace").splitlines() if line.strip()]
        return "\n".join(last_lines[-lines:])


def in_words(status: int) -> str:
    """Return an exit status for a person: `exit status 1`, `signal SIGKILL`."""
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


def wait_until(holds: Callable[[], bool], seconds: float, *, every: float = 0.05) -> bool:
    """Poll `holds` until it is true. Return False if it was not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def die_with_parent(end_signal: signal.Signals) -> Callable[[], None]:
    """Return a pre-exec function: the child gets a signal when the thread that started it ends."""
    parent = os.getpid()
    return lambda: end_with(parent, end_signal)


def end_with(parent: int, end_signal: signal.Signals) -> None:
    """Have the kernel signal this process when its starting thread in `parent` ends, or at once if it has."""
    if sys.platform == "linux":  # elsewhere a parent that is killed leaves its children to be ended by hand
        _libc.prctl(PR_SET_PDEATHSIG, int(end_signal))
    if os.getppid() != parent:  # it died before the line above
        os.kill(os.getpid(), end_signal)
