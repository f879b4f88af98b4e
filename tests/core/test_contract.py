"""A contract is made of a record, or kept as a document, by the names of its fields."""

from dataclasses import dataclass

import pytest
from pydantic import ValidationError

from evalboard.contract.base import Contract, page_only


class Part(Contract):
    n: int
    place: int = page_only


class Whole(Contract):
    name: str
    parts: tuple[Part, ...]
    size: float | None = None


@dataclass
class Record:
    name: str = "one"
    size: float = 0.5
    parts: str = "ids"
    secret: str = "x"


WHOLE = Whole(name="one", parts=(Part(n=1, place=7),), size=0.5)


def test_a_stored_document_has_every_field_and_reads_back() -> None:
    assert WHOLE.to_stored() == {"name": "one", "parts": [{"n": 1, "place": 7}], "size": 0.5}
    assert Whole.from_stored(WHOLE.to_stored()) == WHOLE
    assert WHOLE.to_json()["parts"] == [{"n": 1}], "the wire has none that is for pages"


def test_a_document_of_another_version_reads_too() -> None:
    assert Whole.from_stored({"name": "one", "parts": [{"n": 1, "gone": 2}], "gone": 3}) == Whole(
        name="one", parts=(Part(n=1),)
    )


def test_a_record_gives_what_is_named_alike_and_nothing_else() -> None:
    assert Whole.from_record(Record(), parts=(Part(n=1, place=7),)) == WHOLE
    assert Part.from_record(Record(), n=1) == Part(n=1), "what neither has keeps its default"


def test_a_record_with_a_value_of_another_type_is_refused() -> None:
    with pytest.raises(ValidationError, match="parts"):
        Whole.from_record(Record())
