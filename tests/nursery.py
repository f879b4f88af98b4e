"""Processes of the product without a fresh interpreter each: forked from one that has imported what they import.

`python -m tests.nursery` imports other people's packages. For each environment it forks a seedling, which reads the
settings out of that environment and imports the product under them; a process is forked from its seedling, and runs
`python -m MODULE` from there. Each is the child of a keeper, which tells its exit status.

Everybody in this tree dies with the parent, and the nursery with the session of tests.
"""

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalboard.local.children import die_with_parent

ROOT = Path(__file__).resolve().parents[1]
# What needs no settings; what does is imported by the seedling.
PACKAGES = (
    "celery.apps.worker",
    "celery.bin.worker",
    "celery.concurrency.thread",
    "celery.fixups.django",
    "django.contrib.postgres.fields",
    "django.core.handlers.wsgi",
    "django.core.management",
    "django.db.backends.postgresql.base",
    "django.test",
    "environs",
    "evalboard.core.archive",
    "evalboard.core.compare",
    "evalboard.core.probes",
    "evalboard.core.release",
    "evalboard.contract.release",
    "evalboard.contract.run",
    "re2",
    "gunicorn.app.wsgiapp",
    "gunicorn.workers.gthread",
    "httpx",
    "jsonschema",
    "kombu.transport.redis",
    "msgspec",
    "numpy",
    "psycopg.types.json",
    "redis",
    "requests",
    "zstandard",
)
PRODUCT = ("worker.team", "worker.engines.vllm", "worker.sending", "worker.tasks", "evalboard.urls")
# Read by scripted_host.py and pytest, and by no setting: one seedling serves them all.
NO_SETTINGS = ("SCRIPTED_", "PYTEST_")
MESSAGE_BYTES = 200_000
_keepers: set[int] = set()  # of a seedling: ids of those that it has not waited for


class Process:
    """A forked process, as subprocess.Popen has them: `returncode` is None while it runs, negative for a signal."""

    def __init__(self, status: int) -> None:
        """`status` is where the keeper writes: first the process's id, then how it ended."""
        self._status = status
        self.returncode: int | None = None
        self.pid = int(self._line() or 0)
        assert self.pid, "the nursery ended"

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _end(self) -> None:
        self.returncode = int(
            self._line() or -signal.SIGKILL
        )  # nothing: the keeper was killed, and the process with it
        os.close(self._status)

    def _line(self) -> bytes:
        read = b""
        while not read.endswith(b"\n") and (more := os.read(self._status, 1)):
            read += more
        return read.strip()


class Nursery:
    """The session's own nursery and its seedlings."""

    def __init__(self) -> None:
        self._wire, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.nursery", str(theirs.fileno())]
            self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
        self._seedlings: dict[str, socket.socket] = {}

    def start(
        self, module: str, *arguments: str, environment: Mapping[str, str], out: int = 1, err: int = 2
    ) -> Process:
        """Start `python -m module arguments` in a process group of its own, writing where this process does now."""
        settings = {name: value for name, value in environment.items() if not name.startswith(NO_SETTINGS)}
        seedling = self._seedling(settings)
        others = {name: value for name, value in environment.items() if name not in settings}
        ours, theirs = os.pipe()
        try:
            request = {"module": module, "arguments": arguments, "environment": others}
            socket.send_fds(seedling, [json.dumps(request).encode()], [theirs, out, err])
        finally:
            os.close(theirs)
        return Process(ours)

    def stop(self) -> None:
        """End the nursery. It waits for what it forked, so that their processor time counts as the session's."""
        for wire in (*self._seedlings.values(), self._wire):
            wire.close()
        self._process.wait()

    def _seedling(self, settings: Mapping[str, str]) -> socket.socket:
        key = json.dumps(sorted(settings.items()))
        if key not in self._seedlings:
            self._seedlings[key], theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                request = {"module": "", "environment": settings}
                socket.send_fds(self._wire, [json.dumps(request).encode()], [theirs.fileno()])
        return self._seedlings[key]


def main() -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process with threads is not to be forked
    gc.disable()  # until the product is imported: runs/apps.py enables it
    for name in PACKAGES:
        importlib.import_module(name)
    _share_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the session of tests, which ends this one
    signal.signal(signal.SIGCHLD, _reap)
    wire = socket.socket(fileno=int(sys.argv[1]))
    while True:
        request, descriptors = _receive(wire)
        if pid := _fork():
            if request["module"]:
                _keepers.add(pid)
            for each in descriptors:
                os.close(each)
        elif request["module"]:
            wire.close()
            _keep(request, *descriptors)
            return  # as the process itself
        else:
            wire.close()
            wire = socket.socket(fileno=descriptors[0])
            _set_environment(request["environment"])
            _import_product()


def _receive(wire: socket.socket) -> tuple[dict[str, Any], list[int]]:
    message, descriptors, _, _ = socket.recv_fds(wire, MESSAGE_BYTES, 3)
    if not message:  # the session has ended
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for pid in _keepers:
            with suppress(ChildProcessError, ProcessLookupError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    os.kill(pid, signal.SIGTERM)  # what a test left running dies with its keeper
        with suppress(ChildProcessError):
            while True:
                os.wait()
        sys.exit()
    return json.loads(message), descriptors


def _reap(*_: Any) -> None:
    """Wait for seedlings and keepers that have ended, so that their processor time is counted."""
    with suppress(ChildProcessError):
        while pid := os.waitpid(-1, os.WNOHANG)[0]:
            _keepers.discard(pid)


def _fork() -> int:
    """As os.fork; the child dies with its parent."""
    bind = die_with_parent(signal.SIGKILL)
    pid = os.fork()
    if pid == 0:
        bind()
    return pid


def _set_environment(settings: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(settings)
    time.tzset()


def _import_product() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
    django.setup()
    for name in PRODUCT:
        importlib.import_module(name)
    _share_memory()


def _share_memory() -> None:
    """Keep the garbage collector of forked processes off what was imported, which each would copy as it ends.

    Measured: 0.2 s of the processor from the fork of `manage check` to its end, in place of 0.8.
    """
    gc.collect()
    gc.freeze()


def _keep(request: dict[str, Any], status: int, out: int, err: int) -> None:
    """Fork the process, tell its id and its exit status, and end. Returns in the process only."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := _fork():
        with suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)
        os.write(status, b"%d\n" % pid)
        _, ended = os.waitpid(pid, 0)
        os.write(status, b"%d\n" % os.waitstatus_to_exitcode(ended))
        os._exit(0)
    os.setpgid(0, 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    for each in (status, out, err):
        os.close(each)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.update(request["environment"])
    sys.argv = [request["module"], *request["arguments"]]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
