"""What tests ask of processes that may end while they are asked."""

from collections.abc import Iterable
from contextlib import suppress

import psutil

from evalboard.local import postgres


def main_process(server: postgres.Server) -> int:
    """Give the process id of PostgreSQL's first process."""
    return int((server.folder / "postmaster.pid").read_text().split("\n")[0])


def family_of(pid: int) -> list[psutil.Process]:
    """List a process and all that it started, it first."""
    main = psutil.Process(pid)
    return [main, *main.children(recursive=True)]


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Send each SIGKILL; one that has ended, as with its parent, is passed over."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def is_gone(process: psutil.Process) -> bool:
    """Say whether it has ended; one that its parent has not waited for yet has."""
    with suppress(psutil.NoSuchProcess):
        return process.status() == psutil.STATUS_ZOMBIE or not process.is_running()
    return True


def command_of(process: psutil.Process) -> str:
    """Give its arguments, a space between two; nothing of one that has ended."""
    with suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""
