"""Which process a worker is, so that another one of its machine can tell that it is gone.

A process id says nothing by itself: two containers of one host name both have a process 1, and an id is given again
after a while. It names a process only beside the boot and the namespaces that it counts in, and the time when the
process started. Where any of these is not known, nobody is declared gone: the lease decides.
"""

import os
from pathlib import Path

PROC = Path("/proc")
# After the name in parentheses, which may hold anything: state is the first field, the start time the twentieth.
STATE, START = 0, 19
ZOMBIE = "Z"


def own_place() -> str:
    """Return where this process's id is valid: the boot and the namespaces; "" if unknown."""
    try:
        if (PROC / "self").readlink() != Path(str(os.getpid())):  # /proc is of another namespace than this process
            return ""
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return " ".join([boot, _namespace("pid"), _namespace("time")])
    except OSError:
        return ""


def started(pid: int) -> int | None:
    """Return a local process's start in clock ticks since the boot; None if it cannot be read."""
    fields = _fields(pid)
    return None if fields is None else int(fields[START])


def is_gone(pid: int, start: int) -> bool:
    """Return whether the process with this id and start has ended. Only valid at its own place."""
    fields = _fields(pid)
    if fields is not None:
        return int(fields[START]) != start or fields[STATE] == ZOMBIE
    try:
        os.kill(pid, 0)  # /proc may hide other accounts' processes
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _fields(pid: int) -> list[str] | None:
    try:
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _namespace(kind: str) -> str:
    link = PROC / "self/ns" / kind
    return str(link.readlink()) if link.is_symlink() else f"{kind}:-"  # kernels before 5.6 have no namespaces of clocks
