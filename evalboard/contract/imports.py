"""Other tools' logs that were imported."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Digest, Id, Instant, Problem, says
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


class ImportReading(Contract):
    """A large log that is being read. Ask again until its `status` is not `reading`."""

    id: Id
    status: Annotated[
        str, says(enum=("reading", "stored", "failed"), description="failed: nothing of the log is stored")
    ]
    names: Annotated[tuple[str, ...], says(description="of the files")]
    n_bytes: Annotated[int, says(minimum=0, description="of the files, as they were sent")]
    problem: Annotated[Problem | None, says(description="why it failed, as a small log's request is refused")]
    imported: Annotated[Id | None, says(description="the import, once stored")]
    is_new: Annotated[bool | None, says(description="false if this log was imported before")]
    created_by: str | None
    created_at: Instant

    @property
    def is_terminal(self) -> bool:
        return self.status != "reading"
