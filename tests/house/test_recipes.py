"""A recipe of CONTRIBUTING.md, followed in a copy: a few files by hand, then the generators, and the tests pass."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

MAX_FILES = 3  # by hand
NEEDED = (
    "evalboard",
    "bench",
    "runs/run/read.py",
    "tests/core",
    "tests/capability.py",
    "tools/api_fields.py",
    "docs/api.md",
    "docs/releases.md",
)
ROWS, READ = "evalboard/wording/run_warnings.py", "runs/run/read.py"
GOLDEN = "tests/core/golden/run_warnings.py"
# A warning of a new fact: by file, what is put before what.
WARNING = {
    ROWS: {
        "    n_total: int": "    n_throttled: int = 0\n",
        '@warns("info", must_act=None)\ndef coarse_suite': (
            '@warns("warning", must_act="operator")\n'
            "def throttled(run: WarnedRun) -> Iterator[str]:\n"
            '    """the GPU was too hot to run at full speed"""\n'
            "    if run.n_throttled:\n"
            "        yield f\"{counted(run.n_throttled, 'response')} came slowly: cool the GPU.\"\n\n\n"
        ),
    },
    READ: {"        n_total=": "        n_throttled=facts.n_throttled,\n"},
    GOLDEN: {'    "A suite of 40 cases"': '    "A hot GPU": lambda: read_run_warnings(n_throttled=3),\n'},
}
# What `python -m tests.core.golden --write` does, and the tests of its page.
WRITE_AND_TEST = """
from tests.core.golden import corpus, test_sentences
read = corpus.read_all()
corpus.PAGE.write_text(corpus.render(read))
for test in [each for name, each in vars(test_sentences).items() if name.startswith("test_")]:
    test(read)
"""


def follow(root: Path, patch: dict[str, dict[str, str]]) -> None:
    """Copy what a warning is made of to a folder, and change it."""
    for name in NEEDED:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(ROOT / name, root / name) if (ROOT / name).is_dir() else shutil.copy2(ROOT / name, root / name)
    for name, parts in patch.items():
        text = (root / name).read_text()
        for place, new in parts.items():
            assert text.count(place) == 1, f"{name} has {place!r} {text.count(place)} times"
            text = text.replace(place, new + place)
        (root / name).write_text(text)


def run(root: Path, *words: str) -> str:
    """Run Python there; return what it printed, "" where it passed."""
    ended = subprocess.run(
        [sys.executable, *words], cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, capture_output=True, text=True
    )
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


def list_filled(source: Path) -> set[str]:
    """Return the facts that the database's side gives a run that is warned of."""
    calls = (node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.Call))
    [call] = [call for call in calls if ast.unparse(call.func) == "WarnedRun"]
    return {str(keyword.arg) for keyword in call.keywords}


def list_facts(source: Path) -> set[str]:
    """Return the facts that warnings are made of."""
    classes = (node for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.ClassDef))
    [of] = [node for node in classes if node.name == "WarnedRun"]
    return {node.target.id for node in of.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)}


def test_a_warning_is_added_in_three_files(tmp_path: Path) -> None:
    assert len(WARNING) <= MAX_FILES
    follow(tmp_path, WARNING)
    assert list_filled(tmp_path / READ) == list_facts(tmp_path / ROWS)
    assert "--write" in run(tmp_path, "tools/api_fields.py")
    assert run(tmp_path, "tools/api_fields.py", "--write") == ""
    assert run(tmp_path, "-c", WRITE_AND_TEST) == ""
    assert "| `throttled` | warning | operator | the GPU was too hot" in (tmp_path / "docs/api.md").read_text()
    said = (tmp_path / "tests/core/golden/sentences.md").read_text()
    assert "**A hot GPU**\n\n- run warning `throttled`: 3 responses came slowly: cool the GPU.\n" in said
