"""Suites that are sent in parts."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Digest, Id, Instant, Number, PageAddress, says
from evalboard.contract.parts import Done

STATUSES = ("open", "reading", "finished", "failed")
ENDED = ("finished", "failed")


class UploadPart(Contract):
    """Whole lines of a suite's JSONL; all three are of the lines before they were compressed."""

    offset: Count
    n_bytes: Number
    sha256: Digest


class Upload(Contract):
    """A suite version on its way."""

    id: Id
    suite: str
    status: Annotated[
        str, says(enum=STATUSES, description="open: parts are accepted; reading: all parts were received")
    ]
    parts: Annotated[tuple[UploadPart, ...], says(description="parts that were received and not parsed yet")]
    progress: Annotated[Done, says(description="bytes parsed, of all received")]
    n_cases: Annotated[int, says(minimum=0, description="parsed so far")]
    fields: Annotated[dict[str, str], says(description="problems by line; nothing is stored then")]
    version: Annotated[Number | None, says(description="of the suite, once stored")]
    is_new: Annotated[bool | None, says(description="false if the suite already had a version with this content")]
    created_by: str | None
    created_at: Instant
    url: PageAddress

    @property
    def is_terminal(self) -> bool:
        return self.status in ENDED
