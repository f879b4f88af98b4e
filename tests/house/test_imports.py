"""The import contracts hold, and each one fails when a breach is planted."""

import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("evalboard", "runs", "frontend", "worker")


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the packages that a breach may be planted in."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "static"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(house: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"], cwd=house, capture_output=True, text=True
    )


def test_the_contracts_hold(house: Path) -> None:
    result = lint(house)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("module", "breach", "contract"),
    [
        pytest.param("evalboard/core/stats/noise.py", "import django", "The core is plain Python", id="core-django"),
        pytest.param(
            "evalboard/core/stats/noise.py", "import runs.models", "The core is plain Python", id="core-models"
        ),
        pytest.param("evalboard/core/errors.py", "import evalboard.core.trace", "Inside the core", id="core-order"),
        pytest.param(
            "worker/runner.py", "import evalboard.core.trace.codec", "The core is known by its", id="core-inside"
        ),
        pytest.param(
            "evalboard/core/stats/noise.py", "import evalboard.core.stats.paired", "No subpackage of", id="core-cycle"
        ),
        pytest.param("runs/models/run.py", "import runs.store", "Slices stand on", id="models-store"),
        pytest.param("runs/run/runs.py", "import frontend.urls", "Dependencies point down", id="services-pages"),
        pytest.param("runs/api/urls.py", "import frontend.urls", "Dependencies point down", id="api-pages"),
        pytest.param("frontend/shell/forms.py", "import frontend.runs.words", "The shell knows no", id="shell-feature"),
        pytest.param("frontend/suites/views.py", "import frontend.probes.words", "Features of", id="faces"),
        pytest.param("frontend/urls.py", "import worker.runner", "The web side does not know", id="pages-worker"),
        pytest.param("worker/runner.py", "import torch", "Only the engine host knows", id="worker-torch"),
        pytest.param("runs/run/runs.py", "import celery", "Only the doorbell and", id="services-celery"),
        pytest.param("runs/work/dispatch.py", "import runs.release", "Slices stand on", id="dispatch-release"),
        pytest.param("evalboard/cli/main.py", "import runs.models", "The command line talks", id="cli-models"),
        pytest.param("evalboard/client/rest.py", "import evalboard.cli", "The command line stands", id="client-cli"),
    ],
)
def test_a_planted_breach_fails(house: Path, module: str, breach: str, contract: str) -> None:
    file = house / module
    file.write_text(f"{file.read_text()}\n{breach}\n")
    result = lint(house)
    assert result.returncode == 1
    assert any(contract in line and "BROKEN" in line for line in result.stdout.splitlines()), result.stdout


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
    graph.add_import(importer="evalboard.core.verdict.gate", imported="evalboard.core.stats.noise")
    assert inside_imports(graph) == ["evalboard.core.verdict.gate imports evalboard.core.stats.noise"]
