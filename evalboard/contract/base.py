"""The base of every contract, and the scalars that several share: ids, instants, points, addresses.

The schema's words for a type stand beside it as `says(...)`; `runs.api.schema_types` reads them.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, SerializationInfo


def says(**words: Any) -> tuple[tuple[str, Any], ...]:
    """Add schema keywords to a type, as in `Annotated[int, says(minimum=0)]`.

    The result is hashable, as metadata of types must be.
    """
    return tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in words.items())


class Contract(BaseModel):
    """A frozen value with a fixed set of fields. A number is finite; null means unknown or none.

    A subclass is a named schema, and its docstring is what the schema says of it. Fields of a subclass that are
    `page_only` are for pages: REST does not answer them. Those that are `optional` need not be there.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    def to_json(self, *, origin: str = "") -> dict[str, Any]:
        """Return the fields as JSON values. `origin`: "https://host", put before the addresses of pages."""
        return self.model_dump(mode="json", context={"origin": origin})

    @classmethod
    def from_record(cls, record: object, **others: Any) -> Self:
        """Return the contract with a record's attributes of the same names; `others` adds or overrides.

        A field that neither has keeps its default. Raises pydantic.ValidationError for a value of the wrong type.
        """
        own = {name: getattr(record, name) for name in cls.model_fields if name not in others and hasattr(record, name)}
        return cls(**own, **others)

    def to_stored(self) -> dict[str, Any]:
        """Return every field, those for pages as well, as the document that `from_stored` reads."""
        return {name: _store(value) for name, value in self}

    @classmethod
    def from_stored(cls, document: Mapping[str, Any], **others: Any) -> Self:
        """Return the contract from the fields of a stored JSON document; `others` adds or overrides.

        Fields that the document lacks are None, and others of it are ignored, at every level. Raises
        pydantic.ValidationError for a value of the wrong type.
        """
        stored = {
            name: document.get(name)
            for name, field in cls.model_fields.items()
            if name in document or not field.exclude
        }
        return cls.model_validate(stored | others, strict=False, extra="ignore")


def finite(value: float | None) -> float | None:
    """Return a number that JSON has, None for infinity and NaN."""
    return value if value is not None and math.isfinite(value) else None


def write_instant(at: datetime) -> str:
    """Return RFC 3339 in UTC, with a Z."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _store(value: Any) -> Any:
    if isinstance(value, Contract):
        return value.to_stored()
    return [_store(each) for each in value] if isinstance(value, tuple) else value


def _write_address(path: str, info: SerializationInfo) -> str:
    return f"{(info.context or {}).get('origin', '')}{path}"


page_only: Any = Field(default=None, exclude=True)  # None where it came over REST
optional: Any = Field(default=None)  # may be left out on the wire

Id = Annotated[str, says(pattern="^[0-9]+$")]
Instant = Annotated[
    datetime,
    PlainSerializer(write_instant, return_type=str, when_used="json"),
    says(format="date-time", description="RFC 3339, in UTC"),
]
Address = Annotated[str, says(format="uri")]
# The path of a page on the server, a whole address on the wire.
PageAddress = Annotated[str, PlainSerializer(_write_address, return_type=str, when_used="json"), says(format="uri")]
Digest = Annotated[str, says(pattern="^([0-9a-f]{2})*$")]
Points = Annotated[float, says(minimum=0, maximum=100)]
Count = Annotated[int, says(minimum=0)]
Number = Annotated[int, says(minimum=1)]
Share = Annotated[float, says(minimum=0, maximum=1)]
Score = Annotated[float, says(minimum=0, maximum=1)]
ServerClock = Annotated[
    tuple[float, float] | None,
    says(description="seconds that the server's clock is ahead of ours, minimum and maximum; null without Date"),
]
Range = Annotated[tuple[float, float], says(minItems=2, maxItems=2, description="lowest and highest, in points")]
Labels = dict[str, str]
Severity = Annotated[str, says(enum=("warning", "info"))]
RunStatus = Annotated[str, says(enum=("queued", "running", "finished", "incomplete", "failed", "cancelled"))]

Row = TypeVar("Row")


class Page(Contract, Generic[Row]):
    """One page of a list; follow the addresses in `next` and `previous`."""

    next: Address | None
    previous: Address | None
    results: tuple[Row, ...]


class Note(Contract):
    """A warning: `code` is stable, `text` is one sentence."""

    code: str
    text: str


class Problem(Contract):
    """Any failure, as `application/problem+json`."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: Annotated[
        str, says(description="also in the log and the header `X-Request-Id`; a gateway's id is reused")
    ]
    fields: Annotated[
        dict[str, str], says(description="path of a field or parameter (`cases[3].target`) → what is wrong")
    ] = optional
