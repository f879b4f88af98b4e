"""What the API answers of other tools' logs."""

from typing import TypedDict

from runs.api.answers import Count, Digest, Id, Instant, RunRow


class ImportedFile(TypedDict):
    """A file of a log as it was sent; it is not kept."""

    name: str
    size: Count
    sha256: Digest


class Import(TypedDict):
    """One log that was read. `notes` say what it does not hold, or what was not taken over."""

    id: Id
    format: str
    tool: str
    files: list[ImportedFile]
    notes: list[str]
    runs: list[RunRow]
    created_by: str | None
    created_at: Instant
