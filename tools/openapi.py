"""docs/openapi.yaml is the schema that the code describes, or this fails and says where they part.

Without an option it checks, as `make check` does; with --write it writes the file anew.
"""

import difflib
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "openapi.yaml"
SHOWN = 60  # lines of a difference


def made() -> str:
    """Return the code's schema; drf-spectacular exits if it is invalid or a route is not described."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "openapi.yaml"
        command = [sys.executable, "manage.py", "spectacular", "--validate", "--fail-on-warn", "--file", str(path)]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            sys.exit(f"The schema cannot be made:\n{ended.stderr[-4000:]}")
        return path.read_text()


def main() -> int:
    now = made()
    if "--write" in sys.argv[1:]:
        KEPT.write_text(now)
        return 0
    stored = KEPT.read_text() if KEPT.exists() else ""
    if now == stored:
        return 0
    parted = difflib.unified_diff(
        stored.splitlines(), now.splitlines(), "docs/openapi.yaml", "the code", lineterm="", n=2
    )
    print(*list(parted)[:SHOWN], sep="\n")
    print("\ndocs/openapi.yaml is not what the code says; `python tools/openapi.py --write` writes it anew.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
