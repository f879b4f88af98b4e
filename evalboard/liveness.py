"""Answer /live from a process of its own, so that busy request threads never delay a health check.

Each gunicorn worker notes in shared memory since when requests wait while none finishes. The process answers 503 where
that is longer than a limit, and while no worker has started. `deploy/gunicorn.conf.py` calls the hooks.
"""

import mmap
import os
import signal
import struct
import threading
import time
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any

MAX_WORKERS = 64
LOOK_SECONDS = 1.0
_SLOT = struct.Struct("qd")  # process id, 0 where free; CLOCK_MONOTONIC since when it is stuck, 0 if it is not


class Listener(ThreadingTCPServer):
    """Takes checks at an address; unlike `http.server.HTTPServer` it asks no name server for its own name."""

    allow_reuse_address = True
    daemon_threads = True


class Liveness:
    """What the workers of one server note, and the process that answers by it.

    seconds: how long requests may wait without any being finished.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._notes = mmap.mmap(-1, MAX_WORKERS * _SLOT.size)

    def serve(self, host: str, port: int) -> None:
        """Start the answering process, which ends with this one. Raises OSError where the address is taken."""
        server = Listener((host, port), self._handler())
        parent = os.getpid()
        if os.fork() == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            threading.Thread(target=_end_with, args=[parent], daemon=True).start()
            try:
                server.serve_forever()
            finally:
                os._exit(1)
        server.server_close()

    def take_slot(self) -> int:
        """Return a free slot for a new worker. Only the master calls this, which starts one worker at a time."""
        slot = next((number for number in range(MAX_WORKERS) if self._read(number)[0] == 0), None)
        if slot is None:
            raise SystemExit(f"Evalboard cannot start: the web server has more than {MAX_WORKERS} processes.")
        self._write(slot, os.getpid(), time.monotonic())  # the master's, until the worker has loaded
        return slot

    def free_slot(self, slot: int) -> None:
        self._write(slot, 0, 0.0)

    def watch(self, slot: int, worker: Any) -> None:
        """Note once a second, from a thread, whether requests of a gthread worker wait.

        Its `last_end` is when it last finished one.
        """
        self._write(slot, os.getpid(), 0.0)
        threading.Thread(target=self._look, args=[slot, worker], daemon=True).start()

    def problem(self) -> str | None:
        """Return why the server is not alive, None where it is."""
        notes = [self._read(number) for number in range(MAX_WORKERS)]
        started = [stuck for pid, stuck in notes if pid not in (0, os.getppid())]
        if not started:
            return "starting"
        now = time.monotonic()
        return "stuck" if any(stuck and now - stuck > self._seconds for stuck in started) else None

    def _look(self, slot: int, worker: Any) -> None:
        waiting_since = 0.0
        while True:
            if worker.tpool._work_queue.qsize() == 0:
                waiting_since = 0.0
            else:
                waiting_since = max(waiting_since or time.monotonic(), getattr(worker, "last_end", 0.0))
            self._write(slot, os.getpid(), waiting_since)
            time.sleep(LOOK_SECONDS)

    def _read(self, slot: int) -> tuple[int, float]:
        return _SLOT.unpack_from(self._notes, slot * _SLOT.size)

    def _write(self, slot: int, pid: int, stuck: float) -> None:
        _SLOT.pack_into(self._notes, slot * _SLOT.size, pid, stuck)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        liveness = self

        class Handler(BaseHTTPRequestHandler):
            timeout = 5.0  # of a client that sends nothing

            def do_GET(self) -> None:
                problem = "not_found" if self.path != "/live" else liveness.problem()
                status = HTTPStatus.OK
                if problem:
                    status = HTTPStatus.NOT_FOUND if problem == "not_found" else HTTPStatus.SERVICE_UNAVAILABLE
                body = f'{{"status": "{problem or "alive"}"}}\n'.encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
                """Log nothing: a line for each check would bury the others."""

        return Handler


@cache
def liveness_of(seconds: float) -> Liveness:
    """Return the same object each time: on SIGHUP gunicorn runs its settings again."""
    return Liveness(seconds)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(0)
