"""The static half of what a change must pass: lint, words, templates, types, imports, migrations, schemas, CI, images.

Started by `make check` in .venv. All checks run; the exit status says whether all passed.
"""

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


def checks() -> dict[str, list[str]]:
    templates = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "frontend").glob("*/templates/**/*.html"))
    return {
        "lint": [f"{BIN}/ruff", "check", "."],
        "format": [f"{BIN}/ruff", "format", "--check", "."],
        "words": [sys.executable, "tools/words.py"],
        "templates": [f"{BIN}/djade", "--check", "--target-version", "5.2", *templates],
        "types": [f"{BIN}/mypy"],
        "import contracts": [f"{BIN}/lint-imports"],
        "Dockerfile": [f"{BIN}/hadolint", "Dockerfile"],
        "compose.yaml": [f"{BIN}/check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml"],
        "GitHub workflow": [
            f"{BIN}/check-jsonschema",
            *("--builtin-schema", "vendor.github-workflows", "docs/ci/github-actions.yml"),
        ],
        "GitLab job": [
            f"{BIN}/check-jsonschema",
            *("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci", "docs/ci/gitlab-ci.yml"),
        ],
        "API schema": [sys.executable, "tools/openapi.py"],
        "API page": [sys.executable, "tools/api_fields.py"],
        "migrations": [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run"],
    }


def passes(name: str, command: list[str]) -> bool:
    """Run one check and say how it went; its words are shown only when it fails."""
    began = time.monotonic()
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(f"{time.monotonic() - began:6.1f} s  {name}: {'passed' if ended.returncode == 0 else 'FAILED'}", flush=True)
    if ended.returncode != 0:
        print(ended.stdout + ended.stderr, flush=True)
    return ended.returncode == 0


if __name__ == "__main__":
    results = [passes(name, command) for name, command in checks().items()]
    sys.exit(0 if all(results) else 1)
