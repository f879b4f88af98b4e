"""Other tools' logs that were imported."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Digest, Id, Instant, says
from evalboard.contract.run import RunRow


class ImportedFile(Contract):
    """A file of a log as it was sent; its content is not stored."""

    name: str
    size: Count
    sha256: Digest


class Import(Contract):
    """One log that was read."""

    id: Id
    format: str
    tool: str
    files: tuple[ImportedFile, ...]
    notes: Annotated[tuple[str, ...], says(description="what is not in the log, or was not imported")]
    runs: Annotated[tuple[RunRow, ...], says(description="as in the list of runs")]
    created_by: str | None
    created_at: Instant
