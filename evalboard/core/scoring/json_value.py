"""The `json` scorer: checks that a response is JSON, or that it equals a target."""

import re
from collections.abc import Mapping
from typing import Any

from evalboard.core.digest import canonical_json
from evalboard.core.document import Problems, is_too_deep
from evalboard.core.scoring.kind import Option, Options, Score, ScorerKind, Tools, failed, one_of, passed
from evalboard.core.scoring.normalise import VERBATIM, normalise, normalise_option
from evalboard.core.scoring.reasons import shown
from evalboard.core.scoring.response_json import UnreadableJson, fenced, parse_response_json

_PLAIN = re.compile(r"[\w-]+")  # a key that a path names as it is


def difference(actual: Any, wanted: Any, options: Options, path: str = "$") -> str | None:
    """Say in words where a JSON value first leaves the wanted one, or None where it does not.

    Numbers are compared by value (1 equals 1.0), true is not 1. With mode "subset" an object may
    hold more keys than the wanted one, at every level; lists keep their length and order.
    """
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        return _object_difference(actual, wanted, options, path)
    if isinstance(wanted, list) and isinstance(actual, list):
        return _list_difference(actual, wanted, options, path)
    if is_same_scalar(actual, wanted, options["normalise"]):
        return None
    return f"{path} is {shown(actual)}, expected {shown(wanted)}"


def is_same_scalar(actual: Any, wanted: Any, how: Mapping[str, str]) -> bool:
    """Tell whether two JSON values that are not both lists or both objects are the same."""
    if isinstance(actual, str) and isinstance(wanted, str):
        return actual == wanted or normalise(actual, how) == normalise(wanted, how)
    if isinstance(actual, bool) or isinstance(wanted, bool) or actual is None or wanted is None:
        return actual is wanted
    are_numbers = isinstance(actual, int | float) and isinstance(wanted, int | float)
    return are_numbers and bool(actual == wanted)


def one_form(value: Any, how: Mapping[str, str]) -> str:
    """Return the one text of all JSON values that `difference` calls the same under mode "equal"."""
    return canonical_json(_even(value, how)).decode("utf-8", "surrogatepass")


def _even(value: Any, how: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _even(each, how) for key, each in value.items()}
    if isinstance(value, list):
        return [_even(each, how) for each in value]
    if isinstance(value, str):
        return normalise(value, how)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _object_difference(actual: Mapping[str, Any], wanted: Mapping[str, Any], options: Options, path: str) -> str | None:
    for key in sorted(wanted):
        if key not in actual:
            return f"{path} lacks the key {shown(key)}"
        place = f"{path}.{key}" if _PLAIN.fullmatch(key) else f"{path}[{shown(key)}]"
        if problem := difference(actual[key], wanted[key], options, place):
            return problem
    extra = sorted(actual.keys() - wanted.keys())
    if extra and options["mode"] != "subset":
        return f"{path} has the unexpected key {shown(extra[0])}"
    return None


def _list_difference(actual: list[Any], wanted: list[Any], options: Options, path: str) -> str | None:
    for index, (left, right) in enumerate(zip(actual, wanted, strict=False)):
        if problem := difference(left, right, options, f"{path}[{index}]"):
            return problem
    if len(actual) != len(wanted):
        return f"{path} has {len(actual)} items, expected {len(wanted)}"
    return None


def _score(options: Options, text: str, targets: list[Any], _tools: Tools) -> Score:
    try:
        value = parse_response_json(fenced(text) if options["extract"] == "fence" else text)
    except UnreadableJson as unreadable:
        return failed(str(unreadable))
    answer = one_form(value, options["normalise"])
    if options["schema"] is not None and (problem := _schema_problem(options["schema"], value)):
        return failed(f"{problem}.", answer)
    if options["mode"] == "parse":
        fits = " that fits the schema" if options["schema"] is not None else ""
        return passed(f"The answer is JSON{fits}: {shown(value)}.", answer)
    first_problem = None
    for target in targets:
        problem = difference(value, target, options)
        if problem is None:
            how = "holds" if options["mode"] == "subset" else "equals"
            return passed(f"{shown(value)} {how} an accepted value.", answer)
        first_problem = first_problem or problem
    others = f" ({len(targets) - 1} other accepted values differ too)" if len(targets) > 1 else ""
    return failed(f"{first_problem}{others}.", answer)


# Few scorers have a schema, and the library that reads one takes as long to load as all scorers together.


def _read_schema(value: Any, path: str, problems: Problems) -> Any:
    if value is None:
        return None
    from evalboard.core.scoring.json_schema import read_schema

    return read_schema(value, path, problems)


def _schema_problem(schema: dict[str, Any], value: Any) -> str | None:
    from evalboard.core.scoring.json_schema import schema_problem

    return schema_problem(schema, value)


def _target_problem(_options: Options, target: Any) -> str | None:
    return "is nested too deep" if is_too_deep(target) else None


JSON = ScorerKind(
    name="json",
    version=1,
    options={
        "mode": Option("equal", one_of("parse", "subset", "equal")),
        "schema": Option(None, _read_schema),
        "extract": Option("none", one_of("none", "fence")),
        "normalise": normalise_option(**VERBATIM),
    },
    target_problem=_target_problem,
    score=_score,
    needs_target=lambda options: options["mode"] != "parse",
)
