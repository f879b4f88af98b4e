"""Confine this process, then become a program: what `worker/sandbox.py` starts with `python -I -S`.

The standard library is all there is. Everything is done here and not in a fork of the worker, whose other threads may
hold any lock. Numbers are of <linux/NAME.h> where a comment names NAME, of Linux 5.13 (Landlock) to 6.18.
"""

import ctypes
import os
import resource
import select
import signal
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

# prctl.h
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = (
    1,
    4,
    8,
    22,
    38,
    47,
)
PR_CAP_AMBIENT_RAISE = 2
# sched.h; the last one: all kinds of namespaces
CLONE_THREAD, CLONE_PARENT, CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID = 0x10000, 0x8000, 0x20000, 0x10000000, 0x20000000
CLONE_NEW_ANY = 0x7E020000
# mount.h
MS_NOSUID, MS_NODEV, MS_PRIVATE, MOUNT_ATTR_RDONLY, AT_RECURSIVE, AT_FDCWD = 2, 4, 1 << 18, 1, 0x8000, -100
# landlock.h: rights on files, with how many of them (and of the others) each version of the interface knows
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE = 1, 2, 4, 8, 1 << 14
N_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
BIND_AND_CONNECT_TCP, ABSTRACT_SOCKETS_AND_SIGNALS = 3, 3  # since 4; since 6
READ = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE  # the rights that a rule for no folder may name
IN_SCRATCH = 0x7FFF & ~(1 << 6 | 1 << 9 | 1 << 11)  # all up to TRUNCATE, but for devices and sockets
# seccomp.h, filter.h, audit.h; the last column: this architecture's column in the tables of system calls
KILL, ERRNO, ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
LOAD, JUMP_EQUAL, JUMP_GREATER, AND, RETURN = 0x20, 0x15, 0x25, 0x54, 0x06
MACHINES = {"x86_64": (0xC000003E, 1), "aarch64": (0xC00000B7, 2)}
EPERM, ENOSYS = 1, 38
NEWEST = 462  # mseal of Linux 6.10; what is newer does not exist here, nor do x86's calls of other interfaces

FIRST_UID = 0x70000000  # nobody's, says systemd's list of UIDs; + a process id, at most 2²²
CAP_DAC_READ_SEARCH, CAP_KILL = 2, 5  # capability.h
CAPABILITY_HEAD = struct.pack("Ii", 0x20080522, 0)  # version 3, of this process
THREADS = 64
FILES = 256
SCRATCH = "/dev/shm"  # noqa: S108  exists everywhere, and nothing of the machine's own there is for a program
SYSTEM = """/usr /bin /lib /lib32 /lib64 /etc/ld.so.cache /etc/localtime /etc/ssl/openssl.cnf /dev/zero /dev/random
/dev/urandom /proc/cpuinfo /proc/meminfo /sys/devices/system/cpu"""

# System calls with their numbers on x86_64 and aarch64 (asm/unistd.h). Of other processes:
REFUSED = """ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271, process_madvise 440 440, kcmp 312 272,
process_mrelease 448 448, pidfd_getfd 438 438, pidfd_send_signal 424 424, migrate_pages 256 238, move_pages 279 239,
setpriority 141 140, ioprio_set 251 30, sched_setparam 142 118, sched_setscheduler 144 119, sched_setattr 314 274,
sched_setaffinity 203 122, perf_event_open 298 241, """
# of other machines and programs, and what is left behind or not counted as a process's memory:
REFUSED += """socket 41 198, bind 49 200, connect 42 203, listen 50 201, accept 43 202, accept4 288 242, shmget 29 194,
shmat 30 196, shmctl 31 195, semget 64 190, semop 65 193, semtimedop 220 192, semctl 66 191, msgget 68 186,
msgsnd 69 189, msgrcv 70 188, msgctl 71 187, mq_open 240 180, mq_unlink 241 181, memfd_create 319 279,
memfd_secret 447 447, add_key 248 217, request_key 249 218, keyctl 250 219, inotify_init 253 -, inotify_init1 294 26,
fanotify_init 300 262, io_setup 206 0, """
# and of the system, where faults of the kernel were most often:
REFUSED += """bpf 321 280, userfaultfd 323 282, io_uring_setup 425 425, io_uring_enter 426 426,
io_uring_register 427 427, mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51, unshare 272 97,
setns 308 268, open_tree 428 428, move_mount 429 429, fsopen 430 430, fsconfig 431 431, fsmount 432 432,
fspick 433 433, mount_setattr 442 442, name_to_handle_at 303 264, open_by_handle_at 304 265, kexec_load 246 104,
kexec_file_load 320 294, init_module 175 105, finit_module 313 273, delete_module 176 106, syslog 103 116,
modify_ldt 154 -, truncate 76 45"""
# What Landlock lets an owner do to every file. With scratch, all else is mounted to be read.
OF_OWNERS = """chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, chown 92 -, fchown 93 55, lchown 94 -,
fchownat 260 54, utime 132 -, utimes 235 -, futimesat 261 -, utimensat 280 88, setxattr 188 5, lsetxattr 189 6,
fsetxattr 190 7, removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16"""
FORKS = "fork 57 -, vfork 58 -"
SIGNALS = "kill 62 129, tgkill 234 131, rt_sigqueueinfo 129 138, rt_tgsigqueueinfo 297 240"
TKILL, PRLIMIT, CLONE, CLONE3 = "tkill 200 130", "prlimit64 302 261", "clone 56 220", "clone3 435 435"
SOCKETPAIR, FCNTL, IOCTL, PRCTL = "socketpair 53 199", "fcntl 72 25", "ioctl 16 29", "prctl 157 167"
AF_UNIX, SOCK_STREAM, SOCK_TYPE_MASK = 1, 1, 0xF  # net.h: a pair of streams reaches nobody else
F_SETS = (8, 10, 15, 1024, 1026, 1031)  # fcntl.h: F_SETOWN, SETSIG, SETOWN_EX, SETLEASE, NOTIFY, SETPIPE_SZ
IOCTLS = (0x5412, 0x541C, 0x8901, 0x8902)  # ioctls.h, tty.h, sockios.h: TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP
ANY = 0xFFFFFFFF

libc = ctypes.CDLL(None, use_errno=True)


class StepRefused(Exception):
    """The kernel refuses a step of the confinement: its name, and the kernel's word."""


def call(step: str, function: Callable[..., int], *arguments: object) -> int:
    """Return what a function of libc returns; integers go to it as long ones. Raises StepRefused."""
    whole = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    if (result := function(*whole)) < 0:
        raise StepRefused(step, os.strerror(ctypes.get_errno()))
    return result


def numbers(table: str, column: int) -> list[int]:
    """Return an architecture's numbers of the system calls of a table."""
    cells = (entry.split()[column] for entry in table.split(","))
    return [int(cell) for cell in cells if cell != "-"]


class Ruleset:
    """Landlock's rules: what is named may be read; writing and ports are refused."""

    def __init__(self) -> None:
        self._version = call("landlock", libc.syscall, 444, None, 0, 1)  # landlock_create_ruleset: which version?
        self._rights = (1 << N_FILE_RIGHTS[min(self._version, max(N_FILE_RIGHTS))]) - 1
        net = BIND_AND_CONNECT_TCP if self._version >= 4 else 0
        scoped = ABSTRACT_SOCKETS_AND_SIGNALS if self._version >= 6 else 0
        size = 24 if scoped else 16 if net else 8
        self._number = call("landlock", libc.syscall, 444, struct.pack("QQQ", self._rights, net, scoped), size, 0)

    def allow(self, path: str, rights: int) -> None:
        """Allow rights on a file, or on all below a folder. Raises OSError: it cannot be opened."""
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rights &= self._rights if os.path.isdir(path) else OF_FILES & self._rights  # noqa: PTH112  pathlib takes 10 ms
        call("landlock", libc.syscall, 445, self._number, 1, struct.pack("=Qi", rights, opened), 0)
        os.close(opened)

    def restrict(self) -> None:
        call("landlock", libc.syscall, 446, self._number, 0)


def write_filter(processes: int, *, has_scratch: bool) -> bytes:
    """Return the program for seccomp(2): which system calls are refused."""
    if (machine := os.uname().machine) not in MACHINES:
        raise StepRefused("seccomp", machine)
    audit, column = MACHINES[machine]
    lines = [(LOAD, 0, 0, 4), (JUMP_EQUAL, 1, 0, audit), (RETURN, 0, 0, KILL)]
    lines += [(LOAD, 0, 0, 0), (JUMP_GREATER, 0, 1, NEWEST), (RETURN, 0, 0, ERRNO | ENOSYS)]

    def refuse(table: str, errno: int = EPERM) -> None:
        for number in numbers(table, column):
            lines.extend([(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | errno)])

    def judge(table: str, argument: int, values: Sequence[int], *, mask: int = ANY, are_refused: bool = False) -> None:
        """Refuse calls by the low half of an argument: if it is one of `values`, or if it is none."""
        n = len(values)
        body = [(LOAD, 0, 0, 16 + 8 * argument), (AND, 0, 0, mask)]
        last = (0, 1) if are_refused else (1, 0)
        body += [(JUMP_EQUAL, n - i - 1 + last[0], last[1] * (i == n - 1), value) for i, value in enumerate(values)]
        body += [(RETURN, 0, 0, ERRNO | EPERM)]
        for number in numbers(table, column):
            lines.extend([(JUMP_EQUAL, 0, len(body) + 1, number), *body, (LOAD, 0, 0, 0)])

    refuse(REFUSED)
    refuse(CLONE3, ENOSYS)  # its flags lie in memory, where no filter looks; libc takes `clone` instead
    if not has_scratch:
        refuse(OF_OWNERS)
    if processes == 1:  # else a namespace of process ids hides all others
        refuse(FORKS)
        refuse(TKILL)
        judge(SIGNALS, 0, [os.getpid()])
        judge(PRLIMIT, 0, [0, os.getpid()])
    thread = CLONE_THREAD if processes == 1 else 0
    judge(CLONE, 0, [thread], mask=CLONE_NEW_ANY | CLONE_PARENT | thread)
    judge(SOCKETPAIR, 0, [AF_UNIX])
    judge(SOCKETPAIR, 1, [SOCK_STREAM], mask=SOCK_TYPE_MASK)
    judge(FCNTL, 1, F_SETS, are_refused=True)
    judge(IOCTL, 1, IOCTLS, are_refused=True)
    judge(PRCTL, 0, [PR_SET_PDEATHSIG], are_refused=True)
    return b"".join(struct.pack("HBBI", *line) for line in [*lines, (RETURN, 0, 0, ALLOW)])


def install_filter(program: bytes) -> None:
    buffer = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HP", len(program) // 8, ctypes.addressof(buffer))
    call("seccomp", libc.prctl, PR_SET_SECCOMP, 2, head)


def read_capabilities() -> int:
    """Return which of root's rights this process has, a bit for each of the first 32."""
    sets = ctypes.create_string_buffer(24)
    call("capabilities", libc.capget, CAPABILITY_HEAD, sets)
    return int(struct.unpack("6I", sets.raw)[1])


def drop_capabilities(keep: int = 0) -> None:
    """Give up the rights of root, but for `keep`, which outlives becoming a program."""
    call("capabilities", libc.capset, CAPABILITY_HEAD, struct.pack("6I", keep, keep, keep, 0, 0, 0))
    if keep:
        call("capabilities", libc.prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0)


def become_nobody() -> None:
    """Where this is root, become a user without other processes: the kernel counts no root's.

    What the rules name stays readable, if root may read everything here.
    """
    uid, rights = FIRST_UID + os.getpid(), read_capabilities()
    with suppress(OSError):  # no right to, or no such user in this container
        if os.geteuid() == 0 and rights & 1 << CAP_KILL:  # without which root could not end it
            libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
    drop_capabilities(keep=rights & 1 << CAP_DAC_READ_SEARCH if os.geteuid() == uid else 0)


def separate(processes: int, scratch_mb: int) -> None:
    """Make namespaces for several processes (of process ids) and for scratch (of mounts)."""
    namespaces = (CLONE_NEWPID if processes > 1 else 0) | (CLONE_NEWNS if scratch_mb else 0)
    if not namespaces or libc.unshare(namespaces) == 0:
        if scratch_mb:
            mount_scratch(scratch_mb)
        become_nobody()
        return
    become_nobody()
    uid, gid = os.getuid(), os.getgid()
    call("namespaces", libc.prctl, PR_SET_DUMPABLE, 1, 0, 0, 0)  # whoever changes its user cannot write the lines below
    call("namespaces", libc.unshare, namespaces | CLONE_NEWUSER)
    try:
        for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
                file.write(line)
    except OSError as error:
        raise StepRefused("namespaces", str(error)) from None
    if scratch_mb:
        mount_scratch(scratch_mb)
    drop_capabilities()


def mount_scratch(size_mb: int) -> None:
    """Mount an empty folder of limited size, and make all other mounts read-only."""
    attributes = struct.pack("QQQQ", MOUNT_ATTR_RDONLY, 0, MS_PRIVATE, 0)
    call("scratch", libc.syscall, 442, AT_FDCWD, b"/", AT_RECURSIVE, attributes, len(attributes))  # mount_setattr
    options = f"size={size_mb}m,nr_inodes={64 * size_mb + 64},mode=0777".encode()
    call("scratch", libc.mount, b"scratch", SCRATCH.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, options)


def fork_first(report: int) -> None:
    """Return in process 1 of the new namespace. This one waits for it, and ends as it did.

    With process 1 all others end. SIGTERM ends process 1; when this one has ended, all of them are gone.
    """
    first = os.fork()
    if first == 0:
        return
    signal.signal(signal.SIGTERM, lambda *_: os.kill(first, signal.SIGKILL))
    for number in (0, 1, 2, report):
        os.close(number)
    status = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
    if status < 0:
        libc.signal(-status, None)
        os.kill(os.getpid(), -status)
    os._exit(status)


def end_with_starter(report: int) -> None:
    """Have the kernel kill this process when its parent ends; end if `report` has no reader."""
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    poll = select.poll()
    poll.register(report, 0)
    if poll.poll(0):
        os._exit(1)


def limit(which: int, most: int) -> None:
    _, hard = resource.getrlimit(which)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


def limit_tasks(processes: int) -> None:
    """Limit processes and threads together. One process: its user's others, and THREADS."""
    most = processes + 1  # with the one that waits
    if processes == 1:
        while not _can_fork(most):  # the kernel counts all of a user's, also where nobody sees them, and tells no sum
            most *= 2
            if most > 1 << 23:  # threads.h: there are no more
                raise StepRefused("count", "no process can be started")
        most += THREADS - 1  # it has been one itself
    limit(resource.RLIMIT_NPROC, most)


def _can_fork(most: int) -> bool:
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        child = os.fork()
    except BlockingIOError:
        return False
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return True


def confine(report: int, memory_mb: int, processes: int, scratch_mb: int, readable: Iterable[str]) -> None:
    """Apply everything. Raises StepRefused, or OSError for a path."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
        file.write("1000")  # if memory runs out, this ends before the worker
    rules = Ruleset()
    for path in readable:
        rules.allow(path, READ)
    for path in SYSTEM.split():
        with suppress(FileNotFoundError):
            rules.allow(path, READ)
    rules.allow("/dev/null", READ | WRITE_FILE)
    separate(processes, scratch_mb)
    if scratch_mb:
        rules.allow(SCRATCH, IN_SCRATCH)
    limit(resource.RLIMIT_CORE, 1)  # at 0 the kernel still starts a program that takes dumps: core(5), fs/coredump.c
    end_with_starter(report)  # not before: a change of user undoes it, as a fork does
    if processes > 1:
        fork_first(report)
        end_with_starter(report)
    limit_tasks(processes)
    limit(resource.RLIMIT_FSIZE, scratch_mb << 20)
    limit(resource.RLIMIT_NOFILE, FILES)
    limit(resource.RLIMIT_SIGPENDING, FILES)  # of all processes of a user, and timers count: the others need some
    limit(resource.RLIMIT_AS, memory_mb << 20)
    call("seccomp", libc.prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a program would inherit that
    rules.restrict()
    install_filter(write_filter(processes, has_scratch=scratch_mb > 0))


def main(arguments: list[str]) -> None:
    """Arguments: descriptor for a report, MB, processes, MB of scratch, number of paths, paths, program."""
    report, memory_mb, processes, scratch_mb, n_readable = (int(each) for each in arguments[:5])
    os.set_inheritable(report, False)  # closes when the program starts
    paths, command = arguments[5:][:n_readable], arguments[5 + n_readable :]
    try:
        confine(report, memory_mb, processes, scratch_mb, paths)
        os.execvp(command[0], command)  # noqa: S606
    except StepRefused as refused:
        words = "\n".join(refused.args)
    except Exception as error:  # noqa: BLE001
        words = f"program\n{error}"
    os.write(report, words.encode())
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
