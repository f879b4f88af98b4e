"""Check that the field tables in the REST pages match the contracts; --write updates them.

So are the tables of warnings, between `<!-- warnings of runs -->` in docs/api-reference.md or
`<!-- warnings of releases -->` in docs/releases.md and the same end.

A place in the page names its contract, by its module in evalboard/contract and its class:

    <!-- fields of probe.Probe -->
    <!-- end -->

Between the two are the contract's docstring, its shape, and the meaning of its fields: from `says(description=…)`, or
from the docstring of a nested contract.
"""

import importlib
import re
import sys
import types
from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from evalboard.contract.base import Contract, Instant, Range  # noqa: E402 - found by the path above
from evalboard.wording.release_warnings import SEVERITIES  # noqa: E402
from evalboard.wording.release_warnings import WARNINGS as RELEASES  # noqa: E402
from evalboard.wording.run_warnings import WARNINGS as RUNS  # noqa: E402

PAGES = tuple(ROOT / "docs" / name for name in ("api-reference.md", "api.md", "releases.md"))
PLACE = re.compile(r"(<!-- fields of (\w+)\.(\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
WARNINGS_PLACE = re.compile(r"(<!-- warnings of (runs|releases) -->\n).*?(<!-- end -->)", re.DOTALL)
MAX_CHARS = 120
MAX_FIELD_CHARS = 90  # of a field on one line
BETWEEN = r"(?<=,)(?=[\"{])"  # where a field that is longer may be broken
MAX_DEPTH = 2  # contracts within contracts that a shape shows
FOLDED = ("RunRow",)  # the names of `Run`, fewer of them
Chain = tuple[type[Contract], ...]
EVERYWHERE = {text for kind in (Instant, Range) for key, text in get_args(kind)[-1] if key == "description"}


def describe_fields(contract: type[Contract]) -> str:
    """Return the text between the two markers of a contract."""
    about = [_linked(contract.__doc__), ""] if contract.__doc__ else []
    paths: dict[str, list[str]] = defaultdict(list)
    for path, text in _meanings(contract):
        paths[text].append(f"`{path}`")
    rows = [f"| {', '.join(named)} | {_linked(text)} |" for text, named in paths.items()]
    table = ["", "| field | means |", "| --- | --- |", *rows] if rows else []
    return "\n".join([*about, "```", *_broken(_shape(contract)), "```", *table, ""])


def describe_warnings(whose: str) -> str:
    """Return the table of the warnings of runs or releases: what their rows say."""
    rows = {
        "runs": [(row.code, row.severity, row.must_act, row.means) for row in RUNS],
        "releases": [(row.code, SEVERITIES[row.about], row.must_act, row.means) for row in RELEASES.values()],
    }
    cells = ((f"`{code}`", severity, act or "–", _linked(means)) for code, severity, act, means in rows[whose])
    head = ("warning", "severity", "who must act", "means")
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ["---"] * len(head), *cells))


def _linked(text: str) -> str:
    """Return contract text as one line of Markdown, with links to docs pages relative to the page."""
    linked = re.sub(r"(?<!\]\()docs/([\w-]+\.md)(#[\w-]+)?", r"[\1](\1\2)", " ".join(text.split()))
    return linked.replace("](docs/", "](")


def _fields(contract: type[Contract]) -> dict[str, Any]:
    """Return the types of the fields that go over the wire, by name."""
    hints = get_type_hints(contract, include_extras=True)
    return {name: hints[name] for name, field in contract.model_fields.items() if not field.exclude}


def _shape(*chain: type[Contract]) -> str:
    """Return the fields of the last contract, which is nested in the others."""
    contract = chain[-1]
    values = ((name, _value(hint, chain)) for name, hint in _fields(contract).items())
    parts = []
    for value, alike in groupby(values, key=lambda pair: pair[1]):
        names = ",".join(f'"{name}"{"" if contract.model_fields[name].is_required() else "?"}' for name, _ in alike)
        parts.append(f"{names}:{value}" if value else names)
    return "{" + ",".join(parts) + "}"


def _value(hint: Any, chain: Chain) -> str:
    """Return a value's notation; "" for a plain one."""
    kind, words = _bare(hint)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        drawn = [_value(part, chain) for part in parts if part is not type(None)]
        ends = ["null"] if type(None) in parts else []
        return "|".join([*dict.fromkeys(drawn), *ends]) if all(drawn) else ""
    if "enum" in words:
        return f'"{"|".join(words["enum"])}"'
    if kind is bool:
        return "true|false"
    if isinstance(kind, type) and issubclass(kind, Contract):
        return _shape(*chain, kind) if _is_unfolded(kind, chain) else "{…}"
    if origin is dict:
        return "{…}"
    if origin is tuple:
        return "[low,high]" if "maxItems" in words else f"[{_value(parts[0], chain) or '…'}]"
    return ""


def _is_unfolded(contract: type[Contract], chain: Chain) -> bool:
    """Tell whether a contract's fields are shown in this chain: only at its shallowest place."""
    hints = (hint for outer in chain[:-1] for hint in _fields(outer).values())
    elsewhere = {inner for hint in hints for inner in _contracts_in(hint)}
    return len(chain) <= MAX_DEPTH and contract not in elsewhere and contract.__name__ not in FOLDED


def _meanings(*chain: type[Contract], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and description of each described field of the last contract."""
    for name, hint in _fields(chain[-1]).items():
        inner = next(_contracts_in(hint), None)
        own = _bare(hint)[1].get("description") or (inner.__doc__ if inner else None)
        if own and own not in EVERYWHERE:
            yield before + name, own
        if inner is not None and _is_unfolded(inner, chain):
            yield from _meanings(*chain, inner, before=f"{before}{name}.")


def _contracts_in(hint: Any) -> Iterator[type[Contract]]:
    if isinstance(hint, type) and issubclass(hint, Contract):
        yield hint
    for part in get_args(hint):
        yield from _contracts_in(part)


def _bare(hint: Any) -> tuple[Any, dict[str, Any]]:
    """Return a type without its notes, and the schema's words among these."""
    if get_origin(hint) is not Annotated:
        return hint, {}
    kind, *notes = get_args(hint)
    return kind, {name: value for note in notes if isinstance(note, tuple) for name, value in note}


def _broken(shape: str) -> Iterator[str]:
    """Yield the lines of a shape, broken between its own fields, and within a field that is long."""
    line = ""
    for part in _parts(shape):
        for piece in [part] if len(part) <= MAX_FIELD_CHARS else re.split(BETWEEN, part):
            if len(line) + len(piece) > MAX_CHARS:
                yield line
                line = " "
            line += piece
    yield line


def _parts(shape: str) -> Iterator[str]:
    """Yield the outermost fields of a shape, each with the comma after it."""
    depth, start = 0, 0
    for place, char in enumerate(shape):
        depth += (char in "{[") - (char in "]}")
        if char == "," and depth == 1:
            yield shape[start : place + 1]
            start = place + 1
    yield shape[start:]


def main() -> int:
    """Compare the pages with contracts and warnings, or write them; return the exit status."""

    def fill(place: re.Match[str]) -> str:
        contract = getattr(importlib.import_module(f"evalboard.contract.{place[2]}"), place[3])
        return f"{place[1]}{describe_fields(contract)}{place[4]}"

    status = 0
    for page in PAGES:
        stored = page.read_text()
        now = PLACE.sub(fill, stored)
        now = WARNINGS_PLACE.sub(lambda place: f"{place[1]}{describe_warnings(place[2])}{place[3]}", now)
        if "--write" in sys.argv[1:]:
            page.write_text(now)
        elif now != stored:
            print(f"docs/{page.name} is not what contracts and warnings say; run `python tools/api_fields.py --write`.")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
