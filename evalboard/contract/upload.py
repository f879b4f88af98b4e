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
    status: Annotated[str, says(enum=STATUSES, description="open: it takes parts; reading: it is whole")]
    parts: Annotated[tuple[UploadPart, ...], says(description="those that came and are not read yet")]
    progress: Annotated[Done, says(description="bytes read, of all that are known of")]
    n_cases: Annotated[int, says(minimum=0, description="read so far")]
    fields: Annotated[dict[str, str], says(description="what is wrong, by line; then nothing of it is stored")]
    version: Annotated[Number | None, says(description="of the suite, once it is stored")]
    is_new: Annotated[bool | None, says(description="false where the suite had a version of this content")]
    created_by: str | None
    created_at: Instant
    url: PageAddress

    @property
    def is_terminal(self) -> bool:
        return self.status in ENDED
