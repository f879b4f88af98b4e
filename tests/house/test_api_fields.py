"""docs/api-reference.md has the fields of contracts between markers, as tools/api_fields.py draws them."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Instant, Range, optional, page_only, says
from tools.api_fields import PAGES, PLACE, describe_fields


class Engine(Contract):
    """What answered."""

    name: str
    is_warm: bool | None


class Answer(Contract):
    """One answer of docs/probes.md."""

    id: str
    state: Annotated[str, says(enum=("right", "wrong"))]
    first: Engine
    second: Engine
    range: Range | None
    seconds: Annotated[float, says(description="spent decoding")]
    counts: tuple[Count, ...]
    at: Instant
    error: str = optional
    place: int = page_only


def test_a_contract_is_drawn_with_what_it_says_of_its_fields() -> None:
    assert describe_fields(Answer).splitlines() == [
        "One answer of [probes.md](probes.md).",
        "",
        "```",
        '{"id","state":"right|wrong","first","second":{"name","is_warm":true|false|null},"range":[low,high]|null,"seconds",',
        ' "counts":[…],"at","error"?}',
        "```",
        "",
        "| field | means |",
        "| --- | --- |",
        "| `first`, `second` | What answered. |",
        "| `seconds` | spent decoding |",
    ]


def test_the_page_has_places_for_contracts() -> None:
    assert len(PLACE.findall(PAGES[0].read_text())) >= 6
