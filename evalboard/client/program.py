"""How the reader types the `evalboard` command: hints name it so."""

import re
import shutil
import sys
from pathlib import Path

COMMANDS = (
    *("up", "signin", "tour", "run", "wait", "compare", "release", "replay", "bisect", "force", "probe", "on-policy"),
    *("verify", "verify-release", "diff", "trace", "export", "import", "worker", "scheduler", "suite", "endpoint"),
    *("experiment", "baseline", "case", "follow", "settle", "profile", "schedule", "rerun", "scorer", "labels"),
    *("vendors", "rollouts", "comment", "audit"),
)
_HINT = re.compile(rf"(?<![\w./-])evalboard(?= (?:{'|'.join(COMMANDS)})\b)")


def program() -> str:
    """Return the command to print: `evalboard` if the shell finds this installation's, else its path."""
    script = Path(sys.executable).with_name("evalboard")
    if not script.exists():
        return "evalboard"
    on_path = shutil.which("evalboard")
    if on_path is not None and Path(on_path).resolve() == script.resolve():
        return "evalboard"
    here = Path.cwd()
    if script.parent != here and script.is_relative_to(here):
        return str(script.relative_to(here))
    return str(script)


def as_typed(text: str) -> str:
    """Return a text with every `evalboard COMMAND` in it as the reader can type it."""
    return _HINT.sub(lambda _: program(), text)
