"""Comparing the arguments of one tool call with the accepted values of each."""

from collections.abc import Mapping
from typing import Any

from evalboard.core.scoring.json_value import is_same_scalar
from evalboard.core.scoring.kind import Options, Tools
from evalboard.core.scoring.reasons import shown, shown_any

Schema = Mapping[str, Any]


def tool_parameters(name: str, tools: Tools) -> Schema | None:
    """Return the parameter schema of a case's tool, or None where the case offers no such tool."""
    for tool in tools or []:
        function = tool.get("function") if isinstance(tool, Mapping) else None
        if isinstance(function, Mapping) and function.get("name") == name:
            parameters = function.get("parameters")
            return parameters if isinstance(parameters, Mapping) else None
    return None


def argument_problem(
    given: Mapping[str, Any], wanted: Mapping[str, list[Any]], parameters: Schema | None, options: Options
) -> str | None:
    """Say why arguments are not accepted, or None where they are.

    `wanted` holds the accepted values of each argument; `parameters` is the tool's own schema, whose
    required parameters must be there and beside whose properties there may be none.
    """
    properties = _properties(parameters)
    for name in _required(parameters):
        if name not in given and options["missing_arguments"] == "refuse":
            return f"the required argument {shown(name)} is missing"
    for name in sorted(given):
        if name not in wanted:
            is_refused = options["unknown_arguments"] == "refuse" or (properties and name not in properties)
            if is_refused:
                return f"the argument {shown(name)} is not expected"
        elif not _is_accepted(given[name], wanted[name], properties.get(name), options):
            accepted = [value for value in wanted[name] if not (options["empty_text_is_optional"] and value == "")]
            return f"argument {shown(name)} is {shown(given[name])}, expected {shown_any(accepted)}"
    for name in sorted(wanted.keys() - given.keys()):
        if not _may_be_missing(wanted[name], options):
            return f"the argument {shown(name)} is missing"
    return None


def _may_be_missing(accepted: list[Any], options: Options) -> bool:
    return options["missing_arguments"] == "allow" or (options["empty_text_is_optional"] and "" in accepted)


def _is_accepted(given: Any, accepted: list[Any], schema: Any, options: Options) -> bool:
    return any(_is_same(given, value, schema, options) for value in accepted)


def _is_same(given: Any, wanted: Any, schema: Any, options: Options) -> bool:
    if isinstance(given, Mapping) and isinstance(wanted, Mapping):
        return _is_same_object(given, wanted, schema, options)
    if isinstance(given, list) and isinstance(wanted, list):
        items = schema.get("items") if isinstance(schema, Mapping) else None
        pairs = zip(given, wanted, strict=False)
        return len(given) == len(wanted) and all(_is_same(a, b, items, options) for a, b in pairs)
    if options["numbers"] == "written" and not _is_written_alike(given, wanted, schema):
        return False
    return is_same_scalar(given, wanted, options["normalise"])


def _is_same_object(given: Mapping[str, Any], wanted: Mapping[str, Any], schema: Any, options: Options) -> bool:
    """Compare objects. With nested "accepted", each wanted key has a list of accepted values."""
    properties = _properties(schema)
    if given.keys() - wanted.keys():
        return False
    for key, value in wanted.items():
        accepted = value if options["nested"] == "accepted" and isinstance(value, list) else [value]
        if key not in given:
            if not (options["nested"] == "accepted" and options["empty_text_is_optional"] and "" in accepted):
                return False
        elif not _is_accepted(given[key], accepted, properties.get(key), options):
            return False
    return True


def _is_written_alike(given: Any, wanted: Any, schema: Any) -> bool:
    """Return whether number types match: an integer may be written 5.0 only for type "number"."""
    if not isinstance(given, float) or not isinstance(wanted, int) or isinstance(wanted, bool):
        return True
    return isinstance(schema, Mapping) and schema.get("type") == "number"


def _required(schema: Schema | None) -> list[str]:
    names = schema.get("required") if schema is not None else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _properties(schema: Any) -> Schema:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}
