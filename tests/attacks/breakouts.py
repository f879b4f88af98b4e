"""What a hostile scorer tries, one thing after the other: a program for `confined_worker`.

Writes one JSON object: each attempt's name, and the kernel's answer ("done", or the name of an error). Arguments: what
`confined_worker` adds, after the names of attempts; no name: all of them.
"""

import ctypes
import errno
import fcntl
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

FACTS = json.loads(sys.argv[-1])
WORKER, SECRET, FOLDER = FACTS["worker"], Path(FACTS["secret"]), Path(FACTS["folder"])
ABSTRACT = f"\0{FOLDER.name}"
IS_X86 = os.uname().machine == "x86_64"
SCRATCH = Path(os.environ.get("TMPDIR", "/dev/shm"))  # noqa: S108  that is where it is
AT_FDCWD = -100
libc = ctypes.CDLL(None, use_errno=True)


def system_call(x86: int, arm: int, *arguments: object) -> int:
    """Call the kernel. Raises OSError."""
    whole = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return checked(libc.syscall(x86 if IS_X86 else arm, *whole))


def checked(result: int) -> int:
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
    return result


def buffer(size: int = 128) -> object:
    return ctypes.create_string_buffer(size)


def stream_to(address: str) -> None:
    """From a pair of sockets, which may be had, to another program."""
    socket.socketpair()[0].connect(address)


def raise_limit(which: int) -> None:
    """Take more than there is. Raises OSError."""
    try:
        resource.setrlimit(which, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except ValueError:
        raise PermissionError(errno.EPERM, "") from None


def through_a_link() -> bytes:
    link = SCRATCH / "link"
    link.symlink_to(SECRET)
    return link.read_bytes()


def written_through_a_link() -> int:
    link = SCRATCH / "link2"
    link.symlink_to(SECRET)
    return link.write_bytes(b"mine")


def many_files() -> None:
    for i in range(1 << 20):
        (SCRATCH / f"{i}").touch()


def a_large_file() -> None:
    with (SCRATCH / "large").open("wb", buffering=0) as file:
        while file.write(bytes(1 << 20)):
            pass


def many_large_files() -> None:
    for i in range(100):
        with (SCRATCH / f"large-{i}").open("wb", buffering=0) as file:
            for _ in range(7):
                if file.write(bytes(1 << 20)) < 1 << 20:
                    raise OSError(errno.ENOSPC, "")


def forked() -> None:
    if os.fork() == 0:
        os._exit(0)
    os.wait()


def executed_in_memory() -> None:
    file = os.memfd_create("code")
    os.write(file, Path("/bin/true").read_bytes())
    subprocess.run([f"/proc/self/fd/{file}"], check=True, pass_fds=[file])


def stole_keys() -> None:
    fcntl.ioctl(0, termios.TIOCSTI, b"x")


ATTEMPTS: dict[str, Callable[[], object]] = {
    # the network
    "tcp": lambda: socket.create_connection(("127.0.0.1", FACTS["tcp"])),
    "udp": lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"secret", ("127.0.0.1", FACTS["udp"])),
    "ipv6": lambda: socket.socket(socket.AF_INET6),
    "raw": lambda: socket.socket(type=socket.SOCK_RAW, proto=1),
    "packet": lambda: socket.socket(17, socket.SOCK_RAW),
    "netlink": lambda: socket.socket(16, socket.SOCK_RAW),
    "vsock": lambda: socket.socket(40),
    "crypto_socket": lambda: socket.socket(38, socket.SOCK_SEQPACKET),
    "unix_socket": lambda: socket.socket(socket.AF_UNIX).connect(str(FOLDER / "socket")),
    "abstract_socket": lambda: socket.socket(socket.AF_UNIX).connect(ABSTRACT),
    "datagram_pair": lambda: socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b"", ABSTRACT),
    "sequence_pair": lambda: socket.socketpair(type=socket.SOCK_SEQPACKET),
    "pair_to_abstract": lambda: stream_to(ABSTRACT),
    "pair_to_path": lambda: stream_to(str(FOLDER / "socket")),
    "stream_pair": socket.socketpair,
    # files
    "read_secret": SECRET.read_bytes,
    "read_by_folder": lambda: os.open(SECRET.name, os.O_RDONLY, dir_fd=os.open(FOLDER, os.O_PATH)),
    "list_folder": lambda: list(FOLDER.iterdir()),
    "read_passwords": Path("/etc/passwd").read_bytes,
    "read_home": lambda: list(Path("/root").iterdir()),
    "write_secret": lambda: SECRET.open("ab"),
    "write_outside": lambda: (FOLDER / "mine").write_bytes(b""),
    "write_root": lambda: Path("/mine").write_bytes(b""),
    "write_null": lambda: Path("/dev/null").write_bytes(b"1"),
    "truncate": lambda: os.truncate(SECRET, 0),
    "remove": SECRET.unlink,
    "rename": lambda: SECRET.rename(FOLDER / "mine"),
    "hard_link": lambda: os.link(SECRET, FOLDER / "mine"),
    "symbolic_link": lambda: (FOLDER / "mine").symlink_to(SECRET),
    "make_folder": (FOLDER / "mine").mkdir,
    "make_pipe": lambda: os.mkfifo(FOLDER / "mine"),
    "make_device": lambda: os.mknod(FOLDER / "mine", 0o60600, os.makedev(254, 0)),
    "chmod": lambda: SECRET.chmod(0o777),
    "chmod_by_file": lambda: os.fchmod(os.open(sys.argv[0], os.O_RDONLY), 0o777),
    "chown": lambda: os.chown(SECRET, os.getuid(), os.getgid()),
    "touch": lambda: os.utime(SECRET),
    "attribute": lambda: os.setxattr(SECRET, "user.mine", b"1"),
    "by_handle": lambda: system_call(304, 265, AT_FDCWD, buffer(), 0),
    "terminal": lambda: os.open("/dev/tty", os.O_RDWR),
    "terminal_keys": stole_keys,
    # the system's own files
    "environment": Path(f"/proc/{WORKER}/environ").read_bytes,
    "environment_of_first": Path("/proc/1/environ").read_bytes,
    "memory_of_worker": lambda: os.open(f"/proc/{WORKER}/mem", os.O_RDWR),
    "command_of_worker": Path(f"/proc/{WORKER}/cmdline").read_bytes,
    "program_of_worker": Path(f"/proc/{WORKER}/exe").readlink,
    "files_of_worker": lambda: os.open(f"/proc/{WORKER}/fd/0", os.O_RDONLY),
    "root_of_worker": lambda: os.open(f"/proc/{WORKER}/root{SECRET}", os.O_RDONLY),
    "settings": lambda: os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY),
    "group": lambda: list(Path("/sys/fs/cgroup").iterdir()),
    # other processes
    "kill": lambda: os.kill(WORKER, 9),
    "kill_all": lambda: os.kill(-1, 0),
    "kill_thread": lambda: system_call(234, 131, WORKER, WORKER, 9),
    "kill_one_thread": lambda: system_call(200, 130, WORKER, 9),
    "queue_signal": lambda: system_call(129, 138, WORKER, 9, struct.pack("iii116x", 9, 0, -1)),
    "signal_by_descriptor": lambda: system_call(424, 424, os.pidfd_open(WORKER), 9, None, 0),
    "own_files": lambda: fcntl.fcntl(0, fcntl.F_SETOWN, WORKER),
    "choose_signal": lambda: fcntl.fcntl(0, 10, 9),
    "own_sockets": lambda: fcntl.ioctl(socket.socketpair()[0], 0x8901, WORKER.to_bytes(4, "little")),
    "lease": lambda: fcntl.fcntl(os.open(sys.argv[0], os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK),
    "limit_worker": lambda: resource.prlimit(WORKER, resource.RLIMIT_NOFILE, (1, 1)),
    "slow_worker": lambda: os.setpriority(os.PRIO_PROCESS, WORKER, 19),
    "pin_worker": lambda: os.sched_setaffinity(WORKER, {0}),
    "idle_worker": lambda: os.sched_setscheduler(WORKER, os.SCHED_IDLE, os.sched_param(0)),
    "trace": lambda: checked(libc.ptrace(16, WORKER, None, None)),
    "read_memory": lambda: system_call(310, 270, WORKER, buffer(), 1, buffer(), 1, 0),
    "take_descriptor": lambda: system_call(438, 438, os.pidfd_open(os.getpid()), 0, 0),
    "compare": lambda: system_call(312, 272, os.getpid(), WORKER, 0, 0, 0),
    # more of itself
    "fork": forked,
    "vfork": lambda: subprocess.run(["/bin/true"], check=True),
    "clone3": lambda: system_call(435, 435, buffer(), 88),
    "new_spaces": lambda: system_call(56, 220, 0x10000000 | 17, None, None, None, None),
    "sibling": lambda: system_call(56, 220, 0x8000 | 17, None, None, None, None),
    "unshare": lambda: checked(libc.unshare(0x10000000)),
    "setns": lambda: checked(libc.setns(0, 0)),
    "timers": lambda: [checked(libc.timer_create(1, None, buffer(8))) for _ in range(1 << 14)],
    "more_memory": lambda: raise_limit(resource.RLIMIT_AS),
    "more_processes": lambda: raise_limit(resource.RLIMIT_NPROC),
    "become_root": lambda: os.setuid(0),
    "in_memory": executed_in_memory,
    # what stays behind
    "shared_memory": lambda: checked(libc.shmget(0, 1 << 20, 0o1600)),
    "messages": lambda: checked(libc.msgget(0, 0o1600)),
    "semaphores": lambda: checked(libc.semget(0, 1, 0o1600)),
    "queue": lambda: system_call(240, 180, b"mine", 0o102, 0o600, None),
    "keys": lambda: system_call(248, 217, b"user", b"mine", b"1", 1, -3),
    "watches": lambda: checked(libc.inotify_init()),
    "requests": lambda: system_call(206, 0, 65536, buffer()),
    # the kernel
    "bpf": lambda: system_call(321, 280, 0, buffer(), 128),
    "events": lambda: system_call(298, 241, buffer(), 0, -1, -1, 0),
    "faults": lambda: system_call(323, 282, 0),
    "io_uring": lambda: system_call(425, 425, 8, buffer()),
    "module": lambda: system_call(175, 105, buffer(), 128, b""),
    "kexec": lambda: system_call(246, 104, 0, 0, None, 0),
    "mount": lambda: checked(libc.mount(b"x", b"/mnt", b"tmpfs", 0, None)),
    "new_mount": lambda: system_call(430, 430, b"tmpfs", 0),
    "chroot": lambda: os.chroot("/usr"),
    "messages_of_kernel": lambda: checked(libc.klogctl(3, buffer(), 128)),
    "newer_call": lambda: system_call(463, 463, AT_FDCWD, b"/", 0, None, None, 0),
    "other_interface": lambda: system_call(0x40000000 | 39, 0x40000000),
    # itself
    "outlive": lambda: checked(libc.prctl(1, 0, 0, 0, 0)),
    "new_privileges": lambda: checked(libc.prctl(38, 0, 0, 0, 0)),
    "ambient_rights": lambda: checked(libc.prctl(47, 2, 1, 0, 0)),
    "own_signal": lambda: os.kill(os.getpid(), 0),
    "own_limits": lambda: resource.prlimit(0, resource.RLIMIT_NOFILE),
}
OF_SCRATCH: dict[str, Callable[[], object]] = {
    "write": lambda: (SCRATCH / "a").write_bytes(b"1"),
    "chmod_own": lambda: (SCRATCH / "a").chmod(0o700),
    "read_link": through_a_link,
    "write_link": written_through_a_link,
    "hard_link_in": lambda: os.link(sys.argv[0], SCRATCH / "b"),
    "rename_out": lambda: (SCRATCH / "a").rename(FOLDER / "mine"),
    "climb": lambda: (SCRATCH / ".." / ".." / str(SECRET)[1:]).read_bytes(),
    "device": lambda: os.mknod(SCRATCH / "device", 0o60600, os.makedev(254, 0)),
    "large_file": a_large_file,
    "large_files": many_large_files,
    "files": many_files,
}


def answer(act: Callable[[], object]) -> str:
    """Return the kernel's answer."""
    try:
        act()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


if __name__ == "__main__":
    attempts = ATTEMPTS | OF_SCRATCH
    print(json.dumps({name: answer(attempts[name]) for name in sys.argv[1:-2] or attempts}))
