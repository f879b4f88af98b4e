"""The `json` scorer: a response that must be JSON, alone or compared with a target."""

from collections.abc import Mapping
from typing import Any

from evalboard.core.document import is_too_deep
from evalboard.core.scoring.json_schema import read_schema, schema_problem
from evalboard.core.scoring.kind import Kind, Option, Options, Score, Tools, failed, one_of, passed
from evalboard.core.scoring.normalise import VERBATIM, normalise, normalise_option
from evalboard.core.scoring.reasons import shown
from evalboard.core.scoring.response_json import Unreadable, fenced, parse


def difference(found: Any, wanted: Any, options: Options, path: str = "$") -> str | None:
    """Say in words where a JSON value first leaves the wanted one, or None where it does not.

    Numbers are compared by value (1 equals 1.0), true is not 1. With mode "subset" an object may
    hold more keys than the wanted one, at every level; lists keep their length and order.
    """
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return _object_difference(found, wanted, options, path)
    if isinstance(wanted, list) and isinstance(found, list):
        return _list_difference(found, wanted, options, path)
    if is_same_scalar(found, wanted, options["normalise"]):
        return None
    return f"{path} is {shown(found)}, expected {shown(wanted)}"


def is_same_scalar(found: Any, wanted: Any, how: Mapping[str, str]) -> bool:
    """Tell whether two JSON values that are not both lists or both objects are the same."""
    if isinstance(found, str) and isinstance(wanted, str):
        return found == wanted or normalise(found, how) == normalise(wanted, how)
    if isinstance(found, bool) or isinstance(wanted, bool) or found is None or wanted is None:
        return found is wanted
    are_numbers = isinstance(found, int | float) and isinstance(wanted, int | float)
    return are_numbers and bool(found == wanted)


def _object_difference(found: Mapping[str, Any], wanted: Mapping[str, Any], options: Options, path: str) -> str | None:
    for key in sorted(wanted):
        if key not in found:
            return f"{path} lacks the key {shown(key)}"
        if problem := difference(found[key], wanted[key], options, f"{path}.{key}"):
            return problem
    extra = sorted(found.keys() - wanted.keys())
    if extra and options["mode"] != "subset":
        return f"{path} has the unexpected key {shown(extra[0])}"
    return None


def _list_difference(found: list[Any], wanted: list[Any], options: Options, path: str) -> str | None:
    for index, (left, right) in enumerate(zip(found, wanted, strict=False)):
        if problem := difference(left, right, options, f"{path}[{index}]"):
            return problem
    if len(found) != len(wanted):
        return f"{path} has {len(found)} items, expected {len(wanted)}"
    return None


def _score(options: Options, text: str, targets: list[Any], _tools: Tools) -> Score:
    try:
        found = parse(fenced(text) if options["extract"] == "fence" else text)
    except Unreadable as unreadable:
        return failed(str(unreadable))
    if options["schema"] is not None and (problem := schema_problem(options["schema"], found)):
        return failed(f"{problem}.")
    if options["mode"] == "parse":
        fits = " that fits the schema" if options["schema"] is not None else ""
        return passed(f"The answer is JSON{fits}: {shown(found)}.")
    first_problem = None
    for target in targets:
        problem = difference(found, target, options)
        if problem is None:
            return passed(f"{shown(found)} {'holds' if options['mode'] == 'subset' else 'equals'} an accepted value.")
        first_problem = first_problem or problem
    others = f" ({len(targets) - 1} other accepted values differ too)" if len(targets) > 1 else ""
    return failed(f"{first_problem}{others}.")


def _target_problem(_options: Options, target: Any) -> str | None:
    return "is nested too deep" if is_too_deep(target) else None


JSON = Kind(
    name="json",
    version=1,
    options={
        "mode": Option("equal", one_of("parse", "subset", "equal")),
        "schema": Option(None, read_schema),
        "extract": Option("none", one_of("none", "fence")),
        "normalise": normalise_option(**VERBATIM),
    },
    target_problem=_target_problem,
    score=_score,
    needs_target=lambda options: options["mode"] != "parse",
)
