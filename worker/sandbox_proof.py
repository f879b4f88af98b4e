"""Try to break out, and to do what a scorer may: what `sandbox.find_gap` starts, confined.

The standard library is all there is. Writes a line for each attempt that went as it should not, and `done`. Arguments:
process id of the worker, a file that everybody may read, MB, processes, MB of scratch.
"""

import ctypes
import mmap
import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PTRACE_SEIZE = 0x4206  # ptrace.h; stops nobody
SCRATCH = Path("/dev/shm")  # noqa: S108
MANY = 256  # threads
AT_ONCE = threading.Event()


def attempt(act: Callable[[], object]) -> bool:
    """Return whether the kernel lets it."""
    try:
        return act() != -1
    except (OSError, RuntimeError, MemoryError):
        return False


def count_children(most: int) -> int:
    """Return how many children there can be at once, trying one more than `most`."""
    read, write = os.pipe()
    children = []
    with suppress(OSError):
        for _ in range(most + 1):
            if (child := os.fork()) == 0:
                os.close(write)
                os.read(read, 1)  # until the parent closes it
                os._exit(0)
            children.append(child)
    os.close(write)
    for child in children:
        os.waitpid(child, 0)
    return len(children)


def count_threads() -> int:
    n = 0
    with suppress(RuntimeError):
        while n < MANY:
            threading.Thread(target=AT_ONCE.wait, daemon=True).start()
            n += 1
    AT_ONCE.set()
    return n


def main(worker: int, outside: Path, memory_mb: int, processes: int, scratch_mb: int) -> None:
    libc = ctypes.CDLL(None)
    threading.stack_size(1 << 16)
    refused = {
        "opening connections": lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM),
        "reaching other programs": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
        "reading files": outside.read_bytes,
        "writing files": lambda: outside.open("ab"),
        "reading other environments": Path(f"/proc/{worker}/environ").read_bytes,
        "sending signals": lambda: os.kill(worker, 0),
        "tracing the worker": lambda: libc.ptrace(PTRACE_SEIZE, worker, None, None),
        "taking more memory": lambda: mmap.mmap(-1, (memory_mb + 1) << 20),
        "writing more scratch": lambda: (SCRATCH / "large").write_bytes(bytes((scratch_mb << 20) + 1)),
    }
    has_scratch = attempt(lambda: (SCRATCH / "small").write_bytes(b"1"))
    wrong = [name for name, act in refused.items() if attempt(act)]
    if count_children(processes) != processes - 1 or count_threads() >= MANY:
        wrong.insert(0, "count")
    if has_scratch != (scratch_mb > 0):
        wrong.insert(0, "scratch")
    sys.stdout.write("\n".join([*wrong, "done"]))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), *(int(each) for each in sys.argv[3:]))
