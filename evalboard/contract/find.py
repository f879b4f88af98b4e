"""Results of a search over everything: hits of many kinds, nearest first, with counts by kind."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Instant, PageAddress, says

KINDS = ("run", "release", "suite", "case", "token", "digest", "request", "label", "endpoint", "stack")
ANSWER = "answer"  # the texts of responses, which are looked through only where that kind is named
MATCHES = ("exact", "prefix", "part")


class Hit(Contract):
    """One search result. `fact` distinguishes similar ones: a state, a count."""

    kind: Annotated[str, says(enum=(*KINDS, ANSWER))]
    match: Annotated[str, says(enum=MATCHES, description="how the search words match its name")]
    name: str
    about: Annotated[str, says(description="a description")]
    fact: str
    state: Annotated[str, says(description="a run's status or a release's verdict; empty for other kinds")]
    at: Annotated[Instant | None, says(description="when it was created; null if not known")]
    url: PageAddress


class KindCount(Contract):
    """The number of hits of a kind. `is_more`: there are more than were counted."""

    kind: Annotated[str, says(enum=(*KINDS, ANSWER))]
    n: Count
    is_more: bool


class SearchResult(Contract):
    """Hits of one kind or of all, ranked: exact, prefix, part, and recent ones first within each."""

    hits: tuple[Hit, ...]
    counts: Annotated[tuple[KindCount, ...], says(description="of the searched kinds")]
    opens: Annotated[
        PageAddress | None,
        says(description="the page of a full digest, request id or address of this board, if it is unique"),
    ]

    @property
    def n(self) -> int:
        """Return the number of hits, each kind as far as counted."""
        return sum(count.n for count in self.counts)

    @property
    def is_more(self) -> bool:
        return any(count.is_more for count in self.counts)
