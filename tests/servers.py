"""Servers of the tests' own, so that a test may kill, stop, fill and cut them: Redis, and a wire that can be cut."""

import contextlib
import random
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path

START_SECONDS = 60.0


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def free_lasting_port() -> int:
    """Return a free port that stays free between servers: below those that the kernel gives to connections."""
    while True:
        port = random.SystemRandom().randrange(20_000, 30_000)
        with contextlib.suppress(OSError), socket.socket() as trial:
            trial.bind(("127.0.0.1", port))
            return port


class RedisServer:
    """A redis-server that keeps nothing on disk, unless `options` say otherwise; on a port of its own, or on this."""

    def __init__(self, folder: Path, *options: str, port: int | None = None) -> None:
        self.port = free_port() if port is None else port
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def is_installed() -> bool:
        return shutil.which("redis-server") is not None

    def start(self) -> None:
        """Start it, again after `kill` or `stop`, and wait until it answers."""
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        command += ["--save", "", "--maxmemory-policy", "noeviction", *self._options]
        with (self._folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert time.monotonic() < deadline, "redis-server does not answer; redis.log says why"
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def command(self, *words: str) -> str:
        """Send one command; return what came back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=2) as wire:
            wire.sendall((" ".join(words) + "\r\n").encode())
            return wire.recv(65536).decode()

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            return self.command("PING").startswith("+PONG")
        return False


class Wire:
    """A TCP connection's middle: everything passes both ways until it is cut, and again once it is mended.

    While it is cut, what is sent waits without an answer, as in a partitioned network: nothing is refused. A host
    that is a folder means PostgreSQL's Unix socket in it.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target: str | tuple[str, int] = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)
        self._is_whole = threading.Event()
        self._is_whole.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = [self._listener]
        self._is_closed = False
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        self._is_whole.clear()

    def mend(self) -> None:
        self._is_whole.set()

    def close(self) -> None:
        self._is_closed = True
        self._is_whole.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = self._listener.accept()
                self._sockets.append(near)
                self._is_whole.wait()
                if self._is_closed:
                    return
                far = socket.socket(socket.AF_UNIX if isinstance(self._target, str) else socket.AF_INET)
                self._sockets.append(far)
                far.connect(self._target)
                threading.Thread(target=self._pass_on, args=[near, far], daemon=True).start()
                threading.Thread(target=self._pass_on, args=[far, near], daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._is_whole.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
