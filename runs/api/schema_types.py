"""Python types as JSON Schema: a TypedDict becomes a component of its name, and everything else stands in place."""

import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, NotRequired, Required, TypeVar, Union, get_args, get_origin, is_typeddict
from typing import get_type_hints as hints_of

Json = dict[str, Any]
Refer = Callable[[type], Json]

PLAIN: dict[Any, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    Any: {},
}


def says(**words: Any) -> tuple[tuple[str, Any], ...]:
    """More that the schema says of a type, as in `Annotated[int, says(minimum=0)]`; hashable, as types must be."""
    return tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in words.items())


def schema_of(hint: Any, refer: Refer) -> Json:
    """The schema of a type; `refer` answers a TypedDict with a reference. Raises TypeError for what JSON has not."""
    if hint in PLAIN:
        return dict(PLAIN[hint])
    if is_typeddict(hint):
        return refer(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if is_typeddict(origin):  # a generic one with its parts: a page of something
        return _object(origin, refer, dict(zip(origin.__parameters__, parts, strict=True)))
    if origin is Annotated:
        return schema_of(parts[0], refer) | {name: _plain(value) for words in parts[1:] for name, value in words}
    if origin in (NotRequired, Required):
        return schema_of(parts[0], refer)
    if origin is Literal:
        return {"type": "string", "enum": list(parts)}
    if origin in (Union, types.UnionType):
        return _any_of([schema_of(part, refer) for part in parts])
    if origin is list:
        return {"type": "array", "items": schema_of(parts[0], refer)}
    if origin is dict and parts[0] is str:
        values = schema_of(parts[1], refer)
        return {"type": "object", "additionalProperties": values or True}
    raise TypeError(f"The schema has no word for {hint!r}.")


def object_schema(found: type, refer: Refer) -> Json:
    """The component of a TypedDict: its fields, which of them are always there, and its docstring."""
    return _object(found, refer, {})


def _object(found: Any, refer: Refer, given: dict[TypeVar, Any]) -> Json:
    hints = hints_of(found, include_extras=True)
    fields = {name: schema_of(_filled(hint, given), refer) for name, hint in hints.items()}
    must = [name for name in hints if name in found.__required_keys__]
    about = inspect.getdoc(found) if found.__doc__ else ""
    schema: Json = {"type": "object", "properties": fields, "required": must}
    return {**schema, "description": " ".join(about.split())} if about else schema


def _filled(hint: Any, given: dict[TypeVar, Any]) -> Any:
    """A hint with its type variables replaced."""
    for variable, part in given.items():
        if hint is variable:
            return part
        if variable in getattr(hint, "__parameters__", ()):
            return hint[part]
    return hint


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _any_of(parts: list[Json]) -> Json:
    """A union. Null beside one plain type is said shortly, as people write it."""
    null = PLAIN[type(None)]
    others = [part for part in parts if part != null]
    if len(others) == 1 and len(parts) == 2 and isinstance(others[0].get("type"), str) and "enum" not in others[0]:
        return {**others[0], "type": [others[0]["type"], "null"]}
    return {"anyOf": parts}
