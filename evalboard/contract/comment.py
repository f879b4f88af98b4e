"""Comments of people on runs, cases and releases."""

from typing import Annotated

from evalboard.contract.base import Contract, Id, Instant, PageAddress, says

COMMENTED = ("run", "case", "release")
MAX_COMMENT = 10_000


class Comment(Contract):
    """A comment on a run, a case or a release. Withdrawn, it has no text."""

    id: Id
    kind: Annotated[str, says(enum=COMMENTED)]
    name: Annotated[str, says(description="the id of the run or release; of a case SUITE/ID")]
    person: Annotated[str | None, says(description="null: no longer known")]
    text: Annotated[str, says(description="Markdown without HTML and images; empty where withdrawn")]
    created_at: Instant
    withdrawn_at: Instant | None
    url: PageAddress
