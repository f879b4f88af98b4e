"""Measure the code base in one table, and fail if it exceeds its limits (part of `make check`).

    python tools/house.py --list     also print what each row counts
    python tools/house.py --page     also count the modules that one view of a run's page enters; starts a database
    python tools/house.py --write    write the map in docs/architecture.md

It fails if there are more code lines than `[tool.evalboard.house]` in pyproject.toml allows, if the decision named
there does not give that number, if two classes have one name, and if the map is out of date.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import grimp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tools.words import is_dialect

ROOT = Path(__file__).resolve().parent.parent
CONTRACT, CORE = "evalboard/contract", "evalboard/core"
FLOORS = (CONTRACT, CORE, "evalboard/wording", "runs", "frontend", "evalboard/cli", "evalboard/client", "worker")
FOR_TEAMS = "evalboard/scorers.py"  # what a team writes its scorer with: `Case`, `Response`, `Score`
PRODUCT = ("evalboard", "runs", "frontend", "worker")
MEASURED = (*PRODUCT, "tools", "deploy", "manage.py")
FLIP_FIELD, WARNING = "margin_baseline", "coarse_suite"  # to add a warning is to edit the files that have its code
GENERATED = re.compile(r"<!-- \w[^>]* of .*?<!-- end -->", re.DOTALL)  # of a page, by a tool
FORMS = {
    "flip": "cause drift_onset flip_position gap_at_onset margin_baseline margin_candidate"
    " token_baseline token_candidate",
    "case score": "case repeat score reason",
    "verdict": "verdict gates reasons next warnings difference",
}
GENERIC = {"baseline", "candidate", "slug", "title"}  # fields by which no two classes are alike
WITHOUT_CONTRACTS = "evalboard/importers/"  # may not import pydantic
MIN_FIELDS, ALIKE = 3, 0.85  # two classes are alike where the smaller has so many fields and shares so much of them
OFTEN = 8  # more modules of one name say little
# The nouns that a subject still has on some floor. One that nothing is called by any more fails the check.
OTHER_NOUNS = {
    "compare": {"cause", "comparability", "pair"},
    "endpoint": {"catalogue"},
    "lab": {"bisect"},
    "run": {"shard"},
}
DOCUMENTED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
READ = (*DOCUMENTED, ast.Module, ast.Import, ast.ImportFrom, ast.Assign, ast.Tuple, ast.List, ast.Set, ast.Dict)


@dataclass
class Source:
    """One file of Python. n_code: lines without blanks, comments, docstrings, imports and `__all__`."""

    path: str
    n_lines: int = 0
    n_code: int = 0
    classes: list[tuple[str, set[str]]] = field(default_factory=list)  # annotated fields; none within a class
    forms: list[tuple[str, set[str]]] = field(default_factory=list)  # all fields of classes; texts in tuples, dicts …
    docstrings: list[str] = field(default_factory=list)  # first lines, of classes and functions


def read_sources(root: Path) -> list[Source]:
    """Return the measurements of each Python file, except migrations."""
    return [_read(Source(str(path.relative_to(root))), path.read_text()) for path in _files(root, MEASURED, ".py")]


def _files(root: Path, places: Iterable[str], *endings: str) -> list[Path]:
    paths = [path for place in places for path in [root / place, *(root / place).rglob("*")] if path.suffix in endings]
    return [path for path in sorted(paths) if "migrations" not in path.parts and path.exists()]


def _read(source: Source, text: str) -> Source:
    left_out, nested = list[ast.stmt](), set[ast.AST]()
    for node in (each for each in ast.walk(ast.parse(text)) if isinstance(each, READ)):
        if isinstance(node, (*DOCUMENTED, ast.Module)) and (words := ast.get_docstring(node)):
            left_out.append(node.body[0])
            source.docstrings += [words.splitlines()[0]] if isinstance(node, DOCUMENTED) else []
        match node:
            case ast.Import() | ast.ImportFrom() | ast.Assign(targets=[ast.Name(id="__all__")]):
                left_out.append(node)
            case ast.ClassDef(name=name, body=body):
                nested.update(each for each in body if isinstance(each, ast.ClassDef))
                annotated = _names(each.target for each in body if isinstance(each, ast.AnnAssign))
                assigned = _names(target for each in body if isinstance(each, ast.Assign) for target in each.targets)
                source.classes += [] if node in nested else [(name, annotated)]
                source.forms.append((name, annotated | assigned))
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.Dict(keys=parts):
                source.forms.append((f"line {node.lineno}", _names(parts, "value")))
    lines = text.splitlines()
    code = {n for n, line in enumerate(lines, 1) if line.strip() and not line.lstrip().startswith("#")}
    code -= {n for node in left_out for n in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    source.n_lines, source.n_code = len(lines), len(code)
    return source


def _names(nodes: Iterable[ast.AST | None], attribute: str = "id") -> set[str]:
    """Return the names of the variables among some nodes. attribute: "value" for texts."""
    return {name for node in nodes if isinstance(name := getattr(node, attribute, None), str)}


def list_twins(sources: list[Source]) -> list[str]:
    """Return the pairs of classes with alike fields: a contract, and a class of the core or of `runs`."""
    able = [each for each in sources if not each.path.startswith(WITHOUT_CONTRACTS)]
    classes = [(f"{each.path} {name}", has - GENERIC) for each in able for name, has in each.classes]
    known = [each for each in classes if len(each[1]) >= MIN_FIELDS]
    pairs = product(*([each for each in known if each[0].startswith(at)] for at in (CONTRACT, (CORE, "runs/"))))
    return [f"{a} = {b}" for (a, one), (b, two) in pairs if len(one & two) >= ALIKE * min(len(one), len(two))]


def list_forms(sources: list[Source], fields: set[str]) -> list[str]:
    """Return classes, tuples, lists, sets and dicts with at least half (and three) of some fields."""
    least = max(len(fields) / 2, MIN_FIELDS)
    return [f"{each.path} {form}" for each in sources for form, has in each.forms if len(has & fields) >= least]


def list_files(root: Path, word: str, *places: str) -> list[str]:
    """Return the files that contain a word outside generated parts."""
    has = re.compile(rf"\b{word}\b")
    paths = (path for path in _files(root, places, ".py", ".html", ".js", ".md") if path.name != "sentences.md")
    return [str(path.relative_to(root)) for path in paths if has.search(GENERATED.sub("", path.read_text()))]


def find_shared_names(sources: list[Source]) -> dict[str, list[str]]:
    """Return the files of each class name that several classes have.

    Left out are Django's `Command` and what teams import.
    """
    files = defaultdict(list)
    for each in sources:
        is_ours = each.path.startswith(PRODUCT) and "/commands/" not in each.path and each.path != FOR_TEAMS
        for name, _ in each.classes if is_ours else ():
            files[name].append(each.path)
    return {name: paths for name, paths in sorted(files.items()) if len(paths) > 1}


def list_arrows_up(graph: grimp.ImportGraph, layers: list[str]) -> list[str]:
    """Return the parts of `runs` that import a higher one. layers: from the contract, highest first."""
    depth = {f"runs.{name.strip()}": place for place, layer in enumerate(layers) for name in layer.split("|")}
    imports = [(a, b) for a in graph.find_descendants("runs") for b in graph.find_modules_directly_imported_by(a)]
    parts = {tuple(".".join(name.split(".")[:2]) for name in pair) for pair in imports}
    return sorted(f"{a} -> {b}" for a, b in parts if {a, b} <= depth.keys() and depth[a] > depth[b])


def list_circles(graph: grimp.ImportGraph, package: str) -> list[str]:
    """Return the groups of modules in a package that import each other, directly or not."""
    inside = {name for name in graph.modules if f"{name}.".startswith(f"{package}.")}
    above = {name: graph.find_upstream_modules(name) & inside for name in inside}
    groups = {frozenset(other for other in above[name] if name in above[other]) | {name} for name in inside}
    return sorted(" <-> ".join(sorted(group)) for group in groups if len(group) > 1)


def draw_map(root: Path) -> tuple[str, list[str]]:
    """Return the map of subjects as Markdown, and the nouns that no module has.

    Subjects are listed if they are on three floors or more, and a folder on one of them.
    """
    subjects = {noun: subject for subject, nouns in OTHER_NOUNS.items() for noun in nouns}
    cells: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    unused = set(subjects)
    for floor, path in ((each, path) for each in FLOORS for path in sorted((root / each).glob("[!_]*"))):
        if path.suffix == ".py" or (path / "__init__.py").exists():
            nouns = {re.sub("(?<!s)s$", "", word) for word in (path.stem.split("_")[0], path.stem.split("_")[-1])}
            unused -= nouns
            for subject in {subjects.get(noun, noun) for noun in nouns}:
                cells[subject][floor].append(f"[{path.stem}](../{floor}/{path.name}{'/' if path.is_dir() else ''})")
    rows = [["subject", *(floor.split("/")[-1] for floor in FLOORS)], ["---"] * (len(FLOORS) + 1)]
    for subject, of in sorted(cells.items()):
        rows += [[subject, *(", ".join(of[floor]) for floor in FLOORS)]] if len(of) > 2 and "/)" in str(of) else []
    return "".join(f"| {' | '.join(row)} |\n" for row in rows), sorted(unused)


def find_problems(root: Path, sources: list[Source], *, write: bool = False) -> list[str]:
    """Return what fails. write: mend the map."""
    limits = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["evalboard"]["house"]
    n_code, allowed = sum(each.n_code for each in sources), f"{limits['code_lines']:,} code lines"
    problems = [] if n_code <= limits["code_lines"] else [f"{n_code:,}, where pyproject.toml allows {allowed}"]
    if not any(allowed in page.read_text() for page in root.glob(f"docs/decisions/{limits['decision']:04d}-*.md")):
        problems.append(f"decision {limits['decision']} does not say why there may be {allowed}")
    for name, paths in find_shared_names(sources).items():
        problems.append(f"{len(paths)} classes are called {name}, rename the new one: {', '.join(paths)}")
    page, (table, unused) = root / "docs/architecture.md", draw_map(root)
    problems += [f"nothing is called {noun!r}: strike it from OTHER_NOUNS" for noun in unused]
    between = re.compile(r"(?<=<!-- map of subjects -->\n).*?(?=<!-- end -->)", re.DOTALL)
    if write:
        page.write_text(between.sub(lambda _: table, page.read_text()))
    if table not in page.read_text():
        problems.append("the map in docs/architecture.md is out of date; run tools/house.py --write")
    return problems


def measure(root: Path, sources: list[Source]) -> list[tuple[str, str, list[str] | int]]:
    """Return the rows of the table: (measure, goal, what was counted)."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each.get("containers") == ["runs"])
    graph = grimp.build_graph(*PRODUCT, cache_dir=None)
    modules = Counter(Path(each.path).name for each in sources if not each.path.endswith("__init__.py"))
    shared = [f"{name}: {', '.join(paths)}" for name, paths in find_shared_names(sources).items()]
    dialect = [f"{each.path}: {line}" for each in sources for line in each.docstrings if is_dialect(line)]
    return [
        ("code lines without blanks, comments, docstrings, imports", "≤ 54,000", sum(each.n_code for each in sources)),
        ("all lines", "≤ 87,000", sum(each.n_lines for each in sources)),
        ("modules", "≤ 690", len(sources)),
        ("pairs of alike classes, one a contract, one in core or runs", "≤ 3", list_twins(sources)),
        (f"files that carry `{FLIP_FIELD}`", "≤ 6", list_files(root, FLIP_FIELD, *PRODUCT)),
        *((f"forms of a {form}", "≤ 6", list_forms(sources, set(has.split()))) for form, has in FORMS.items()),
        ("files to add a warning", "≤ 3", list_files(root, WARNING, *PRODUCT, "docs", "tests/core/golden")),
        ("class names of several classes", "0", shared),
        (f"names of more than {OFTEN} modules", "", [f"{name} ×{n}" for name, n in modules.most_common() if n > OFTEN]),
        ("arrows up inside runs", "≤ 3", list_arrows_up(graph, layers)),
        ("import circles in client", "0", list_circles(graph, "evalboard.client")),
        ("pages of docs", "≤ 24", sorted(path.name for path in (root / "docs").glob("*.md"))),
        ("first lines of docstrings in the house dialect", "≤ 40", dialect),
    ]


def list_page_modules() -> list[str]:
    """Return the modules that one view of a run's page enters, which the test that limits them prints."""
    command = [sys.executable, "-m", "pytest", "-n0", "-qsk", "few_modules", "tests/frontend/test_run_statements.py"]
    printed = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return re.findall(r"^enters (\S+)", printed, re.MULTILINE)


def main(options: list[str]) -> int:
    """Print the table and the problems; return the exit status."""
    sources = read_sources(ROOT)
    rows = measure(ROOT, sources)
    if "--page" in options:
        rows.append(("modules entered by one view of a run's page", "≤ 75", list_page_modules()))
    print("| measure | now | goal |\n| --- | --- | --- |")
    for name, goal, counted in rows:
        print(f"| {name} | {counted if isinstance(counted, int) else len(counted):,} | {goal} |")
        if "--list" in options and not isinstance(counted, int):
            print(*(f"    {each}" for each in counted), sep="\n")
    problems = find_problems(ROOT, sources, write="--write" in options)
    print(*problems, sep="\n")
    return min(len(problems), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
