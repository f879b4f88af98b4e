"""Download Plotly's basic bundle from npm: a quarter of the size, with all plots that pages use.

Usage: python tools/plotly_basic.py FOLDER

It comes by `npm pack`, from wherever npm already looks. Where it cannot be had, the whole bundle out of the Python
package serves the pages (frontend/shell/static_files.py), so nothing fails. Standard library only.
"""

import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

# The version of plotly.js in the Python package that requirements/app.txt names; a test holds them together.
VERSION = "4.1.1"
SHA256 = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"  # of the script
PACKAGE = "plotly.js-basic-dist-min"
MEMBER = "package/plotly-basic.min.js"
SECONDS = 120


class CannotTake(Exception):
    """Why the bundle is not there."""


def take(folder: Path) -> None:
    """Put the bundle into `folder` as plotly.min.js, unless it is there. Raises CannotTake."""
    target = folder / "plotly.min.js"
    if target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == SHA256:
        return
    script = read_member(pack_by_npm())
    if hashlib.sha256(script).hexdigest() != SHA256:
        raise CannotTake(f"{PACKAGE} {VERSION} differs from the one that was reviewed")
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".new")
    unfinished.write_bytes(script)
    unfinished.rename(target)


def pack_by_npm() -> bytes:
    if not shutil.which("npm"):
        raise CannotTake("npm is not on PATH")
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", "--ignore-scripts", f"{PACKAGE}@{VERSION}"]
        try:
            subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=SECONDS)
            return next(Path(folder).glob("*.tgz")).read_bytes()
        except (OSError, subprocess.SubprocessError, StopIteration) as problem:
            raise CannotTake(f"npm does not hand out {PACKAGE} {VERSION}") from problem


def read_member(archive: bytes) -> bytes:
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as package:
            member = package.extractfile(MEMBER)
            return member.read() if member else b""
    except (tarfile.TarError, KeyError) as problem:
        raise CannotTake(f"{PACKAGE} {VERSION} is no package of npm's") from problem


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        take(Path(sys.argv[1]))
    except CannotTake as problem:
        print(f"The pages load the whole Plotly: {problem}.", file=sys.stderr)
