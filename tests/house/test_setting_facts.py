"""No rule reads a setting as it was asked for: whether it held is a fact (docs/decisions/0027)."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).resolve().parents[2]
# The files that read what was asked for, and why: they send it, plan it, store it or show it. None decides by it.
READERS = {
    "evalboard/core/compare/run_facts.py": "makes facts",
    "evalboard/core/lab/plan.py": "plans what a condition asks for",
    "evalboard/core/profile": "makes settings and facts",
    "runs/catalogue/read.py": "names a profile that samples",
    "runs/exports/manifest.py": "stores what was asked for",
    "runs/imports/imports.py": "names the settings that keep a log from being a second one",
    "runs/lab/bisect_plan.py": "plans what a step asks for",
    "runs/lab/read.py": "names a condition by what it asks for",
    "runs/pairs/pair_facts.py": "plans draws",
    "runs/replays/read.py": "sends",
    "runs/replays/read_production.py": "shows what a replay asks for",
    "runs/run/estimates.py": "counts what calls may cost",
    "runs/run/read.py": "shows what was asked for",
    "runs/work/read.py": "sends",
    "runs/work/settings_seen.py": "reads the check that decides what is sent",
}
READS = {"read_temperature", "is_sampled", "has_call_seeds"}


def reads_settings(source: str) -> Iterator[int]:
    """Yield the lines that take `sampling` out of settings, or import what does."""
    if not any(name in source for name in ("sampling", *READS)):
        return
    for node in ast.walk(ast.parse(source)):
        if _takes_out(node) or (isinstance(node, ast.ImportFrom) and READS & {each.name for each in node.names}):
            yield node.lineno


def _takes_out(node: ast.AST) -> TypeGuard[ast.expr]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        return "'sampling'" in map(ast.unparse, node.args[:1])
    return isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "'sampling'"


def test_only_the_files_that_are_listed_read_what_was_asked_for() -> None:
    readers = set()
    for folder in ("evalboard/core", "evalboard/wording", "runs", "frontend"):
        for path in (ROOT / folder).rglob("*.py"):
            name = str(path.relative_to(ROOT))
            if next(reads_settings(path.read_text()), 0):
                readers.add(next((known for known in READERS if name.startswith(known)), name))
    assert readers == set(READERS)


def test_each_way_to_read_a_setting_is_seen() -> None:
    ways = [
        "run.profile.settings['sampling']",
        "run.profile.settings.get('sampling', {})",
        "from evalboard.core.profile.draws import is_sampled",
    ]
    assert [list(reads_settings(way)) for way in ways] == [[1], [1], [1]]
