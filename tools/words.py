"""Finds names that a reader must learn first: words of no field, and functions called `of_…`.

`docs/glossary.md` has the words that stand instead. Fields of contracts keep the names that clients know, and
migrations are never edited. Started by `make check`; `python tools/words.py PATH …` looks at those files alone.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BANNED = frozenset({"found", "asked", "said", "told", "kept", "held"})
BANNED_STARTS = ("of_", "MOST_", "LEAST_")
HOLDS_FIXED_FIELDS = "evalboard/contract/"
NEVER_EDITED = "runs/migrations/"


def banned_names(source: str, *, has_fixed_fields: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each definition that has a banned name.

    has_fixed_fields: annotated fields of classes may be called anything.
    """
    tree = ast.parse(source)
    fields = {
        id(each.target)
        for node in ast.walk(tree)
        if has_fixed_fields and isinstance(node, ast.ClassDef)
        for each in node.body
        if isinstance(each, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        for name in _defined(node):
            bare = name.lstrip("_")
            if id(node) not in fields and (bare in BANNED or bare.startswith(BANNED_STARTS)):
                yield node.lineno, name  # type: ignore[attr-defined]


def _defined(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            return [name]
    return []


def main(names: list[str]) -> int:
    """Print every banned name in the named files, or in the product; return how many there are, at most 1."""
    places = names or ["evalboard", "runs", "frontend", "worker", "tools", "deploy", "manage.py"]
    listed = subprocess.run(["git", "ls-files", "--", *places], cwd=ROOT, capture_output=True, text=True, check=True)
    n_banned = 0
    for name in listed.stdout.split():
        if not name.endswith(".py") or name.startswith(NEVER_EDITED):
            continue
        is_fixed = name.startswith(HOLDS_FIXED_FIELDS)
        for line, word in banned_names((ROOT / name).read_text(), has_fixed_fields=is_fixed):
            print(f"{name}:{line}: {word!r} names nothing: name what it holds or returns (CONTRIBUTING, Words)")
            n_banned += 1
    return min(n_banned, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
