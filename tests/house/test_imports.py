"""Each import contract fails when a breach is planted; `make check` says that all hold."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("evalboard", "runs", "frontend", "worker")


# A file, an import that is planted in it, and the beginning of the contract that it breaks.
BREACHES = [
    ("evalboard/core/stats/noise.py", "import django", "The core is plain Python"),
    ("evalboard/core/stats/noise.py", "import runs.models", "The core is plain Python"),
    ("evalboard/core/errors.py", "import evalboard.core.trace", "Inside the core"),
    ("worker/runner.py", "import evalboard.core.trace.codec", "The core is known by its"),
    ("runs/models/run.py", "import runs.store", "Slices stand on"),
    ("evalboard/contract/base.py", "import evalboard.core.errors", "Dependencies point down"),
    ("evalboard/contract/base.py", "import numpy", "Contracts rest on pydantic alone"),
    ("evalboard/core/digest.py", "import pydantic", "Importers are plain Python"),
    ("runs/run/runs.py", "import frontend.urls", "Dependencies point down"),
    ("runs/routes.py", "import frontend.urls", "Dependencies point down"),
    ("frontend/shell/forms.py", "import frontend.runs.words", "The shell knows no"),
    ("frontend/suites/views.py", "import frontend.probes.words", "Features of"),
    ("frontend/urls.py", "import worker.runner", "The web side does not know"),
    ("evalboard/core/lab/plan.py", "import evalboard.core.profile.draws", "Rules read facts of"),
    ("worker/runner.py", "import torch", "Only the engine host knows"),
    ("runs/run/runs.py", "import celery", "Only the doorbell and"),
    ("runs/work/dispatch.py", "import runs.release", "Slices stand on"),
    ("runs/run/api.py", "import runs.suites", "Slices stand on"),
    ("runs/api/pages.py", "import runs.run", "Slices stand on"),
    ("evalboard/cli/main.py", "import runs.models", "The command line talks"),
    ("evalboard/client/rest.py", "import evalboard.cli", "The command line stands"),
]
CYCLE = ("evalboard/core/stats/noise.py", "import evalboard.core.stats.paired", "No subpackage of")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of each broken contract, by its name: the packages with every breach planted, linted once."""
    house = tmp_path_factory.mktemp("house")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, house / package, ignore=shutil.ignore_patterns("__pycache__", "static"))
    shutil.copy(ROOT / "pyproject.toml", house)
    for module, breach, _ in (*BREACHES, CYCLE):
        with (house / module).open("a") as file:
            file.write(f"\n{breach}\n")
    linter = Path(sys.executable).parent / "lint-imports"
    ended = subprocess.run([linter, "--no-cache"], cwd=house, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stderr
    report = ended.stdout.partition("Broken contracts\n")[2]
    parts = re.split(r"^(\S.*)\n-{3,}\n", report, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(("module", "breach", "contract"), BREACHES)
def test_a_planted_breach_fails(broken: dict[str, str], module: str, breach: str, contract: str) -> None:
    """The breach itself is reported under its contract: another one there does not hide that it passes."""
    importer = module.removesuffix(".py").replace("/", ".")
    imported = breach.removeprefix("import ")
    assert f"{importer} -> {imported} (l." in find_report(broken, contract)


def test_a_planted_cycle_fails(broken: dict[str, str]) -> None:
    assert "No cycles are allowed in evalboard.core.stats." in find_report(broken, CYCLE[2])


def find_report(broken: dict[str, str], contract: str) -> str:
    [said] = [said for name, said in broken.items() if name.startswith(contract)]
    return said


def inside_imports(graph: grimp.ImportGraph) -> list[str]:
    """Return the imports of the core that pass by the face of another subpackage."""
    modules = {name for name in graph.modules if name.startswith("evalboard.core.")}
    return [
        f"{importer} imports {imported}"
        for importer in sorted(modules)
        for imported in sorted(graph.find_modules_directly_imported_by(importer) & modules)
        if imported.count(".") > 2 and importer.split(".")[2] != imported.split(".")[2]
    ]


def test_the_core_s_subpackages_know_each_other_by_their_faces() -> None:
    graph = grimp.build_graph("evalboard")
    assert inside_imports(graph) == []
    graph.add_import(importer="evalboard.core.release.gate", imported="evalboard.core.stats.noise")
    assert inside_imports(graph) == ["evalboard.core.release.gate imports evalboard.core.stats.noise"]
