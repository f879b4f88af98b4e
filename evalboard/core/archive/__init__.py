"""Write and read a run as one file (docs/export-format.md)."""

from evalboard.core.archive.run_archive import (
    RESPONSES_NAME,
    SUITE_NAME,
    TRACES_NAME,
    ArchiveMember,
    vocabulary_name,
    write_archive,
)
from evalboard.core.archive.run_archive_reader import ArchivedResponse, RunArchive

__all__ = [
    "RESPONSES_NAME",
    "SUITE_NAME",
    "TRACES_NAME",
    "ArchiveMember",
    "ArchivedResponse",
    "RunArchive",
    "vocabulary_name",
    "write_archive",
]
