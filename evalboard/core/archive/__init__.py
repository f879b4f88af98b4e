"""Write and read a run, or a release, as one file (docs/formats.md)."""

from evalboard.core.archive.release_bundle import ReleaseBundle, digest_evidence, dump_evidence, write_bundle
from evalboard.core.archive.run_archive import (
    RESPONSES_NAME,
    SUITE_NAME,
    TRACES_NAME,
    ArchiveMember,
    vocabulary_name,
    write_archive,
)
from evalboard.core.archive.run_archive_reader import ArchiveDamaged, ArchivedResponse, RunArchive, find_kind, reading

__all__ = [
    "RESPONSES_NAME",
    "SUITE_NAME",
    "TRACES_NAME",
    "ArchiveDamaged",
    "ArchiveMember",
    "ArchivedResponse",
    "ReleaseBundle",
    "RunArchive",
    "digest_evidence",
    "dump_evidence",
    "find_kind",
    "reading",
    "vocabulary_name",
    "write_archive",
    "write_bundle",
]
