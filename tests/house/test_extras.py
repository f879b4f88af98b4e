"""`pip install evalboard` brings what the command imports, and nothing of a server's is needed for it."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from evalboard.cli import machine
from evalboard.cli.errors import CommandError
from tests.recorded import LOGS
from tests.scripted import ScriptedServer

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"] | {"cli": PROJECT["dependencies"]}
NAME = re.compile(r"[A-Za-z0-9._-]+")
LIST_IMPORTS = """
import importlib, pkgutil, sys
known = set(sys.modules)
package = importlib.import_module("{package}")
for module in pkgutil.iter_modules(package.__path__):
    importlib.import_module(f"{package}.{{module.name}}")
print(*sorted({{name.partition(".")[0] for name in set(sys.modules) - known}} - set(sys.stdlib_module_names)))
"""


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def brought(requirements: list[str]) -> set[str]:
    """The distributions that these requirements bring, their own requirements among them."""
    found: set[str] = set()
    wanted = list(requirements)
    while wanted:
        line = wanted.pop()
        match = NAME.match(line)
        if match is None or "extra ==" in line:
            continue
        name = plain(match[0])
        if name == "evalboard":
            wanted += [each for extra in re.findall(r"\[([\w,]+)\]", line)[:1] for each in EXTRAS[extra]]
        elif name not in found:
            found.add(name)
            try:
                wanted += metadata.requires(name) or []
            except metadata.PackageNotFoundError:
                continue  # for another platform or Python
    return found


@cache
def imported(package: str) -> set[str]:
    """The distributions that importing all modules of a package of ours needs."""
    code = LIST_IMPORTS.format(package=package)
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    of = metadata.packages_distributions()
    return {plain(name) for module in ended.stdout.split() for name in of.get(module, [])} - {"evalboard"}


# Taken where they are there, and done without where they are not.
OPTIONAL = {"brotli", "charset-normalizer", "click", "h2", "socksio"}


@pytest.mark.parametrize("package", ["evalboard.cli", "evalboard.client"])
def test_the_command_needs_what_its_extra_brings(package: str) -> None:
    assert imported(package) - OPTIONAL <= brought(EXTRAS["cli"])


ONLY_THE_COMMAND = """
import sys
from importlib.machinery import PathFinder

brought = set(sys.argv.pop(1).split())


class Finder:
    def find_spec(name, path=None, target=None):
        return None if path is None and name in brought else PathFinder.find_spec(name, path, target)


sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
from evalboard.cli.main import main
main()
"""


@pytest.mark.nightly
@pytest.mark.parametrize("command", ["up", "signin", "tour", "worker", "scheduler"])
def test_a_command_of_a_server_says_what_to_install_where_the_command_line_is_alone(command: str) -> None:
    absent = _absent()
    assert "psycopg" in absent
    asked = [sys.executable, "-c", ONLY_THE_COMMAND, absent, command]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (4, 1, ""), done.stderr
    assert "only the command line is installed here (psycopg is missing)" in done.stderr
    assert "`make install`" in done.stderr


@pytest.mark.nightly
def test_the_wheel_records_and_compares_logs_where_only_its_own_packages_are(tmp_path: Path) -> None:
    source, wheels, installed = (tmp_path / name for name in ("source", "wheels", "installed"))
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("evalboard", "runs", "frontend", "worker"):
        shutil.copytree(ROOT / name, source / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = ["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(source)]
    subprocess.run([sys.executable, *build], capture_output=True, check=True)
    [wheel] = wheels.glob("evalboard-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
        [metadata_name] = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        needs = re.findall(r"^Requires-Dist: ([\w-]+)(?!.*extra)", archive.read(metadata_name).decode(), re.MULTILINE)
    assert not {"psycopg", "celery", "redis", "djangorestframework"} & set(needs)
    logs = [str(LOGS / "inspect" / name) for name in ("fp32_baseline.eval", "bf16_candidate.eval")]
    asked = [sys.executable, "-c", ONLY_THE_COMMAND, _absent(), "diff", *logs, "--html", "report.html"]
    own = {"PYTHONPATH": str(installed), "PATH": os.environ["PATH"]}
    done = subprocess.run(asked, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
    assert (done.returncode, "4 cases differ" in done.stdout) == (0, True), done.stderr
    assert "From 27 on the two sides read different texts" in (tmp_path / "report.html").read_text()
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "Name a colour."}\n')
    with ScriptedServer() as server:
        asked = [sys.executable, "-c", ONLY_THE_COMMAND, _absent(), "trace", "prompts.jsonl", "-o", "a.jsonl"]
        asked += ["--base-url", server.base_url, "--model", "m"]
        done = subprocess.run(asked, cwd=tmp_path, env=own, capture_output=True, text=True, check=False)
    assert (done.returncode, "a.jsonl holds 1 answer of m" in done.stdout) == (0, True), done.stderr


def _absent() -> str:
    """The modules that the command's own packages do not bring."""
    allowed = brought(EXTRAS["cli"])
    distributions = metadata.packages_distributions().items()
    others = [module for module, names in distributions if not {plain(name) for name in names} & allowed]
    return " ".join(set(others) - {"evalboard", "runs", "frontend", "worker"})


def test_pandas_comes_with_the_notebook_and_is_not_asked_for_before() -> None:
    assert "pandas" in brought(EXTRAS["notebook"]) - brought(EXTRAS["cli"])
    assert "pandas" not in imported("evalboard.client")


def test_a_wheel_with_all_packages_starts_no_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    with pytest.raises(CommandError, match=r"only the command line is installed here \(manage.py is missing\)"):
        machine._check_product("up")
