"""Run every test; pytest's closing line comes last. Arguments go to pytest.

Started by `make test` in .venv, beside .venv-core. With EVALBOARD_REQUIRE_SERVICES=1 a part that is missing is a
failure, without it the tests that need the part are skipped with the reason.
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
# Most tests wait for processes and servers, so two go side by side, each with a database and a Redis of its own; a
# file's tests stay together, since what they share is made once for each file. `-n 0`: one after the other. One that
# loses a race against a busy machine is tried once more, and the closing lines name it.
SIDE_BY_SIDE = ("-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "--reruns", "1", "-rR")


def main(pytest_arguments: list[str]) -> int:
    # All is run, whatever failed before, so that one call shows every failure. The engine comes over the network
    # while the core's tests compute.
    with ThreadPoolExecutor() as beside:
        engine = beside.submit(install_engine)
        before = [test_scripts(), test_core_alone()]
        before.append(engine.result())
    if any(before):
        print("Some of what runs before pytest failed; see above.", file=sys.stderr)
    # The core's have run; who names tests gets those.
    chosen = pytest_arguments or ["--ignore", "tests/core"]
    return max(*before, run([sys.executable, "-m", "pytest", *SIDE_BY_SIDE, *chosen]))


def install_engine() -> int:
    """Bring the engine there, unless the person named one; a failure counts only where everything must be there."""
    if os.environ.get("EVALBOARD_VLLM_PYTHON"):
        return 0
    failed = run([sys.executable, "tools/install.py", "engine"])
    return failed if is_required() else 0


def test_scripts() -> int:
    """The pages' pure functions, under Node."""
    files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "js").glob("**/*.test.*js"))
    node = shutil.which("node")
    if not files:
        return 0
    if node is None:
        print("tests/js: skipped, no node on PATH")
        return int(is_required())
    return run([node, "--test", *files])


def test_core_alone() -> int:
    """The core's tests where Django is not installed, so that the core cannot come to lean on it unseen."""
    return run([CORE_PYTHON, "-m", "pytest", "tests/core", "-q"])


def is_required() -> bool:
    return os.environ.get("EVALBOARD_REQUIRE_SERVICES") == "1"


def run(command: list[str | Path]) -> int:
    sys.stdout.flush()
    return abs(subprocess.run(command, cwd=ROOT, check=False, preexec_fn=die_with_parent(signal.SIGKILL)).returncode)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
