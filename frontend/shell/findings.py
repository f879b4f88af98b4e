"""Findings, rows of numbers, things to look at, and the parts that wings add to pages."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from evalboard import wings


@dataclass(frozen=True, slots=True)
class Headline:
    claim: str
    rest: str = ""


def split_claim(sentence: str) -> Headline:
    """Part a sentence after its first clause, the claim: numbers follow a colon or a full stop."""
    ends = [end for end in (sentence.find(": "), sentence.find(". ")) if end >= 0]
    if not ends:
        return Headline(sentence)
    return Headline(sentence[: min(ends) + 1], sentence[min(ends) + 2 :])


@dataclass(frozen=True, slots=True)
class NumberRow:
    """A number as text. means: what it says, in words."""

    label: str
    value: str
    means: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A thing to look at.

    kind: "warning", "info" or "fine"; code: the warning's or ""; link: (label, address).
    """

    kind: str
    claim: str
    rest: str = ""
    code: str = ""
    link: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What a wing adds to a page.

    templates: by their place (`{% added "head" %}`); they have the page's context and `shown`. items: to look at first.
    marks: by side, positions of tokens to mark; "" where a page has one answer.
    """

    templates: Mapping[str, str] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    marks: Mapping[str, frozenset[int]] = field(default_factory=dict)


def parts_of(page: str, *facts: Any) -> tuple[Part, ...]:
    """Return what wings add to a page. facts: what it shows, as `evalboard.wings` lists."""
    return tuple(part for make in _makers(page) if (part := make(*facts)) is not None)


@cache
def _makers(page: str) -> tuple[Callable[..., Part | None], ...]:
    return tuple(make for name, make in wings.gather("frontend.{}.parts", "PARTS") if name == page)


def join_marks(parts: Iterable[Part], side: str = "") -> frozenset[int]:
    """Return the positions to mark on one side."""
    return frozenset().union(*(part.marks.get(side, ()) for part in parts))
