"""A worker that becomes one of four users, runs a program under confinement, and says what has become of itself.

Reads one line of JSON, and writes one. The standard library is all it needs, so that any user's Python will do.
"""

import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from contextlib import suppress
from errno import ENOSYS, EPERM
from pathlib import Path
from typing import Any

from worker import sandbox, sandbox_start
from worker.sandbox import Confinement

NOBODY = 65534
PR_CAPBSET_DROP, LAST_CAPABILITY = 24, 40
# What Docker gives to root in a container by default (moby, oci/caps/defaults.go).
DOCKER_CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}
# What its default seccomp profile takes from whoever has no CAP_SYS_ADMIN, of what the confinement could use.
DOCKER_REFUSES = "unshare 272 97, mount 165 40, mount_setattr 442 442, setns 308 268, keyctl 250 219, bpf 321 280"
SIGNALS = set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ}


def become(user: str) -> None:
    """Become root or nobody, on a machine of one's own or in a container, with what this lacks."""
    if user.startswith("docker"):
        keep = set() if user == "docker-powerless-root" else DOCKER_CAPABILITIES
        for capability in set(range(LAST_CAPABILITY + 1)) - keep:
            sandbox_start.libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
        low = sum(1 << each for each in keep)
        sets = struct.pack("6I", low, low, low, 0, 0, 0)
        sandbox_start.call("test", sandbox_start.libc.capset, sandbox_start.CAPABILITY_HEAD, sets)
    if user.endswith("nobody") and os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        sandbox_start.libc.prctl(sandbox_start.PR_SET_DUMPABLE, 1, 0, 0, 0)
    if user.startswith("docker"):
        refuse(DOCKER_REFUSES, EPERM)
    if user == "old-nobody":
        refuse("landlock_create_ruleset 444 444", ENOSYS)


def refuse(table: str, error: int) -> None:
    """Let the kernel refuse some system calls to this process and its children."""
    sandbox_start.libc.prctl(sandbox_start.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    lines = [(sandbox_start.LOAD, 0, 0, 0)]
    for number in sandbox_start.numbers(table, sandbox_start.MACHINES[os.uname().machine][1]):
        lines += [(sandbox_start.JUMP_EQUAL, 0, 1, number), (sandbox_start.RETURN, 0, 0, sandbox_start.ERRNO | error)]
    lines.append((sandbox_start.RETURN, 0, 0, sandbox_start.ALLOW))
    sandbox_start.install_filter(b"".join(struct.pack("HBBI", *line) for line in lines))


class Belongings:
    """What is the worker's: files, listeners, limits, and the signals that reach it."""

    def __init__(self, folder: Path) -> None:
        self.signals: list[int] = []
        for number in SIGNALS:
            signal.signal(number, lambda got, _: self.signals.append(got))
        self.secret = folder / "secret"
        self.secret.write_text("secret")
        self.secret.chmod(0o666)  # the confinement alone keeps it
        folder.chmod(0o777)
        tcp, udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        by_path, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        for each in (tcp, udp):
            each.bind(("127.0.0.1", 0))
        by_path.bind(str(folder / "socket"))
        (folder / "socket").chmod(0o777)
        abstract.bind(f"\0{folder.name}")
        for each in (tcp, by_path, abstract):
            each.listen()
        self.inherited = os.open(self.secret, os.O_RDWR)
        os.set_inheritable(self.inherited, True)
        self.listeners = [tcp, udp, by_path, abstract]
        os.environ["DATABASE_URL"] = "postgresql://secret"
        self.facts = {
            "worker": os.getpid(),
            "folder": str(folder),
            "secret": str(self.secret),
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
        }
        self.first = self._list(folder)

    def _list(self, folder: Path) -> list[object]:
        status = self.secret.stat()
        limits = [resource.getrlimit(each) for each in range(16)]
        priority = (os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0)), os.sched_getscheduler(0))
        return [self.secret.read_text(), status.st_mode, status.st_nlink, status.st_mtime_ns, limits, priority]

    def find_damage(self) -> list[str]:
        """Return what has changed, and who has called."""
        folder = Path(self.facts["folder"])
        damage = [f"signal {number}" for number in self.signals]
        if (now := self._list(folder)) != self.first:
            damage.append(f"{self.first} became {now}")
        if left := sorted({each.name for each in folder.iterdir()} - {"secret", "socket"}):
            damage.append(f"files {left}")
        for listener in self.listeners:
            listener.setblocking(False)
            try:
                listener.recv(10) if listener.type == socket.SOCK_DGRAM else listener.accept()
                damage.append(f"{listener} was reached")
            except BlockingIOError:
                pass
        subprocess.run(["/bin/true"], check=True)  # there is room for processes
        return damage


def list_left(token: str) -> list[str]:
    """Return the processes there are of a program."""
    left = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                if token.encode() in (folder / "cmdline").read_bytes():
                    left.append(folder.name)
    return left


def run(task: dict[str, Any], belongings: Belongings) -> dict[str, Any]:
    """Run the program of a task until it ends, or its seconds are over. Its last arguments: a token, and the facts."""
    token = f"token-{os.getpid()}-"
    command = [*task["command"], token, json.dumps(belongings.facts)]
    pipe = subprocess.PIPE
    if task.get("is_free"):
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
        process.end_signal = signal.SIGKILL
    else:
        readable = [Path(each) for each in task["readable"]]
        confinement = Confinement(**task["confinement"])
        process = sandbox.start(command, confinement=confinement, readable=readable, stderr=pipe)
    answer: dict[str, Any] = {"peak": 0}
    try:
        out, err = process.communicate(timeout=task["seconds"])
    except subprocess.TimeoutExpired:
        answer["peak"] = len(list_left(token))
        sandbox.end(process)
        answer["left"] = list_left(token)
        out, err = process.communicate()
    else:
        answer["left"] = list_left(token)
    return answer | {"status": process.returncode, "out": out.decode(), "err": err.decode()[-2000:]}


def main() -> None:
    task = json.loads(sys.stdin.readline())
    os.umask(0o022)
    become(task["user"])
    with tempfile.TemporaryDirectory(prefix=f"confined-{os.getpid()}-") as folder:
        belongings = Belongings(Path(folder))
        answer = {"gap": sandbox.find_gap(**task["gap"])} if "gap" in task else run(task, belongings)
        answer["damage"] = belongings.find_damage()
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
