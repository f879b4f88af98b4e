"""Run tests, and print what they cost. Started in .venv.

Usage: python tools/test.py [ARGUMENTS]     the gate; with ARGUMENTS what they name, and nothing else
       python tools/test.py --quick [...]   what needs no server, engine or browser
       python tools/test.py --changed       what the changes since `main` can reach
       python tools/test.py --nightly       everything: the gate, what left it, other random draws, the rig, the benches
       python tools/test.py --soak [...]    the tests that draw at random: more draws, another seed each time

The gate leaves out tests with the marker `nightly`; tests/nightly.txt lists them. With EVALBOARD_REQUIRE_SERVICES=1 a
missing part is a failure; without it the tests that need the part are skipped with the reason.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from evalboard.local.children import die_with_parent

ROOT = Path(__file__).resolve().parent.parent
CORE_PYTHON = ROOT / ".venv-core" / "bin" / "python"
# Many tests wait for processes and servers, so more run at a time than there are cores. Tests that share a fixture
# stay in one process (tests/conftest.py).
SIDE_BY_SIDE = ("-n", "3", "--dist", "loadgroup", "--no-loadscope-reorder", "-rR")
GATE = "not rig and not nightly"
# Compares what a session has collected with tests/nightly.txt, so each session runs it.
LISTED = "tests/house/test_nightly.py::test_the_list_names_what_left_the_gate"
# These only compute and share nothing. The rings that need a server in every test are not even read.
QUICK = ("-n", "logical", "--dist", "worksteal", "-q")
SERVED_RINGS = ("attacks", "browser", "faults", "local", "rig", "timed", "worker")
SMALL_BENCHES = ("cli", "find")  # a minute together; the others take an idle machine and longer
LOOP_ROUNDS = 5_000_000
LOOP_SECONDS = 0.16  # what the loop takes on the machine that the goal was set for


def main(arguments: list[str]) -> int:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # hundreds of processes read the same modules: compile each once
    kind, *others = arguments or [""]
    with report_cost():
        if kind == "--quick":
            ignored = [f"--ignore=tests/{ring}" for ring in SERVED_RINGS]
            return pytest(*QUICK, "-m", "not server and not nightly", *ignored, *others)
        if kind == "--soak":
            return run_soak(*others)
        if kind == "--changed":
            return run_changed()
        if kind == "--nightly":
            return run_nightly()
        return pytest(*arguments) if arguments else run_gate()


@contextmanager
def report_cost() -> Iterator[None]:
    """Print processor time, wall time and this machine's speed; processor time also relative to it."""
    before, began = time_loop(), time.monotonic()
    try:
        yield
    finally:
        wall, loop = time.monotonic() - began, min(before, time_loop())
        times = os.times()
        cpu = times.children_user + times.children_system
        print(
            f"{cpu:.0f} s of processor, {wall:.0f} s of wall, loop {loop:.3f} s: "
            f"{cpu * LOOP_SECONDS / loop:.0f} s of processor where the loop takes {LOOP_SECONDS} s",
            flush=True,
        )


def time_loop() -> float:
    """Return the machine's present speed: the best of three times of a fixed loop, in seconds."""
    loop, seconds = compile(f"for _ in range({LOOP_ROUNDS}): pass", "loop", "exec"), []
    for _ in range(3):
        began = time.perf_counter()
        exec(loop, {})  # noqa: S102
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def run_gate() -> int:
    """Run all tests even after failures, so that one call shows them all. Timed tests run last."""
    with ThreadPoolExecutor() as beside:
        core = beside.submit(run_core_alone)
        engine = beside.submit(install_engine)
        failures = [run_scripts(), engine.result()]
        failures.append(pytest(*SIDE_BY_SIDE, "--ignore=tests/core", "--ignore=tests/timed", "-m", GATE))
        failures.append(core.result())
    failures.append(pytest("tests/timed", LISTED, "-q", "-m", GATE))
    if any(failures[:2] + failures[3:]):
        print("Some of what runs beside the main session failed; see above.", file=sys.stderr)
    return max(failures)


def run_changed() -> int:
    """Run the tests that the changes since `main` can reach (tools/changed.py)."""
    reached = subprocess.run(
        [sys.executable, "tools/changed.py"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    files = reached.stdout.split()
    print(f"{len(files)} files of tests can be reached by the changes.", flush=True)
    return max(run_scripts(), pytest(*SIDE_BY_SIDE, "-m", GATE, *files)) if files else 0


def run_nightly() -> int:
    """Run all that there is, and fail where a test that left the gate did not run."""
    record = ROOT / ".pytest_cache" / "nightly"
    record.parent.mkdir(exist_ok=True)
    record.write_text("")
    os.environ["EVALBOARD_TESTS_RUN"] = str(record)
    failures = [
        run_scripts(),
        pytest(*SIDE_BY_SIDE, "--ignore=tests/timed", "-m", "not rig"),
        pytest("tests/timed", "-q"),
        pytest("tests/rig"),
        run_soak(),
        run([sys.executable, "-m", "bench", "--only", *SMALL_BENCHES]),
    ]
    missed = sorted(left_the_gate() - set(record.read_text().split("\n")))
    if missed:
        print("These tests left the gate, and nightly did not run them:", *missed, sep="\n  ", file=sys.stderr)
    return max(*failures, int(bool(missed)))


def left_the_gate() -> set[str]:
    """Return the ids of the tests that the gate leaves out."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "nightly or rig", "-n", "0"]
    ended = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return {line for line in ended.stdout.split("\n") if "::" in line}


def run_soak(*arguments: str) -> int:
    os.environ["EVALBOARD_SOAK"] = "1"
    try:
        return pytest(*SIDE_BY_SIDE, "-m", "chaos or hypothesis or drawn", *arguments)
    finally:
        del os.environ["EVALBOARD_SOAK"]


def pytest(*arguments: str) -> int:
    return run([sys.executable, "-m", "pytest", *arguments])


def install_engine() -> int:
    """Install the engine, unless the caller names one; failing counts only if everything is required."""
    if os.environ.get("EVALBOARD_VLLM_PYTHON"):
        return 0
    failed = run([sys.executable, "tools/install.py", "engine"])
    return failed if is_required() else 0


def run_scripts() -> int:
    """Test the pages' pure functions under Node."""
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "js").glob("**/*.test.*js"))
    node = shutil.which("node")
    if not files:
        return 0
    if node is None:
        print("tests/js: skipped, no node on PATH")
        return int(is_required())
    return run([node, "--test", *files])


def run_core_alone() -> int:
    """Run the core's tests without Django installed, so that the core cannot depend on it."""
    command = [CORE_PYTHON, "-m", "pytest", "tests/core", LISTED, "-q", "-m", "not nightly"]
    with_parent = die_with_parent(signal.SIGKILL)
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, preexec_fn=with_parent)
    print(f"\ntests/core, alone: {ended.stdout.strip()}{ended.stderr}", flush=True)
    return abs(ended.returncode)


def is_required() -> bool:
    return os.environ.get("EVALBOARD_REQUIRE_SERVICES") == "1"


def run(command: list[str | Path]) -> int:
    sys.stdout.flush()
    return abs(subprocess.run(command, cwd=ROOT, check=False, preexec_fn=die_with_parent(signal.SIGKILL)).returncode)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
