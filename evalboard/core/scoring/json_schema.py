"""JSON schemas in scorers: the part of draft 2020-12 that runs in bounded time and asks no other host."""

import functools
import json
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from evalboard.core.digest import canonical_json
from evalboard.core.document import Problems, is_too_deep, storage_problems
from evalboard.core.scoring.reasons import shown
from evalboard.core.scoring.regex import MAX_MATCHED_CHARS, compiled, read_pattern

DRAFT = "https://json-schema.org/draft/2020-12/schema"
MAX_SCHEMA_CHARS = 20_000
MAX_UNFOLDED = 10_000  # schemas that one value may be checked against once all references are unfolded

# Refused: they fetch, rename what references mean, or match with a backtracking engine.
_REFUSED = {"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$id", "$anchor", "$vocabulary", "patternProperties"}
_NAMED_SCHEMAS = {"properties", "$defs", "definitions", "dependentSchemas"}
_LISTED_SCHEMAS = {"allOf", "anyOf", "oneOf", "prefixItems"}
_ONE_SCHEMA = {
    "items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else",
    "unevaluatedItems", "unevaluatedProperties",
}  # fmt: skip


class _Unfit(Exception):
    """A schema that is valid but cannot be used here."""


def read_schema(value: Any, path: str, problems: Problems) -> Any:
    """Read the `schema` option: null, or a schema, returned with its keys in one order."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        problems.add(path, "must be a JSON schema (an object) or null")
        return value
    if is_too_deep(value) or any(True for _ in storage_problems(value, path)):
        problems.add(path, "is nested too deep or holds what cannot be stored")
        return value
    text = canonical_json(value).decode()
    if len(text) > MAX_SCHEMA_CHARS:
        problems.add(path, f"is longer than {MAX_SCHEMA_CHARS} characters")
        return value
    schema = json.loads(text)
    try:
        Draft202012Validator.check_schema(schema)
        _unfolded(schema, schema, {}, ())
    except SchemaError as error:
        problems.add(path, f"is not a valid JSON schema: {error.message[:200]}")
    except _Unfit as error:
        problems.add(path, str(error))
    return schema


def schema_problem(schema: dict[str, Any], value: Any) -> str | None:
    """Return in words where a value first breaks the schema, or None."""
    error = next(_validator(canonical_json(schema)).iter_errors(value), None)
    if error is None:
        return None
    return f"{error.json_path} breaks the schema's {error.validator!r}: {error.message[:160]}"


@functools.lru_cache(maxsize=256)
def _validator(schema: bytes) -> Validator:
    validator: Validator = _BoundedValidator(json.loads(schema))
    return validator


def _unfolded(node: Any, root: Any, known: dict[str, int], open_refs: tuple[str, ...]) -> int:
    """Return how many schemas a check may visit per value; raise _Unfit where the schema is not usable."""
    if not isinstance(node, dict):
        return 1
    for key in _REFUSED & node.keys():
        raise _Unfit(f"uses {key}, which scorers do not support")
    if node.get("$schema", DRAFT) != DRAFT:
        raise _Unfit("names another draft than 2020-12")
    if "pattern" in node:
        _check_pattern(node["pattern"])
    total = 1 + sum(_unfolded(child, root, known, open_refs) for child in _subschemas(node))
    if "$ref" in node:
        total += _referenced(node["$ref"], root, known, open_refs)
    if total > MAX_UNFOLDED:
        raise _Unfit(f"unfolds to more than {MAX_UNFOLDED} schemas")
    return total


def _referenced(ref: str, root: Any, known: dict[str, int], open_refs: tuple[str, ...]) -> int:
    if ref in open_refs:
        raise _Unfit(f"refers to itself through {shown(ref)}")
    if ref not in known:
        known[ref] = _unfolded(_resolved(ref, root), root, known, (*open_refs, ref))
    return known[ref]


def _resolved(ref: str, root: Any) -> Any:
    if ref != "#" and not ref.startswith("#/"):
        raise _Unfit(f"refers to {shown(ref)}; only references inside the schema (#/…) are allowed")
    node = root
    for part in ref[2:].split("/") if ref != "#" else []:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, dict) or name not in node:
            raise _Unfit(f"refers to {shown(ref)}, which is not there")
        node = node[name]
    return node


def _subschemas(node: dict[str, Any]) -> Iterator[Any]:
    for key, value in node.items():
        if key in _ONE_SCHEMA:
            yield value
        elif key in _LISTED_SCHEMAS and isinstance(value, list):
            yield from value
        elif key in _NAMED_SCHEMAS and isinstance(value, dict):
            yield from value.values()


def _check_pattern(pattern: Any) -> None:
    problems = Problems()
    read_pattern(pattern, "its pattern", problems)
    for problem in problems.fields.values():
        raise _Unfit(f"has a pattern that {problem}")


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, str):
        return
    if len(instance) > MAX_MATCHED_CHARS or not compiled(pattern).search(instance):
        yield ValidationError(f"{shown(instance)} does not match {shown(pattern)}")


def _unique_items(_validator: Any, wanted: bool, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if not wanted or not isinstance(instance, list):
        return
    seen = {canonical_json(_by_value(item)) for item in instance}
    if len(seen) < len(instance):
        yield ValidationError(f"{shown(instance)} has items that are equal")


def _by_value(item: Any) -> Any:
    """Return a value in which 1.0 is 1, as JSON schema counts them equal."""
    if isinstance(item, float) and item.is_integer():
        return int(item)
    if isinstance(item, list):
        return [_by_value(child) for child in item]
    return {key: _by_value(child) for key, child in item.items()} if isinstance(item, dict) else item


# The library's own `pattern` uses a backtracking engine, its own `uniqueItems` compares all pairs.
_BoundedValidator: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"pattern": _pattern, "uniqueItems": _unique_items}
)
