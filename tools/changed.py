"""Print the files of tests that the changes since `main` can reach, one a line.

Usage: python tools/changed.py [COMMIT]     COMMIT: the changes since its common ancestor with HEAD, by default `main`

A test reaches a module that it imports, directly or not. It reaches a page or an address of REST by its path: each
string in a test that begins with "/" is resolved as a browser's would be, and leads to the view. A template or static
file of a feature counts as a change of that feature's views. A change that no import shows (settings, conftest.py,
requirements, this folder) reaches every test.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import django
import grimp
from django.urls import Resolver404, resolve

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("evalboard", "runs", "frontend", "worker", "bench", "tests")
REACHES_ALL = (
    *("requirements/", "tools/", "pyproject.toml", "Makefile", "evalboard/settings.py", "runs/migrations/"),
    *("tests/conftest.py", "tests/cluster.py", "tests/nursery.py"),
)
REACHES_NONE = (".md", ".txt", ".yml", ".yaml", ".png")  # tests that read documents are tests of the house
RINGS_OF_PAGES = (
    "frontend",
    "browser",
    "attacks",
    "faults",
    "house",
    "local",
    "timed",
)  # in others a path is one of REST
PARAMETER = "1"  # replaces a value in a path that a test builds
STARTING = {"start_worker": "worker.__main__", "nursery": "worker.__main__"}  # fixtures that start processes


def main(arguments: list[str]) -> int:
    print(*sorted(reached(changed_files(*arguments))), sep="\n")
    return 0


def changed_files(since: str = "main") -> list[str]:
    """Return the paths that differ from the merge base with `since`, and untracked files."""
    ancestor = _git("merge-base", since, "HEAD")[0]
    return [*_git("diff", "--name-only", ancestor), *_git("ls-files", "--others", "--exclude-standard")]


def reached(changed: Iterable[str]) -> set[str]:
    """Return the files of tests that changes of these paths can reach."""
    tests = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    changed = list(changed)
    if any(path.startswith(REACHES_ALL) for path in changed):
        return tests
    graph = _graph_with_addresses()
    modules = {name for path in changed for name in _modules(path)} & graph.modules
    touched = modules.union(*(graph.find_downstream_modules(name) for name in modules))
    files = {f"{name.replace('.', '/')}.py" for name in touched if name.startswith("tests.")}
    documents = {path for path in tests if path.startswith("tests/house/")} if changed else set()
    return (files & tests) | documents


def _modules(path: str) -> Iterator[str]:
    """Yield the modules that a changed path affects."""
    first, *rest = Path(path).parts
    if path.endswith(".py"):
        yield path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    elif first == "frontend" and len(rest) > 1 and not path.endswith(REACHES_NONE):
        feature = "frontend." if rest[0] == "shell" else f"frontend.{rest[0]}."  # every page has the shell
        yield from (name for name in _graph_with_addresses().modules if name.startswith(feature) and "views" in name)
    elif first == "tests" and not path.endswith(REACHES_NONE):  # data of a ring
        yield from (name for name in _graph_with_addresses().modules if name.startswith(f"tests.{rest[0]}."))


@cache
def _graph_with_addresses() -> grimp.ImportGraph:
    # Not import-linter's folder: grimp dates its cache once for all sets of packages, so another grows stale.
    graph = grimp.build_graph(*PACKAGES, cache_dir=str(ROOT / ".grimp_cache"))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
    django.setup()
    for name in [name for name in graph.modules if name.startswith("tests.")]:
        file = ROOT / f"{name.replace('.', '/')}.py"
        fixtures = f"{name.rpartition('.')[0]}.conftest"
        for module in (_addressed(file) | {fixtures} if file.exists() else set()) & graph.modules - {name}:
            graph.add_import(importer=name, imported=module)
    return graph


def _addressed(file: Path) -> set[str]:
    """Return the modules that a test reaches by path or as a separate process."""
    modules: set[str] = set()
    root = "" if file.parent.name in RINGS_OF_PAGES else "/api/v1"
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.JoinedStr):
            parts = [each.value if isinstance(each, ast.Constant) else PARAMETER for each in node.values]
            modules |= _view(root, "".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            modules |= _view(root, node.value)
        elif isinstance(node, ast.arg) and node.arg in STARTING:
            modules.add(STARTING[node.arg])
    return modules


@cache
def _view(root: str, path: str) -> set[str]:
    if not path.startswith("/"):
        return set()
    try:
        view = resolve(f"{root}{path.partition('?')[0]}").func
    except (Resolver404, ValueError):
        return set()
    return {getattr(view, "cls", view).__module__}


def _git(*arguments: str) -> list[str]:
    ended = subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return ended.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
