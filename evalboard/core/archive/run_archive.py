"""Write a run as a zip, streamed so that it is never in memory as a whole (docs/formats.md).

The manifest comes last, because it has the digest of every member before it. Members are dated 1980 and in a fixed
order: the same run gives the same bytes.
"""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

ARCHIVE_FORMAT, ARCHIVE_VERSION = "evalboard-run", 4
READABLE_VERSIONS = (1, 2, 3, 4)
MANIFEST_NAME, SUITE_NAME, RESPONSES_NAME, TRACES_NAME = "manifest.json", "suite.jsonl", "responses.jsonl", "traces.evt"

_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say
_MODE = 0o100644 << 16
_LEVEL = 6
_PART_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file of the archive. Text is deflated; packed data is stored, so that readers can seek in it."""

    name: str
    parts: Iterable[bytes]
    is_packed: bool = False


def vocabulary_name(digest: str) -> str:
    return f"vocabularies/{digest}.evv"


def write_archive(
    members: Iterable[ArchiveMember],
    manifest: Callable[[], dict[str, Any]],
    *,
    kind: tuple[str, int] = (ARCHIVE_FORMAT, ARCHIVE_VERSION),
    is_packed: bool = False,
) -> Iterator[bytes]:
    """Yield the archive's bytes in parts, the manifest last.

    manifest: called after the members are written; their digests are added to it. kind: name and version of the format.
    is_packed: store the manifest without compression. An error in the members is raised here too: what was yielded
    until then is no archive.
    """
    pipe = _Pipe()
    listed = []
    with zipfile.ZipFile(pipe, "w") as archive:  # type: ignore[call-overload]  # it takes whatever can be written to
        for member in members:
            entry = _Listed(member.name)
            yield from _write_one(archive, pipe, entry.noting(member.parts), member.name, is_packed=member.is_packed)
            listed.append({"name": entry.name, "size": entry.size, "sha256": entry.hash.hexdigest()})
        document = {"format": kind[0], "version": kind[1], **manifest(), "members": listed}
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1).encode()
        yield from _write_one(archive, pipe, [text], MANIFEST_NAME, is_packed=is_packed)
    yield pipe.take()


def _write_one(
    archive: zipfile.ZipFile, pipe: "_Pipe", parts: Iterable[bytes], name: str, *, is_packed: bool
) -> Iterator[bytes]:
    info = zipfile.ZipInfo(name, _DATE)
    info.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
    info._compresslevel = _LEVEL  # type: ignore[attr-defined]  # zlib's default, which may change
    info.external_attr = _MODE
    info.create_system = 3  # as on Unix, wherever it is written
    # The size is not known when the member begins, and a run's traces may be more than 4 GiB.
    with archive.open(info, "w", force_zip64=True) as member:
        for part in parts:
            member.write(part)
            if pipe.size >= _PART_BYTES:
                yield pipe.take()


class _Listed:
    """The manifest entry of a member; size and digest are known after it is written."""

    def __init__(self, name: str) -> None:
        self.name, self.size, self.hash = name, 0, hashlib.sha256()

    def noting(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        for part in parts:
            self.size += len(part)
            self.hash.update(part)
            yield part


class _Pipe:
    """The file that the zip writes to: it cannot seek, and is emptied as it fills."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        return

    def take(self) -> bytes:
        whole = b"".join(self._parts)
        self._parts, self.size = [], 0
        return whole
