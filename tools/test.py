"""Run every test; pytest's closing line comes last. Arguments go to pytest.

Started by `make test` in .venv, beside .venv-core. With EVALBOARD_REQUIRE_SERVICES=1 a part that is missing is a
failure, without it the tests that need the part are skipped with the reason.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE_PYTHON = ROOT / ".venv-core" / "bin" / "python"


def main(pytest_arguments: list[str]) -> int:
    # All is run, whatever failed before, so that one call shows every failure.
    before = [install_engine(), test_scripts(), test_core_alone()]
    if any(before):
        print("Some of what runs before pytest failed; see above.", file=sys.stderr)
    return max(*before, run([sys.executable, "-m", "pytest", *pytest_arguments]))


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
    return abs(subprocess.run(command, cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
