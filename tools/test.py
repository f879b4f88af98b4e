"""Run tests; pytest's closing line comes last. Started in .venv.

Usage: python tools/test.py [ARGUMENTS]   every test; what ARGUMENTS name, and nothing else, where there are any
       python tools/test.py --quick [...]  what needs no server, engine or browser
       python tools/test.py --soak [...]   the tests that draw at random: more draws, another seed each time

With EVALBOARD_REQUIRE_SERVICES=1 a part that is missing is a failure, without it the tests that need the part are
skipped with the reason.
"""

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from evalboard.local.children import die_with_parent

ROOT = Path(__file__).resolve().parent.parent
CORE_PYTHON = ROOT / ".venv-core" / "bin" / "python"
# Many tests wait for processes and servers, so more go side by side than there are cores; each session has a database
# and a Redis of its own. Tests that share something with their file stay together (tests/conftest.py).
SIDE_BY_SIDE = ("-n", "4", "--dist", "loadgroup", "--no-loadscope-reorder", "-rR")
ALL = (*SIDE_BY_SIDE, "--ignore", "tests/core", "-m", "not rig")  # of the rig, `make rig` says
SOAK = (*SIDE_BY_SIDE, "-m", "chaos or hypothesis or drawn")
# These only compute and share nothing. The rings that need a server in every test are not even read.
QUICK = ("-n", "logical", "--dist", "worksteal", "-m", "not server", "-q")
SERVED_RINGS = ("attacks", "browser", "faults", "local", "rig", "worker")


def main(arguments: list[str]) -> int:
    # Hundreds of processes read the same modules: each is compiled once, whatever is the custom of this machine.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    kind, *others = arguments or [""]
    if kind == "--quick":
        return pytest(*QUICK, *(f"--ignore=tests/{ring}" for ring in SERVED_RINGS), *others)
    if kind == "--soak":
        os.environ["EVALBOARD_SOAK"] = "1"
        return pytest(*SOAK, *others)
    return pytest(*arguments) if arguments else run_all()


def run_all() -> int:
    """Run everything, whatever failed before, so that one call shows every failure."""
    with ThreadPoolExecutor() as beside:
        core = beside.submit(run_core_alone)
        engine = beside.submit(install_engine)
        failures = [run_scripts(), engine.result(), pytest(*ALL), core.result()]
    if any(failures[:2] + failures[3:]):
        print("Some of what runs beside pytest failed; see above.", file=sys.stderr)
    return max(failures)


def pytest(*arguments: str) -> int:
    return run([sys.executable, "-m", "pytest", *arguments])


def install_engine() -> int:
    """Bring the engine there, unless the person named one; a failure counts only where everything must be there."""
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
    """Run the core's tests where Django is not installed, so that the core cannot come to lean on it unseen."""
    command = [CORE_PYTHON, "-m", "pytest", "tests/core", "-q"]
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
