"""Parse one log in a process of its own: `python -m evalboard.importers`, a task on stdin.

Whatever a log does to its reader, it does here: this process limits its own memory, processor and time before it reads
a file, it writes no files, and it has neither the database nor any secret. It ends with the process that started it.
"""

import gc
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.importers import wire
from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from evalboard.local.children import end_with

NICENESS = 10  # pages are served before logs are read
MAX_ERROR_BYTES = 1 << 20  # of its own messages, the only file that it may write


def confine(*, cpu_seconds: int, memory_bytes: int, seconds: int) -> None:
    """Limit this process as far as the system allows: processor, time, memory.

    Beyond processor or time it is killed, beyond memory it fails. The time limit works even if the parent is gone.
    """
    os.nice(NICENESS)
    signal.alarm(seconds)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, MAX_ERROR_BYTES)
    _limit(resource.RLIMIT_CPU, cpu_seconds)
    _limit(resource.RLIMIT_AS, memory_bytes)


def _limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    with suppress(ValueError, OSError):  # a system that does not take this limit: the others hold, and the time
        resource.setrlimit(which, (most, hard))


def main(task: dict[str, Any]) -> int:
    """Write the content of a task's files, or why they are refused; return the exit status."""
    end_with(task["parent"], signal.SIGKILL)  # a killed web process cannot end it
    confine(**task["limits"])
    gc.disable()  # records hold no cycles, and looking for some among millions takes a sixth of the time
    files = [LogFile(name, Path(path)) for name, path in task["files"]]
    out = sys.stdout.buffer
    try:
        out.writelines(wire.lines(*read_logs(files, format=task["format"], scale=task["scale"])))
    except InvalidInput as error:
        out.write(wire.refusal(error))
    out.flush()
    return 0


if __name__ == "__main__":
    try:
        status = main(json.load(sys.stdin))
    except MemoryError:
        status = wire.OUT_OF_MEMORY
    except BrokenPipeError:  # the parent has stopped reading
        status = 0
    os._exit(status)  # at once: freeing millions of records one by one is useless
