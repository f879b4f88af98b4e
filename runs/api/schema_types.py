"""Convert Python types to JSON Schema: contracts become named components, other types are inline."""

import types
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Union, get_args, get_origin
from typing import get_type_hints as hints_of

from evalboard.contract.base import Contract

Json = dict[str, Any]
Refer = Callable[[type], Json]

PLAIN: dict[Any, Json] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    datetime: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    Any: {},
}


def schema_of(hint: Any, refer: Refer) -> Json:
    """Return the JSON Schema of a type. Raises TypeError for a type that JSON lacks.

    refer: returns the reference to a contract.
    """
    if hint in PLAIN:
        return dict(PLAIN[hint])
    if isinstance(hint, type) and issubclass(hint, Contract):
        generic = hint.__pydantic_generic_metadata__
        return object_schema(hint, refer) if generic["origin"] else refer(hint)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        words = dict(pair for says in parts[1:] if isinstance(says, tuple) for pair in says)  # the rest is pydantic's
        return schema_of(parts[0], refer) | {name: _plain(value) for name, value in words.items()}
    if origin in (Union, types.UnionType):
        return _any_of([schema_of(part, refer) for part in parts])
    if origin in (list, tuple):
        return {"type": "array", "items": schema_of(parts[0], refer)}
    if origin is dict and parts[0] is str:
        values = schema_of(parts[1], refer)
        return {"type": "object", "additionalProperties": values or True}
    raise TypeError(f"The schema has no word for {hint!r}.")


def object_schema(contract: type[Contract], refer: Refer) -> Json:
    """Return the component of a contract: the fields that go over the wire, and its docstring."""
    shown = [name for name, field in contract.model_fields.items() if not field.exclude]
    hints = hints_of(contract, include_extras=True)
    generic = contract.__pydantic_generic_metadata__
    if generic["origin"]:  # a page of something: the parts stand in its own fields
        hints |= {name: contract.model_fields[name].annotation for name in shown}
    schema: Json = {"type": "object", "properties": {name: schema_of(hints[name], refer) for name in shown}}
    about = (generic["origin"] or contract).__doc__  # its own: that of `Contract` says nothing of it
    must = [name for name in shown if contract.model_fields[name].is_required()]
    return {**schema, "required": must, **({"description": " ".join(about.split())} if about else {})}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _any_of(parts: list[Json]) -> Json:
    """Return the schema of a union. One plain type or null is written briefly, as a list of types."""
    null = PLAIN[type(None)]
    others = [part for part in parts if part != null]
    if len(others) == 1 and len(parts) == 2 and isinstance(others[0].get("type"), str) and "enum" not in others[0]:
        return {**others[0], "type": [others[0]["type"], "null"]}
    return {"anyOf": parts}
