"""Read a run's archive and prove that it is what was written; docs/formats.md.

    with open("run-12.zip", "rb") as file:
        run = RunArchive(file)
        run.check()
        for response in run.responses():
            trace = run.trace(response)

Nothing but this package's own core is needed: no database, no server.
"""

import errno
import functools
import hashlib
import io
import json
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from evalboard.core import digest
from evalboard.core.archive import run_archive
from evalboard.core.errors import EvalboardError, TraceDamaged
from evalboard.core.suite import SuiteDocument, parse_suite, read_suite_jsonl
from evalboard.core.trace import TokenTrace, Vocabulary, VocabularyDamaged, read_block

MAX_MEMBER_BYTES = 1 << 30  # of what is read at once
MAX_LINE_BYTES = 1 << 26  # of one response: the longest answer has about a megabyte
MAX_CACHED_BLOCKS = 8  # decoded, a few megabytes each at most times
# What a zip or JSON that was not written so makes of its reading.
UNREADABLE: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EvalboardError,
    ValueError,
    LookupError,
    ArithmeticError,
    TypeError,
    AttributeError,
    EOFError,
    RuntimeError,
)
_PART_BYTES = 1 << 20
_LOCAL_HEADER = struct.Struct("<4s22xHH")  # of a zip: signature, lengths of the name and of the extra field


class ArchiveDamaged(EvalboardError):
    """Raised if a file is not an archive, or differs from what was written."""

    code = "archive_damaged"
    title = "The export cannot be read"


@dataclass(frozen=True, slots=True)
class TracePlace:
    """The position of a trace: offset and size of its block in the member of traces, and its slot there."""

    offset: int
    size: int
    slot: int


@dataclass(frozen=True, slots=True)
class ArchivedResponse:
    """One response of an archive.

    row: its whole line. score: by the suite's own scorer; None if missing. place: None if the response is
    missing or has no trace. trace_digest: 32 hexadecimal digits.
    """

    repeat: int
    case_id: str
    case_index: int
    text: str
    score: float | None
    place: TracePlace | None
    trace_digest: str | None
    row: dict[str, Any]


class Archive:
    """A zip whose manifest names every member. kind, versions: of the format; what: a word for errors."""

    kind = run_archive.ARCHIVE_FORMAT
    what = "run"
    versions: tuple[int, ...] = run_archive.READABLE_VERSIONS
    max_manifest_bytes = 1 << 28
    is_deflated = True  # whether a member may be

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        with reading("it is no zip"):
            self._zip = zipfile.ZipFile(file)
            infos, size = self._zip.infolist(), file.seek(0, io.SEEK_END)
        if sum(info.compress_size for info in infos) > size:
            raise _damaged("its members lie on top of one another")
        self.manifest = self._manifest()
        if not self.is_deflated and any(info.compress_type != zipfile.ZIP_STORED for info in infos):
            raise _damaged("a member is compressed, and none is where Evalboard wrote it")

    def read_member(self, name: str) -> bytes:
        """Return a member, which fits into memory."""
        with reading(f"{name} cannot be read"):
            if self._zip.getinfo(name).file_size > MAX_MEMBER_BYTES:
                raise _damaged(f"{name} is larger than any")
            return self._zip.read(name)

    def check_members(self) -> None:
        """Check the size and SHA-256 of every member against the manifest."""
        with reading("its manifest does not list its members"):
            stated = {str(each["name"]): (each["size"], each["sha256"]) for each in self.manifest["members"]}
        names = [name for name in self._zip.namelist() if name != run_archive.MANIFEST_NAME]
        if sorted(names) != sorted(stated):
            raise _damaged(f"it holds {_named(names)} where its manifest lists {_named(list(stated))}")
        for name, listed in stated.items():
            size, hashed = 0, hashlib.sha256()
            with reading(f"{name} cannot be read"), self._zip.open(name) as member:
                while part := member.read(_PART_BYTES):
                    size += len(part)
                    hashed.update(part)
            if (size, hashed.hexdigest()) != listed:
                raise _damaged(f"{name} is not what was written")

    def _manifest(self) -> dict[str, Any]:
        with reading("it has no manifest"):
            if self._zip.getinfo(run_archive.MANIFEST_NAME).file_size > self.max_manifest_bytes:
                raise _damaged("its manifest is larger than any")
            manifest = json.loads(self._zip.read(run_archive.MANIFEST_NAME))
        if not isinstance(manifest, dict) or manifest.get("format") != self.kind:
            raise _damaged(f"it is no {self.what} of Evalboard's")
        if manifest.get("version") not in self.versions:
            raise ArchiveDamaged(
                f"The export has format version {manifest.get('version')}, and this program reads versions up to "
                f"{max(self.versions)}: update Evalboard."
            )
        return manifest


def find_kind(file: IO[bytes]) -> str:
    """Return the format that a file's manifest names; "" where it is no archive of Evalboard."""
    try:
        with zipfile.ZipFile(file) as opened:
            if opened.getinfo(run_archive.MANIFEST_NAME).file_size > Archive.max_manifest_bytes:
                return ""
            manifest = json.loads(opened.read(run_archive.MANIFEST_NAME))
    except UNREADABLE:
        return ""
    named = manifest.get("format") if isinstance(manifest, dict) else None
    return named if isinstance(named, str) and named.startswith("evalboard-") else ""


class RunArchive(Archive):
    """The archive of a run. Methods raise ArchiveDamaged if it differs from what was written."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file)
        self._block = functools.lru_cache(maxsize=MAX_CACHED_BLOCKS)(self._read_block)

    @property
    def repeats(self) -> list[int]:
        """Return the numbers, from 1, of the repeats whose responses are exported."""
        return [repeat["index"] for repeat in self.manifest["repeats"] if repeat["is_exported"]]

    def suite(self) -> SuiteDocument:
        """Return the suite version with its cases; the same digest as when it was stored."""
        stated = self.manifest["suite"]
        with reading("its suite cannot be read"), self._zip.open(run_archive.SUITE_NAME) as member:
            text = member.read().decode()
            document = parse_suite(read_suite_jsonl(text, slug=stated["slug"]))
        if document.digest != stated["digest"]:
            raise _damaged("its suite is not the one that its manifest names")
        return document

    def responses(self) -> Iterator[ArchivedResponse]:
        """Yield the responses by repeat and case, reading one at a time."""
        with reading("its responses cannot be read"), self._zip.open(run_archive.RESPONSES_NAME) as member:
            while line := member.readline(MAX_LINE_BYTES):
                yield _response(json.loads(line))

    def trace(self, response: ArchivedResponse) -> TokenTrace | None:
        """Return the trace of a response, to the bit; None where it is missing."""
        if response.place is None:
            return None
        traces = self._block(response.place.offset, response.place.size)
        if not 0 <= response.place.slot < len(traces):
            raise _damaged(f"there is no trace at slot {response.place.slot} of its block")
        trace = traces[response.place.slot]
        if trace.digest.hex() != response.trace_digest:
            raise _damaged(f"the trace of case {response.case_id} in repeat {response.repeat} is another one")
        return trace

    def vocabulary(self, response: ArchivedResponse) -> Vocabulary | None:
        """Return the vocabulary of the tokenizer that decoded a response, None if it is not stored."""
        processes = {process["id"]: process["vocabulary"] for process in self.manifest["engine_processes"]}
        named = processes.get(response.row["provenance"]["engine_process"])
        return None if named is None else self._vocabulary(named)

    def packed_vocabulary(self, digest: str) -> tuple[bytes, int]:
        """Return the vocabulary with this digest as stored bytes, and its number of tokens."""
        n_tokens = len(self._vocabulary(digest))
        return self._zip.read(run_archive.vocabulary_name(digest)), n_tokens

    def check(self) -> None:
        """Check everything against every digest. Memory grows with the suite, not with the responses."""
        self.check_members()
        for each in self.manifest["fingerprints"]:
            if digest.digest_json(each["manifest"]) != each["digest"]:
                raise _damaged(f"the manifest of fingerprint {each['digest'][:8]} is not what its digest covers")
        case_ids = [case.id for case in self.suite().cases]
        for process in self.manifest["engine_processes"]:
            if process["vocabulary"] is not None:
                self._vocabulary(process["vocabulary"])
        self._check_responses(case_ids)

    def _check_responses(self, case_ids: Sequence[str]) -> None:
        seen: Counter[int] = Counter()
        last = (0, -1)
        for response in self.responses():
            at = (response.repeat, response.case_index)
            if at <= last:
                raise _damaged(f"the response to case {response.case_id} in repeat {response.repeat} is out of order")
            last = at
            if response.case_index >= len(case_ids) or case_ids[response.case_index] != response.case_id:
                raise _damaged(f"its suite has no case {response.case_id} at {response.case_index}")
            if response.trace_digest is not None and _text_digest(response) != response.row["text_digest"]:
                raise _damaged(f"the text of case {response.case_id} in repeat {response.repeat} is another one")
            self.trace(response)
            seen[response.repeat] += 1
        stated = {each["index"]: each["n_responses"] for each in self.manifest["repeats"] if each["n_responses"]}
        if dict(seen) != stated:
            raise _damaged(f"it has {dict(seen)} responses by repeat where its manifest says {stated}")

    def _vocabulary(self, named: str) -> Vocabulary:
        with reading("a vocabulary cannot be read"):
            return Vocabulary.unpack(self._zip.read(run_archive.vocabulary_name(named)))

    def _read_block(self, offset: int, size: int) -> list[TokenTrace]:
        start, end = self._traces
        if offset < 0 or size < 0 or start + offset + size > end:
            raise _damaged("a response names a place that its traces do not have")
        self._file.seek(start + offset)
        with reading("a block of traces cannot be read"):
            return read_block(self._file.read(size))

    @functools.cached_property
    def _traces(self) -> tuple[int, int]:
        """Return the first and last byte of the member of traces in the file.

        The member is not deflated, so a block can be read without those before it.
        """
        with reading("it has no traces"):
            info = self._zip.getinfo(run_archive.TRACES_NAME)
            if info.compress_type != zipfile.ZIP_STORED:
                raise _damaged("its traces are compressed once more")
            self._file.seek(info.header_offset)
            _, n_name, n_extra = _LOCAL_HEADER.unpack(self._file.read(_LOCAL_HEADER.size))
        start = info.header_offset + _LOCAL_HEADER.size + n_name + n_extra
        return start, start + info.file_size


@contextmanager
def reading(wrong: str) -> Iterator[None]:
    """Turn every error that a foreign or broken file causes into ArchiveDamaged."""
    try:
        yield
    except (TraceDamaged, VocabularyDamaged) as error:
        raise ArchiveDamaged(f"The export is damaged: {wrong}. {error.detail}") from error
    except ArchiveDamaged:
        raise
    except OSError as error:
        if error.errno != errno.EINVAL:  # else a changed offset lies before the file's start
            raise
        raise _damaged(f"{wrong} ({error.strerror})") from error
    except UNREADABLE as error:
        raise _damaged(f"{wrong} ({str(error)[:200]})") from error


def _response(row: dict[str, Any]) -> ArchivedResponse:
    trace = row["trace"]
    return ArchivedResponse(
        repeat=row["repeat"],
        case_id=row["case"],
        case_index=row["case_index"],
        text=row["text"],
        score=row["score"],
        place=None if trace is None else TracePlace(trace["offset"], trace["size"], trace["slot"]),
        trace_digest=None if trace is None else trace["digest"],
        row=row,
    )


def _text_digest(response: ArchivedResponse) -> str:
    return digest.text_digest(response.text).hex()


def _damaged(fact: str) -> ArchiveDamaged:
    return ArchiveDamaged(f"The export is damaged: {fact}. Export it again.")


def _named(names: list[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
