"""Parse a search query."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from evalboard.contract.find import MATCHES, Hit

EXACT, PREFIX, PART = range(3)  # the ranks, nearest first
COUNTED = 50  # hits of a kind; beyond, "more" is all that is said
MAX_LENGTH = 200
MIN_DIGEST, FULL_DIGESTS = 4, (32, 64)  # hexadecimal digits
MAX_ID_DIGITS = 10
NARROWING = ("run", "release", "suite", "case", "token", "digest", "request", "label", "endpoint", "stack")
NAMED = re.compile(r"(?:run|release|r)[ -]?(?=[0-9]+\Z)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query. `kind`: "" for all. `words`: in lower case. `digest`: a possible digest prefix, else ""."""

    text: str
    kind: str
    words: tuple[str, ...]
    digest: str

    @property
    def number(self) -> str:
        """Return the digits of an id, as of "62", "run 62" or "r-62"; "" where there are none."""
        bare = NAMED.sub("", self.text)
        return bare if bare.isascii() and bare.isdigit() and len(bare) <= MAX_ID_DIGITS else ""


@dataclass(frozen=True, slots=True)
class Match:
    """One thing that fits. `key` is what its kind knows it by."""

    kind: str
    key: Any
    rank: int
    at: datetime | None


def parse_wanted(text: str, kind: str = "") -> Wanted:
    """Parse a query: `case: tool-041` restricts the kind, like `kind`."""
    text = " ".join(text.replace("\0", " ").split())[:MAX_LENGTH]
    name, colon, rest = text.partition(":")
    if not kind and colon and name.lower() in NARROWING:
        kind, text = name.lower(), rest.strip()
    bare = text.lower().removeprefix("sha256:")
    is_digest = MIN_DIGEST <= len(bare) <= max(FULL_DIGESTS) and re.fullmatch("[0-9a-f]+", bare) is not None
    return Wanted(text, kind, tuple(text.lower().split()), bare if is_digest else "")


def rank_name(name: str, wanted: Wanted) -> int:
    """Return how well a name matches the query."""
    plain, text = name.lower(), wanted.text.lower()
    return EXACT if plain == text else PREFIX if plain.startswith(text) else PART


def ids_from(digits: str) -> Q:
    """Return the condition that an id begins with these digits, as ranges, which the primary key answers."""
    first = int(digits)
    condition = Q(pk=first)
    for width in range(1, MAX_ID_DIGITS - len(digits) + 1):
        condition |= Q(pk__gte=first * 10**width, pk__lt=(first + 1) * 10**width)
    return condition if first else Q(pk=0)


def rank_id(key: int, digits: str) -> int:
    return EXACT if digits == str(key) else PREFIX if digits and str(key).startswith(digits) else PART


def make_hit(match: Match, name: str, about: str, fact: str, url: str, *, state: str = "") -> Hit:
    nearness = MATCHES[match.rank]
    return Hit(kind=match.kind, match=nearness, name=name, about=about, fact=fact, state=state, at=match.at, url=url)
