"""Foreign files of cases: a mapping, itself a JSON document, turns their rows into a suite document.

docs/suites.md describes it. What comes out is checked by `parse_suite` like any other suite.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.core.document import Problems, at, storage_problems
from evalboard.core.errors import InvalidInput
from evalboard.core.scoring import shown
from evalboard.core.suite.suite import CASE_FIELDS

ALL_OTHERS = "*"  # in `ignore`: every field that the mapping does not read

_SUITE_FIELDS = ("title", "max_tokens", "stop", "scorer")
_SOURCE_FIELDS = {"field": {"field", "as", "otherwise"}, "constant": {"constant"}, "by": {"by", "values", "otherwise"}}


class Unmapped(Exception):
    """A row lacks what the mapping reads from it; the message says what."""


@dataclass(frozen=True, slots=True)
class SuiteMapping:
    """A checked mapping: the suite's own fields, the source of each case field, the row fields left out."""

    suite: dict[str, Any]
    case: dict[str, Any]
    ignored: frozenset[str]


def parse_mapping(document: Any) -> SuiteMapping:
    """Check and return a mapping. Raises InvalidInput whose `fields` are the problems by path."""
    problems = Problems()
    if not isinstance(document, Mapping):
        raise InvalidInput("A mapping must be a JSON object.", fields={"": "must be an object"})
    for place, text in storage_problems(dict(document), ""):
        problems.add(place, text)
    problems.raise_if_any("The mapping is not valid")
    known = (*_SUITE_FIELDS, "case", "ignore")
    for name in document.keys() - set(known):
        problems.add(name, f"is unknown; known are {', '.join(known)}")
    case = document.get("case")
    if not isinstance(case, Mapping) or "id" not in case:
        problems.add("case", "must be an object that says at least where the id comes from")
        case = {}
    for name, source in case.items():
        if name in CASE_FIELDS:
            _check_source(source, at("case", name), problems)
        else:
            problems.add(at("case", name), f"is no field of a case; known are {', '.join(CASE_FIELDS)}")
    ignored = document.get("ignore", [])
    if not isinstance(ignored, list) or not all(isinstance(name, str) for name in ignored):
        problems.add("ignore", "must be a list of field names")
        ignored = []
    problems.raise_if_any("The mapping is not valid")
    return SuiteMapping(
        suite={name: document[name] for name in _SUITE_FIELDS if name in document},
        case=dict(case),
        ignored=frozenset(ignored),
    )


def map_rows(
    rows: Iterable[Mapping[str, Any]], mapping: SuiteMapping, *, slug: str, lines: Sequence[int] = ()
) -> dict[str, Any]:
    """Return the suite document that foreign rows describe.

    lines: of each row in its text, which errors then name. Raises InvalidInput naming rows (`rows[3].expected`) that
    lack a field the mapping reads, or hold one that it neither reads nor ignores: nothing of a foreign file is lost
    unsaid.
    """
    problems = Problems()
    read = _fields_read(mapping.case)
    cases = []
    for index, row in enumerate(rows):
        if problems.is_full:
            break
        place = f"line {lines[index]}" if lines else f"rows[{index}]"
        if ALL_OTHERS not in mapping.ignored:
            for name in row.keys() - read - mapping.ignored:
                problems.add(f"{place}.{name}", "is neither read nor ignored by the mapping")
        cases.append(_mapped_case(row, place, mapping, problems))
    problems.raise_if_any("The rows do not fit the mapping")
    return {"title": slug, **mapping.suite, "slug": slug, "cases": cases}


def _mapped_case(row: Mapping[str, Any], place: str, mapping: SuiteMapping, problems: Problems) -> dict[str, Any]:
    case: dict[str, Any] = {}
    for name, source in mapping.case.items():
        try:
            case[name] = _value(source, row)
        except Unmapped as problem:
            problems.add(place, f"gives no {name}: {problem}")
    return {name: value for name, value in case.items() if value is not None}


def _value(source: Any, row: Mapping[str, Any]) -> Any:
    """Return the value of a source for a row; None omits the case's field."""
    if isinstance(source, list):
        return [_value(item, row) for item in source]
    if "constant" in source:
        return source["constant"]
    if "by" in source:
        return _value_by(source, row)
    try:
        value = _at_path(row, source["field"])
    except Unmapped:
        if "otherwise" in source:
            return source["otherwise"]
        raise
    how = source.get("as", "as_is")
    name = how if isinstance(how, str) else _value_by(how, row)
    return CONVERSIONS[name](value)


def _value_by(source: Mapping[str, Any], row: Mapping[str, Any]) -> Any:
    key = _at_path(row, source["by"])
    if isinstance(key, str) and key in source["values"]:
        return source["values"][key]
    if "otherwise" in source:
        return source["otherwise"]
    raise Unmapped(f"the mapping has no entry for {source['by']} = {shown(key)}")


def _at_path(row: Any, path: str) -> Any:
    """Return the value at a dotted path; parts that are whole numbers index lists."""
    value = row
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise Unmapped(f"there is no {path}")
    return value


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Unmapped(f"{shown(value)} cannot be read as text")
    return str(value)


def _as_number(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_number(item) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        number = float(value.strip().replace(",", "")) if isinstance(value, str) else None
    except ValueError:
        number = None
    if number is None:
        raise Unmapped(f"{shown(value)} cannot be read as a number")
    return int(number) if number.is_integer() else number


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _as_calls(value: Any) -> Any:
    """Return a target that requires all of a list of calls."""
    return {"calls": _as_list(value)}


def _as_one(value: Any) -> Any:
    """Keep a list as one target, where a bare list would mean any of its items."""
    return [value]


CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "as_is": lambda value: value,
    "text": _as_text,
    "number": _as_number,
    "list": _as_list,
    "calls": _as_calls,
    "one": _as_one,
}


def _fields_read(case: Mapping[str, Any]) -> set[str]:
    """Return the top-level row fields that any source reads."""
    read: set[str] = set()
    pending = list(case.values())
    while pending:
        source = pending.pop()
        if isinstance(source, list):
            pending.extend(source)
            continue
        for key in ("field", "by"):
            if key in source:
                read.add(source[key].split(".")[0])
        if isinstance(source.get("as"), Mapping):
            pending.append(source["as"])
    return read


def _check_source(source: Any, path: str, problems: Problems) -> None:
    if isinstance(source, list):
        for index, item in enumerate(source):
            _check_source(item, f"{path}[{index}]", problems)
        return
    kinds = [kind for kind in _SOURCE_FIELDS if isinstance(source, Mapping) and kind in source]
    if len(kinds) != 1:
        problems.add(path, "must hold exactly one of field, constant and by, or be a list of such sources")
        return
    kind = kinds[0]
    for name in source.keys() - _SOURCE_FIELDS[kind]:
        problems.add(at(path, name), f"does not go with {kind}")
    if kind != "constant" and not isinstance(source[kind], str):
        problems.add(at(path, kind), "must be the name of a row's field")
    if kind == "by" and not isinstance(source.get("values"), Mapping):
        problems.add(at(path, "values"), "must be an object from a field's value to what it gives")
    if "as" in source:
        _check_conversion(source["as"], at(path, "as"), problems)


def _check_conversion(how: Any, path: str, problems: Problems) -> None:
    if isinstance(how, Mapping) and "by" not in how:
        problems.add(path, "must be the name of a conversion, or choose one by a field")
        return
    if isinstance(how, Mapping):
        _check_source(how, path, problems)
        names = list(how["values"].values()) if isinstance(how.get("values"), Mapping) else []
        names += [how["otherwise"]] if "otherwise" in how else []
    else:
        names = [how]
    for name in names:
        if not isinstance(name, str) or name not in CONVERSIONS:
            problems.add(path, f"must be one of {', '.join(CONVERSIONS)}")
