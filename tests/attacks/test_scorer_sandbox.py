"""What a hostile scorer can do to a worker: nothing. Real programs try it, as root and as nobody, in Docker and not.

Docker's refusals are a seccomp filter and a list of capabilities (`confined_worker.become`), since no daemon is here.
"""

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.attacks.confined_worker import list_left
from tests.nightly import few
from tests.waiting import wait_until
from worker import sandbox_start
from worker.engines.process import DeadlinePassed, LineTooLong
from worker.sandbox import ENVIRONMENT, GAPS, ConfinedLines, Confinement, NotConfined, end, start

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
PLAIN: dict[str, int] = {}
WIDE = {"processes": 8, "scratch_mb": 8}
USERS = ("root", "nobody", "docker-root", "docker-nobody")
WIDE_USERS = ("root", "nobody")  # who may have namespaces
IS_ROOT = os.geteuid() == 0
HANGS_AFTER = 120.0

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or sandbox_start.libc.syscall(444, None, 0, 1) < 0, reason="The kernel has no Landlock."
)

REFUSALS = {"EPERM", "EACCES"}
DONE = {"done"}
ANSWERS = {name: {"ENOSYS"} for name in ("clone3", "newer_call", "other_interface")}
ANSWERS |= dict.fromkeys(("stream_pair", "write_null", "own_signal", "own_limits"), DONE)
ANSWERS |= {"timers": {"EAGAIN"}, "new_privileges": {"EINVAL"}, "hard_link_in": {"EXDEV"}, "rename_out": {"EXDEV"}}
# A mount that is only read answers before Landlock does; processes of other spaces are not there.
ANSWERS_WIDE = ANSWERS | dict.fromkeys(("fork", "vfork", "write", "chmod_own"), DONE)
ANSWERS_WIDE |= {name: {"ENOSPC"} for name in ("large_file", "large_files", "files")}
REFUSALS_WIDE = REFUSALS | {"EROFS", "ESRCH"}
ANSWERS_WIDE |= {"become_root": {"EPERM", "EINVAL"}}  # 0 is nobody's number in a space of users


def python_of(user: str) -> str:
    """Return an interpreter that a user can read."""
    if user == "root":
        return sys.executable
    for python in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(python).exists() and subprocess.run([python, "-c", "import tomllib"], check=False).returncode == 0:
            return python
    pytest.skip("No Python 3.11 that nobody could read.")


@cache
def has_spaces(user: str) -> bool:
    """Return whether the kernel gives namespaces to a user, as another program finds out."""
    mount = ["mount", "-t", "tmpfs", "none", sandbox_start.SCRATCH]
    as_user: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []} if IS_ROOT else {}
    if user == "root":
        as_user = {}
    spaces = "-mpf" if user == "root" else "-Urmpf"
    return (
        subprocess.run(["unshare", spaces, *mount], check=False, stderr=subprocess.DEVNULL, **as_user).returncode == 0
    )


def prepare(user: str, **task: Any) -> tuple[subprocess.Popen[str], str]:
    """Start a worker as `user`. Return it with its task, a line."""
    is_wide = task.get("confinement") or task.get("gap")
    if is_wide and user in WIDE_USERS and is_wide.keys() & WIDE.keys() and not has_spaces(user):
        pytest.skip(f"This machine has no namespaces for {user}.")
    if user.endswith("root") and not IS_ROOT:
        pytest.skip("Only root becomes root.")
    worker = subprocess.Popen(
        [python_of(user), "-m", "tests.attacks.confined_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        text=True,
    )
    return worker, json.dumps({"user": user, **task}) + "\n"


def converse(worker: subprocess.Popen[str], line: str) -> dict[str, Any]:
    """Give a worker its task. Return its answer."""
    try:
        written, _ = worker.communicate(line, timeout=HANGS_AFTER)
    finally:
        worker.kill()
    assert worker.returncode == 0
    answer: dict[str, Any] = json.loads(written)
    return answer


def ask(user: str, **task: Any) -> dict[str, Any]:
    """Return what a worker answers, which nothing must have happened to."""
    answer = converse(*prepare(user, **task))
    assert answer["damage"] == []
    assert answer.get("left", []) == []
    return answer


def run(user: str, code: str, confinement: dict[str, int] = PLAIN, *, seconds: float = HANGS_AFTER) -> dict[str, Any]:
    """Run some Python under confinement."""
    command = [python_of(user), "-I", "-S", "-c", code]
    return ask(user, command=command, confinement=confinement, readable=[], seconds=seconds)


@cache
def try_all(user: str, *, is_wide: bool = False) -> dict[str, str]:
    command = [python_of(user), "-I", "-S", str(HERE / "breakouts.py")]
    answer = ask(
        user, command=command, confinement=WIDE if is_wide else PLAIN, readable=[str(HERE)], seconds=HANGS_AFTER
    )
    assert answer["err"] == ""
    tried: dict[str, str] = json.loads(answer["out"])
    return tried


@pytest.mark.parametrize("user", USERS)
def test_one_process_breaks_out_nowhere(user: str) -> None:
    tried = try_all(user)
    assert {name: answer for name, answer in tried.items() if answer not in ANSWERS.get(name, REFUSALS)} == {}


@pytest.mark.parametrize("user", few(WIDE_USERS, 1))
def test_several_processes_with_scratch_break_out_nowhere(user: str) -> None:
    tried = try_all(user, is_wide=True)
    assert {name: answer for name, answer in tried.items() if answer not in ANSWERS_WIDE.get(name, REFUSALS_WIDE)} == {}


SUCCEED = """tcp udp ipv6 netlink unix_socket abstract_socket sequence_pair read_secret read_by_folder list_folder
read_passwords write_secret truncate touch chmod make_folder environment command_of_worker program_of_worker
root_of_worker own_files choose_signal own_sockets pin_worker read_memory fork vfork in_memory watches requests
outlive"""


def test_without_confinement_the_same_attempts_succeed() -> None:
    names = SUCCEED.split()
    command = [python_of("nobody"), "-I", "-S", str(HERE / "breakouts.py"), *names]
    answer = converse(*prepare("nobody", command=command, is_free=True, seconds=HANGS_AFTER))
    assert json.loads(answer["out"]) == dict.fromkeys(names, "done")
    reached = [each for each in answer["damage"] if each.endswith("was reached")]
    assert len(reached) == 4
    assert len(answer["damage"]) == 6  # the secret and how the worker runs, and a file


@pytest.mark.parametrize("user", few(USERS, 2))
def test_one_process_has_few_threads(user: str) -> None:
    code = """
import threading
threading.stack_size(1 << 16)
n, ends = 0, threading.Event()
try:
    while n < 1000:
        threading.Thread(target=ends.wait, daemon=True).start()
        n += 1
except RuntimeError:
    pass
print(n)
ends.set()
"""
    most = sandbox_start.THREADS
    # Of nobody the kernel counts what others run as well, and the confinement knows their number to a factor of two.
    assert 1 <= int(run(user, code)["out"]) <= (most if user.endswith("root") else 2 * most)


@pytest.mark.parametrize("user", few(USERS, 2))
def test_a_fork_bomb_of_one_process_is_one_process(user: str) -> None:
    answer = run(user, BOMB, seconds=1)
    assert answer["peak"] == 1
    assert answer["status"] == -signal.SIGKILL


BOMB = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""


@pytest.mark.parametrize("user", few(WIDE_USERS, 1))
def test_a_fork_bomb_of_eight_processes_is_eight(user: str) -> None:
    answer = run(user, BOMB, {"processes": 8}, seconds=2)
    assert answer["peak"] == 8 + 1  # and the one that waits for them


@pytest.mark.parametrize("user", few(WIDE_USERS, 1))
def test_a_daemon_ends_with_the_rest(user: str) -> None:
    code = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(0); os.close(1); os.close(2)
        while True:
            time.sleep(1)
    os._exit(0)
os.wait()
print("left", flush=True)
{rest}
"""
    for rest in ("time.sleep(600)", "sys.exit(3)"):
        answer = run(user, code.format(rest=rest), {"processes": 4}, seconds=1)
        assert answer["out"] == "left\n"
        assert answer["status"] == (3 if "exit" in rest else -signal.SIGKILL)


@pytest.mark.parametrize("user", few(["root", "docker-nobody"], 1))
def test_memory_ends_at_its_limit(user: str) -> None:
    code = """
import mmap
takes = [lambda: bytearray(2 << 30), lambda: mmap.mmap(-1, 2 << 30), lambda: [bytearray(1 << 20) for _ in range(256)]]
for take in takes:
    try:
        take()
    except (MemoryError, OSError):
        print("refused")
"""
    assert run(user, code, {"memory_mb": 256})["out"] == "refused\n" * 3


@pytest.mark.parametrize("user", few(USERS, 2))
def test_a_program_sees_nothing_of_the_worker(user: str) -> None:
    code = """
import fcntl, json, os
files = []
for number in range(1024):
    try:
        fcntl.fcntl(number, fcntl.F_GETFD)
        files.append(number)
    except OSError:
        pass
print(json.dumps([files, dict(os.environ), os.getcwd(), os.getsid(0) == os.getpid()]))
"""
    assert json.loads(run(user, code)["out"]) == [[0, 1, 2], ENVIRONMENT, "/", True]


@pytest.mark.parametrize("user", WIDE_USERS)
@pytest.mark.parametrize("confinement", few([WIDE, PLAIN], 1), ids=["several", "one"])
def test_a_program_ends_with_its_worker(user: str, confinement: dict[str, int]) -> None:
    command = [python_of(user), "-I", "-S", "-c", "import time; time.sleep(600)"]
    worker, line = prepare(user, command=command, confinement=confinement, readable=[], seconds=600)
    token = f"token-{worker.pid}-"
    assert worker.stdin is not None
    worker.stdin.write(line)
    worker.stdin.flush()
    wait_until(lambda: any("sleep" in " ".join(psutil.Process(int(each)).cmdline()[:5]) for each in list_left(token)))
    worker.kill()
    worker.communicate()
    for folder in Path("/tmp").glob(f"confined-{worker.pid}-*"):  # noqa: S108  any user may write there
        shutil.rmtree(folder)
    wait_until(lambda: list_left(token) == [])


def test_a_program_of_root_does_not_get_its_rights(tmp_path: Path) -> None:
    if not IS_ROOT:
        pytest.skip("Only root makes such a program.")
    as_root = Path("/usr/local/bin/evalboard-test-id")
    shutil.copy("/usr/bin/id", as_root)
    as_root.chmod(0o4755)
    try:
        alone = subprocess.run([as_root, "-u"], user=65534, capture_output=True, text=True, check=True)
        assert alone.stdout == "0\n"
        code = f"import os; os.execv('{as_root}', ['id', '-u'])"
        assert run("nobody", code)["out"] == "65534\n"
    finally:
        as_root.unlink()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="The processor has no other interface.")
@pytest.mark.parametrize("user", ["nobody", "docker-nobody"])
def test_calls_of_32_bits_end_a_program(user: str) -> None:
    code = """
import ctypes, mmap
code = b"\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3"  # mov eax, 20 (getpid); int 0x80; ret
page = mmap.mmap(-1, 4096, prot=7)
page.write(code)
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""
    assert run(user, code)["status"] == -signal.SIGSYS


@pytest.mark.parametrize("user", few(WIDE_USERS, 1))
def test_scratch_is_empty_and_gone_afterwards(user: str) -> None:
    code = """
import os, tempfile
from pathlib import Path
print(tempfile.gettempdir(), os.listdir(tempfile.gettempdir()))
Path(tempfile.gettempdir(), "evalboard-mine").write_text("mine")
"""
    mounts = Path("/proc/self/mounts").read_text()
    for _ in range(2):
        assert run(user, code, {"scratch_mb": 1})["out"] == f"{sandbox_start.SCRATCH} []\n"
    assert not Path(sandbox_start.SCRATCH, "evalboard-mine").exists()
    assert Path("/proc/self/mounts").read_text() == mounts


@pytest.mark.parametrize("confinement", [PLAIN, {"processes": 2}], ids=["one", "several"])
def test_a_crash_is_the_status(confinement: dict[str, int]) -> None:
    code = "import signal, ctypes; ctypes.string_at(0)"
    assert run("nobody", code, confinement)["status"] == -signal.SIGSEGV


@pytest.mark.parametrize("user", USERS)
def test_this_machine_confines(user: str) -> None:
    assert ask(user, gap={})["gap"] is None


@pytest.mark.parametrize("user", WIDE_USERS)
@pytest.mark.parametrize("gap", [{"processes": 8}, {"scratch_mb": 8}, WIDE])
def test_this_machine_confines_several_processes(user: str, gap: dict[str, int]) -> None:
    assert ask(user, gap=gap)["gap"] is None


@pytest.mark.parametrize(
    ("user", "gap", "missing"),
    [
        ("docker-root", {"processes": 8}, "namespaces"),
        ("docker-nobody", {"processes": 8}, "namespaces"),
        ("docker-nobody", {"scratch_mb": 8}, "namespaces"),
        ("docker-powerless-root", {}, "count"),
        ("old-nobody", {}, "landlock"),
    ],
)
def test_a_machine_that_does_not_confine_says_so(user: str, gap: dict[str, int], missing: str) -> None:
    assert ask(user, gap=gap)["gap"] == GAPS[missing]


def test_a_missing_program_is_no_start() -> None:
    with pytest.raises(NotConfined, match="No such file"):
        start(["/nowhere"], confinement=Confinement())


# The caller's side: a program that writes without end, or reads nothing.


def speak(code: str) -> ConfinedLines:
    return ConfinedLines([sys.executable, "-I", "-S", "-c", code], confinement=Confinement())


def test_endless_words_on_stderr_fill_nothing() -> None:
    child = speak("""
import os
for _ in range(256):
    os.write(2, b"x" * (1 << 20))
os.write(2, b"\\nlast words\\n")
os.write(1, b"{}\\n")
""")
    before = psutil.Process().memory_info().rss
    assert child.receive(deadline=time.monotonic() + HANGS_AFTER) == {}
    child.kill()
    assert child.last_words().endswith("last words")
    assert psutil.Process().memory_info().rss - before < 64 << 20


def test_an_endless_line_is_refused() -> None:
    child = speak("import os\nwhile True: os.write(1, b'x' * (1 << 20))")
    with pytest.raises(LineTooLong):
        child.receive_line(deadline=time.monotonic() + HANGS_AFTER, most_bytes=1 << 20)
    child.kill()
    assert child.has_ended


def test_a_program_that_reads_nothing_does_not_hold_its_worker() -> None:
    child = speak("import time; time.sleep(600)")
    with pytest.raises(DeadlinePassed):
        child.send({"text": "x" * (1 << 20)}, seconds=0.5)
    child.kill()
    assert child.has_ended


def test_a_gigabyte_that_nobody_reads_stops_at_the_pipe() -> None:
    code = "import os\nfor _ in range(1024): os.write(1, bytes(1 << 20))"
    process = start([sys.executable, "-I", "-S", "-c", code], confinement=Confinement())
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    end(process)
    with process:
        assert process.returncode == -signal.SIGKILL


def test_a_program_that_closes_stderr_goes_on() -> None:
    child = speak("import os, time; os.close(2); time.sleep(0.5); os.write(1, b'{}\\n')")
    assert child.receive(deadline=time.monotonic() + HANGS_AFTER) == {}
    child.kill()


def test_numbers_of_system_calls_are_the_kernels() -> None:
    headers = {1: Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), 2: Path("/usr/include/asm-generic/unistd.h")}
    entries = [entry.split() for table in TABLES.split() for entry in getattr(sandbox_start, table).split(",")]
    if not all(path.exists() for path in headers.values()):
        pytest.skip("The kernel's headers are not here.")
    for column, path in headers.items():
        numbers = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", path.read_text()))
        newest = max(map(int, numbers.values()))
        known = [entry for entry in entries if entry[column] == "-" or int(entry[column]) < newest]
        assert len(known) > len(entries) - 10
        assert {name: numbers.get(name, "-") for name, *_ in known} == {entry[0]: entry[column] for entry in known}


TABLES = "REFUSED OF_OWNERS FORKS SIGNALS TKILL PRLIMIT CLONE CLONE3 SOCKETPAIR FCNTL IOCTL PRCTL"
