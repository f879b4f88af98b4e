"""What tests ask of processes that may end while they are asked, and how they wait for the end of one."""

import os
import select
from collections.abc import Iterable
from contextlib import suppress

import psutil

from evalboard.local import postgres

Process = psutil.Process


def main_process(server: postgres.Server) -> int:
    """Give the process id of PostgreSQL's first process."""
    return int((server.folder / "postmaster.pid").read_text().split("\n")[0])


def family_of(pid: int) -> list[Process]:
    """List a process and all that it started, it first."""
    main = Process(pid)
    return [main, *main.children(recursive=True)]


def children_of(pid: int) -> list[Process]:
    """List what a process started itself and what still runs; nothing where it has ended."""
    with suppress(psutil.NoSuchProcess):
        return Process(pid).children()
    return []


def descendants_of(pid: int, words: str) -> list[Process]:
    """List what a process and its children started whose command has these words; nothing where it has ended."""
    with suppress(psutil.NoSuchProcess):
        return [each for each in Process(pid).children(recursive=True) if words in command_of(each)]
    return []


def kill_all(processes: Iterable[Process]) -> None:
    """Send each SIGKILL; one that has ended, as with its parent, is passed over."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def wait_for_end(*processes: Process | int) -> None:
    """Wait until each process has ended, whoever started it: the kernel says so at once, and nothing is polled."""
    for process in processes:
        with suppress(ProcessLookupError):  # it has ended, and its parent knows
            pid = process if isinstance(process, int) else process.pid
            end = os.pidfd_open(pid)
            try:
                if isinstance(process, int) or process.is_running():  # else the number is another's by now
                    select.select([end], [], [])
            finally:
                os.close(end)


def is_there(pid: int) -> bool:
    """Say whether there is a process with this number, be it one that has ended and that nobody has asked after."""
    return psutil.pid_exists(pid)


def is_gone(process: Process) -> bool:
    """Say whether it has ended; one that its parent has not waited for yet has."""
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE or not process.is_running()
    return True


def command_of(process: Process) -> str:
    """Give its arguments, a space between two; nothing of one that has ended."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def environment_of(pid: int) -> dict[str, str]:
    """Give the variables that a process was started with."""
    return Process(pid).environ()
