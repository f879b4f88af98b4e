"""What tools/house.py counts and refuses, on small trees of files."""

from pathlib import Path

import grimp
import pytest

from tools import house

PYPROJECT = "[tool.evalboard.house]\ncode_lines = {limit}\ndecision = 3\n"


def plant(root: Path, files: dict[str, str]) -> list[house.Source]:
    """Write files, and read what is measured of all there are."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return house.read_sources(root)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A product of no code, in which nothing is wrong."""
    monkeypatch.setattr(house, "OTHER_NOUNS", {})
    files = {
        "pyproject.toml": PYPROJECT.format(limit=1000),
        "docs/architecture.md": "<!-- map of subjects -->\n<!-- end -->\n",
        "docs/decisions/0003-more.md": "There may be 1,000 code lines, because …",
    }
    assert house.find_problems(tmp_path, plant(tmp_path, files), write=True) == []
    return tmp_path


SOURCE = '''"""About the module,
on two lines.
"""

import sys
from pathlib import (
    Path,
)

__all__ = [
    "Path",
]


class Box:
    """A box."""

    # what it is of
    kind: str = """text that is
no docstring"""

    def open(self) -> None:  # a comment behind code
        """Open it."""
        import os
        os.remove(self.kind)
'''


def test_blanks_comments_docstrings_imports_and_faces_are_no_code(tmp_path: Path) -> None:
    (source,) = plant(tmp_path, {"runs/box.py": SOURCE})
    assert (source.n_code, source.n_lines) == (5, SOURCE.count("\n"))


def test_migrations_are_not_measured(tmp_path: Path) -> None:
    assert plant(tmp_path, {"runs/migrations/first.py": "x = 1", "tests/test_x.py": "x = 1"}) == []


CONTRACT = "class Flip:\n    cause: str\n    place: int\n    margin: float\n    token: int\n"


@pytest.mark.parametrize(
    ("fields", "n_pairs"),
    [
        ("cause place margin", 1),
        ("cause place margin token shown", 1),
        ("cause place margin shown", 0),
        ("cause place", 0),
    ],
)
def test_a_class_with_the_fields_of_a_contract_is_its_twin(tmp_path: Path, fields: str, n_pairs: int) -> None:
    row = "class Row:\n" + "".join(f"    {name}: int\n" for name in fields.split())
    sources = plant(
        tmp_path, {"evalboard/contract/flip.py": CONTRACT, "evalboard/core/row.py": row, "frontend/row.py": row}
    )
    assert len(house.list_twins(sources)) == n_pairs


def test_labels_and_sides_make_no_twins_and_importers_have_none(tmp_path: Path) -> None:
    labelled = "class {}:\n    slug: str\n    title: str\n    baseline: int\n    candidate: int\n    {}: int\n"
    sources = plant(
        tmp_path,
        {
            "evalboard/contract/flip.py": labelled.format("Labelled", "a") + CONTRACT,
            "runs/row.py": labelled.format("Row", "a"),
            "evalboard/importers/row.py": CONTRACT,
        },
    )
    assert house.list_twins(sources) == []


FORMS = """
class Model:
    cause = object()
    margin = object()
    token: int

COLUMNS = ("cause", "margin", "token", "other")
ROW = {"cause": 1, "margin": 2, "token": 3}
FEW = ("cause", "margin")
VALUES = (cause, margin, token)
row = Model(cause=1, margin=2, token=3)
"""


def test_a_form_writes_down_half_of_the_fields(tmp_path: Path) -> None:
    sources = plant(tmp_path, {"runs/forms.py": FORMS})
    counted = house.list_forms(sources, {"cause", "margin", "token", "place"})
    assert counted == ["runs/forms.py Model", "runs/forms.py line 7", "runs/forms.py line 8"]


def test_a_word_counts_where_a_person_wrote_it(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "runs/rule.py": "CODE = 'coarse'",
            "runs/other.py": "CODE = 'coarser'",
            "runs/migrations/first.py": "'coarse'",
        },
    )
    (tmp_path / "runs" / "page.html").write_text("coarse")
    (tmp_path / "runs" / "api.md").write_text("<!-- fields of run.Warning -->\ncoarse\n<!-- end -->\n")
    assert house.list_files(tmp_path, "coarse", "runs") == ["runs/page.html", "runs/rule.py"]


def test_one_class_of_a_name(tree: Path) -> None:
    once = "class Answer:\n    class Meta: ...\n\nclass Other:\n    class Meta: ...\n"
    sources = plant(
        tree,
        {"runs/a.py": once, "tools/b.py": "class Answer: ...", "runs/management/commands/c.py": "class Answer: ..."},
    )
    assert house.find_problems(tree, sources) == []
    sources = plant(tree, {"worker/b.py": "class Answer: ..."})
    assert house.find_problems(tree, sources) == [
        "2 classes are called Answer, rename the new one: runs/a.py, worker/b.py"
    ]


def test_more_code_needs_a_decision_that_names_the_number(tree: Path) -> None:
    sources = plant(tree, {"runs/a.py": "x = 1\n" * 1001})
    assert house.find_problems(tree, sources) == ["1,001, where pyproject.toml allows 1,000 code lines"]
    (tree / "pyproject.toml").write_text(PYPROJECT.format(limit=1200))
    assert house.find_problems(tree, sources) == ["decision 3 does not say why there may be 1,200 code lines"]
    (tree / "docs/decisions/0003-more.md").write_text("Scorers need 1,200 code lines.")
    assert house.find_problems(tree, sources) == []


def test_the_map_has_the_subjects_of_three_floors(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house, "OTHER_NOUNS", {"release": {"verdict"}})
    names = [
        "evalboard/contract/release.py",
        "evalboard/core/verdict/__init__.py",
        "runs/releases/__init__.py",
        "runs/apps.py",
    ]
    sources = plant(tree, dict.fromkeys(names, ""))
    assert house.find_problems(tree, sources) == [
        "the map in docs/architecture.md is out of date; run tools/house.py --write"
    ]
    assert house.find_problems(tree, sources, write=True) == []
    rows = (tree / "docs" / "architecture.md").read_text().splitlines()[3:-1]
    links = "[release](../evalboard/contract/release.py) | [verdict](../evalboard/core/verdict/)"
    assert rows == [f"| release | {links} |  | [releases](../runs/releases/) |  |  |  |  |"]


def test_a_noun_that_nothing_is_called_by_is_struck(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house, "OTHER_NOUNS", {"release": {"verdict"}})
    assert house.find_problems(tree, []) == ["nothing is called 'verdict': strike it from OTHER_NOUNS"]


def graph_of(*imports: tuple[str, str]) -> grimp.ImportGraph:
    graph = grimp.ImportGraph()
    for name in ["runs", *(name for pair in imports for name in pair)]:
        graph.add_module(name)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported)
    return graph


def test_arrows_up_count_once_for_two_parts() -> None:
    graph = graph_of(
        ("runs.run.api", "runs.api.pages"),
        ("runs.run.read", "runs.api.pages"),
        ("runs.run.read", "runs.work"),
        ("runs.run.read", "runs.pairs"),
        ("runs.run.read", "runs.run.api"),
    )
    assert house.list_arrows_up(graph, ["apps | api", "run | pairs", "work"]) == ["runs.run -> runs.api"]


def test_a_circle_counts_once_however_long_it_is() -> None:
    graph = graph_of(("runs.a", "runs.b"), ("runs.b", "runs.c"), ("runs.c", "runs.a"), ("runs.c", "runs.d"))
    assert house.list_circles(graph, "runs") == ["runs.a <-> runs.b <-> runs.c"]
