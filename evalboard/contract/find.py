"""What a search over everything answers: hits of many kinds, the nearest first, and how many there are of each kind."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Instant, PageAddress, says

KINDS = ("run", "release", "suite", "case", "token", "digest", "request", "label", "endpoint")
ANSWER = "answer"  # the texts of responses, which are looked through only where that kind is named
MATCHES = ("exact", "prefix", "part")


class Hit(Contract):
    """One thing that a search names. `fact` tells two of a kind apart: a state, a count."""

    kind: Annotated[str, says(enum=(*KINDS, ANSWER))]
    match: Annotated[str, says(enum=MATCHES, description="how the words lie in what it is known by")]
    name: str
    about: Annotated[str, says(description="what it is, in words")]
    fact: str
    state: Annotated[str, says(description="a run's status, or a release's verdict once it has one; of others empty")]
    at: Annotated[Instant | None, says(description="when it came; null where no time is its own")]
    url: PageAddress


class KindCount(Contract):
    """How many hits a kind has. `is_more`: there are more than were counted."""

    kind: Annotated[str, says(enum=(*KINDS, ANSWER))]
    n: Count
    is_more: bool


class SearchResult(Contract):
    """Hits of one kind or of all, ranked: exact, prefix, part; of these the recent ones first."""

    hits: tuple[Hit, ...]
    counts: Annotated[tuple[KindCount, ...], says(description="of the kinds that were looked through")]
    opens: Annotated[
        PageAddress | None,
        says(description="where a full digest, a request id or an address of this board leads, if to one place"),
    ]

    @property
    def n(self) -> int:
        """Return how many hits there are, each kind as far as it was counted."""
        return sum(count.n for count in self.counts)

    @property
    def is_more(self) -> bool:
        return any(count.is_more for count in self.counts)
