"""Run all static checks: lint, words, templates, types, imports, migrations, schemas, CI, images.

Started by `make check` in .venv. All checks run, as many at a time as there are cores; the exit status says whether all
passed.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def checks() -> dict[str, list[str]]:
    templates = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "frontend").glob("*/templates/**/*.html"))
    return {
        "types": [f"{BIN}/mypy"],  # the longest, so that it begins first
        "lint": [f"{BIN}/ruff", "check", "."],
        "format": [f"{BIN}/ruff", "format", "--check", "."],
        "words": [sys.executable, "tools/words.py"],
        "house": [sys.executable, "tools/house.py"],
        "templates": [f"{BIN}/djade", "--check", "--target-version", "5.2", *templates],
        "import contracts": [f"{BIN}/lint-imports"],
        "Dockerfile": [f"{BIN}/hadolint", "Dockerfile"],
        "compose.yaml": [f"{BIN}/check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml"],
        "GitHub workflow": [
            f"{BIN}/check-jsonschema",
            *("--builtin-schema", "vendor.github-workflows", ".github/workflows/ci.yml"),
            *("docs/ci/github-actions.yml", "docs/ci/github-diff.yml"),
        ],
        "GitLab job": [
            f"{BIN}/check-jsonschema",
            *("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"),
            *("docs/ci/gitlab-ci.yml", "docs/ci/gitlab-diff.yml"),
        ],
        "API schema": [sys.executable, "tools/openapi.py"],
        "API page": [sys.executable, "tools/api_fields.py"],
        "migrations": [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run"],
    }


def passes(name: str, command: list[str]) -> bool:
    """Run one check and say how it went; its words are shown only when it fails."""
    began = time.monotonic()
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    line = f"{time.monotonic() - began:6.1f} s  {name}: {'passed' if ended.returncode == 0 else 'FAILED'}\n"
    words = "" if ended.returncode == 0 else f"{ended.stdout}{ended.stderr}\n"
    sys.stdout.write(line + words)  # in one piece: others end at the same time
    sys.stdout.flush()
    return ended.returncode == 0


if __name__ == "__main__":
    with ThreadPoolExecutor(os.cpu_count()) as side_by_side:
        results = list(side_by_side.map(passes, *zip(*checks().items(), strict=True)))
    sys.exit(0 if all(results) else 1)
