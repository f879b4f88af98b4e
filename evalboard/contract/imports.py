"""Other tools' logs that were imported."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Digest, Id, Instant, says
from evalboard.contract.run import RunRow


class ImportedFile(Contract):
    """A file of a log as it was sent; it is not kept."""

    name: str
    size: Count
    sha256: Digest


class Import(Contract):
    """One log that was read."""

    id: Id
    format: str
    tool: str
    files: tuple[ImportedFile, ...]
    notes: Annotated[tuple[str, ...], says(description="what the log does not hold, or what was not taken over")]
    runs: Annotated[tuple[RunRow, ...], says(description="as in the list of runs")]
    created_by: str | None
    created_at: Instant
