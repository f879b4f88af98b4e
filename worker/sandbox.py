"""The confinement in which a team's own scorer runs: the kernel's, so that no program can undo it.

`sandbox_start` applies it in a process of its own, which then becomes the program. docs/operations.md says what it
keeps a program from, and docs/decisions/0030-own-scorers.md what it does not.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from worker.engines.process import LineProcess
from worker.sandbox_start import SCRATCH

FOLDER = Path(__file__).resolve().parent
PYTHON = (sys.executable, "-I", "-S")
PROOF_MEMORY_MB, PROOF_SECONDS = 256, 30.0
# All that a program sees of an environment. glibc's arenas take 64 MB of the address space each.
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/nonexistent",
    "MALLOC_ARENA_MAX": "2",
}
ENVIRONMENT |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}

_DOCKER = "which this machine refuses, as Docker's default profile does: let scorers have one process and no scratch,"
# What sandbox_start could not do, or sandbox_proof should not have been able to do.
GAPS = {
    "landlock": "Scorers need Landlock, which this kernel does not have or has switched off: run the worker on Linux"
    " 5.13 or newer, with landlock in lsm=….",
    "seccomp": "Scorers need a seccomp filter, which this kernel does not take: run the worker on x86_64 or aarch64,"
    " with CONFIG_SECCOMP_FILTER.",
    "namespaces": f"Several processes and scratch need namespaces, {_DOCKER} or allow `unshare` and `mount` there.",
    "scratch": f"Scratch needs a mount, {_DOCKER} or allow `mount`.",
    "count": "The kernel does not count a scorer's processes and threads: run the worker as another user than root, or"
    " leave it CAP_SETUID, CAP_SETGID and CAP_KILL.",
}
LEAK = "Nothing keeps a scorer here from {attempts}: let none run, and try a newer kernel."
FAILURE = "{program} cannot be started under confinement: {words}"


class NotConfined(OSError):
    """A program was not started: it cannot be confined, or cannot be started at all."""


@dataclass(frozen=True, slots=True)
class Confinement:
    """What a program may use. memory_mb: of address space, for each process.

    processes: at 1 it starts none, and 64 threads. Beyond, processes and threads together.
    scratch_mb: of the folder that TMPDIR names, which ends with the program; at 0 it writes nowhere.
    """

    memory_mb: int = 1024
    processes: int = 1
    scratch_mb: int = 0


class ConfinedProgram(subprocess.Popen[bytes]):
    """What `start` started; `end` ends it."""

    end_signal = signal.SIGKILL


class ConfinedLines(LineProcess):
    """A confined program that speaks JSON lines. It may write anything on stderr: the end stays."""

    def __init__(self, command: Sequence[str], *, confinement: Confinement, readable: Sequence[Path] = ()) -> None:
        """Raises NotConfined."""
        self._confinement, self._readable = confinement, readable
        super().__init__(command, {})

    def _start(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return start(self._command, confinement=self._confinement, readable=self._readable, stderr=pipe)

    def _end(self) -> None:
        assert isinstance(self._process, ConfinedProgram)  # noqa: S101  for the type checker: see above
        end(self._process)


def start(
    command: Sequence[str],
    *,
    confinement: Confinement,
    readable: Sequence[Path] = (),
    stderr: int | IO[bytes] = subprocess.DEVNULL,
) -> ConfinedProgram:
    """Start a program that reads only `readable` and the system. Raises NotConfined.

    It ends with the thread that calls this, also where the worker is killed: call it from one that stays.
    """
    if sys.platform != "linux":
        raise NotConfined(GAPS["landlock"])
    report, report_end = os.pipe()
    paths = [str(path.absolute()) for path in (Path(sys.base_prefix), *readable)]
    numbers = (report_end, confinement.memory_mb, confinement.processes, confinement.scratch_mb, len(paths))
    with open(report, "rb") as lines:  # noqa: PTH123
        try:
            process = ConfinedProgram(
                [*PYTHON, str(FOLDER / "sandbox_start.py"), *map(str, numbers), *paths, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
                env=ENVIRONMENT | ({"TMPDIR": SCRATCH} if confinement.scratch_mb else {}),
                cwd="/",
                pass_fds=[report_end],
                start_new_session=True,
            )
        finally:
            os.close(report_end)
        if confinement.processes > 1:
            process.end_signal = signal.SIGTERM  # to the process that waits for process 1 of the namespace
        step, _, words = lines.read().decode().partition("\n")  # ends as the program starts
    if step:
        with process:  # closes its pipes
            end(process)
        raise NotConfined(GAPS.get(step, FAILURE.format(program=command[0], words=words)))
    return process


def end(process: ConfinedProgram) -> None:
    """Kill all of it, and return when it is gone, its children and its scratch as well. Its pipes stay."""
    process.send_signal(process.end_signal)
    process.wait()


def find_gap(*, processes: int = 1, scratch_mb: int = 0) -> str | None:
    """Return what this machine lacks to confine a program, and what to do. A real child tries."""
    confinement = Confinement(PROOF_MEMORY_MB, processes, scratch_mb)
    with tempfile.NamedTemporaryFile() as outside:
        os.fchmod(outside.fileno(), 0o644)
        facts = (os.getpid(), outside.name, PROOF_MEMORY_MB, processes, scratch_mb)
        proof = FOLDER / "sandbox_proof.py"
        try:
            command = [*PYTHON, str(proof), *map(str, facts)]
            process = start(command, confinement=confinement, readable=[proof], stderr=subprocess.PIPE)
        except NotConfined as error:
            return str(error)
        with process:
            try:
                written, words = process.communicate(timeout=PROOF_SECONDS)
            except subprocess.TimeoutExpired:
                written, words = b"", b"it does not end."
            end(process)
    *attempts, last = written.decode().split("\n")
    if last != "done":
        return FAILURE.format(program=sys.executable, words=words.decode(errors="replace").strip())
    return GAPS.get(attempts[0], LEAK.format(attempts=", ".join(attempts))) if attempts else None
