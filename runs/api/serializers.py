"""The shape of what is sent; what it means is for the services to check."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from runs.api import query

ID = re.compile(r"[0-9]{1,18}", re.ASCII)  # below 2**63


class Strict(serializers.Serializer[Any]):
    """Refuses fields that it does not know, by name."""

    may_be_left_out = False  # the whole body, says the schema

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(data.keys() - self.fields.keys())):
            known = ", ".join(self.fields)
            raise serializers.ValidationError(dict.fromkeys(unknown, f"Unknown field; known are: {known}."))
        return super().to_internal_value(data)


Body = type[Strict] | Mapping[str, type[Strict]]  # or one for each value of its field `kind`; "" for all others


def read_body(shape: Body, request: Request) -> dict[str, Any]:
    """Return the validated fields of a request body. Raises for invalid fields, and for query parameters."""
    query.read(request, is_paged=False)
    if isinstance(shape, Mapping):
        kind = request.data.get("kind") if isinstance(request.data, Mapping) else None
        shape = shape.get(kind if isinstance(kind, str) else "", shape[""])
    body = shape(data=request.data)
    body.is_valid(raise_exception=True)
    return dict(body.validated_data)


class Text(serializers.CharField):
    """Text as it was sent: not trimmed, and no number made into text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(trim_whitespace=False, **options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    """A whole number; text that looks like one is refused."""

    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class Flag(serializers.BooleanField):
    """True or false; text and numbers that look like one are refused."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Amount(serializers.FloatField):
    """A number; text that looks like one is refused."""

    def to_internal_value(self, data: Any) -> float:
        if not isinstance(data, int | float) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class Object(serializers.Field[Any, Any, Any, Any]):
    """Any JSON object."""

    default_error_messages = {"invalid": "Must be an object."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        return data


class Id(serializers.Field[Any, Any, Any, Any]):
    """An id as the API gives it, a string of digits; a number is taken too."""

    default_error_messages = {"invalid": "Must be an id."}

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, int) and not isinstance(data, bool):
            data = str(data)
        if not isinstance(data, str) or not ID.fullmatch(data):
            self.fail("invalid")
        return int(data)


class IdOrCurrent(Id):
    """A run, or the suite's current baseline."""

    default_error_messages = {"invalid": 'Must be a run\'s id, or "current".'}

    def to_internal_value(self, data: Any) -> Any:
        return data if data == "current" else super().to_internal_value(data)


class Instant(serializers.DateTimeField):
    """An RFC 3339 time. Without an offset it is refused, because the zone would be ambiguous."""

    default_error_messages = {"naive": "Must say its offset from UTC, as in 2026-12-24T18:00:00Z."}

    def enforce_timezone(self, value: datetime) -> datetime:
        if value.tzinfo is None:
            self.fail("naive")
        return super().enforce_timezone(value)


class ModelIn(Strict):
    path = Text(required=False)
    repo = Text(required=False)
    revision = Text(required=False)
    adapter = Text(required=False)


class Nothing(Strict):
    """The body of a call that takes none: empty, or an object without fields."""

    may_be_left_out = True
