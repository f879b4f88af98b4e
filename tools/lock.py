"""Rewrite the lock files of requirements/: exact versions with digests of all allowed files.

Usage: python tools/lock.py [app] [sso] [dev] [core] [engine] [rig]     (without names it writes all six)
Needs `uv` on PATH; for the engine UV_EXTRA_INDEX_URL or UV_FIND_LINKS says where torch's CPU build is.
"""

import re
import subprocess
import sys
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements"
LOCKS = ("app", "sso", "dev", "core", "engine", "rig")
# Overrides take a package out by a marker that holds nowhere; uv lists such packages all the same.
LEFT_OUT = re.compile(r"^[a-z0-9][^\n]*sys_platform == 'never'[^\n]*\n(?:    [^\n]*\n)*", re.MULTILINE)


def write_lock(name: str) -> None:
    command = ["uv", "pip", "compile", f"{name}.in", "--universal", "--python-version", "3.11", "--generate-hashes"]
    command += ["--no-annotate", "--no-header", "--quiet"]
    if name in ("sso", "dev", "core"):
        command += ["--constraint", "app.txt"]  # the tests run the very versions that the product runs
    if name == "engine":
        # torch's CPU build is not on the usual index; tools/install.py names it and says where it is.
        command += ["--override", "engine-overrides.txt", "--no-emit-package", "torch"]
    locked = subprocess.run(command, cwd=REQUIREMENTS, check=True, stdout=subprocess.PIPE, text=True).stdout
    locked = LEFT_OUT.sub("", locked)
    (REQUIREMENTS / f"{name}.txt").write_text(f"# Written by tools/lock.py from {name}.in; do not edit.\n{locked}")
    print(f"{name}.txt: {len(re.findall(r'^[a-z0-9]', locked, re.MULTILINE))} packages")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or LOCKS:
        write_lock(wanted)
