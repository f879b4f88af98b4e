"""Read the members of an uploaded zip into memory, one at a time and within limits.

Their names are never used as paths.

Python's own `zipfile` lists them; their content is unpacked here, because it reads no Zstandard before Python 3.14
and knows no caps.
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO

import zstandard

from evalboard.core.errors import InvalidInput
from evalboard.importers.files import MAX_BYTES, MAX_WINDOW, LogFile
from evalboard.importers.json_files import MAX_DOCUMENT_BYTES

MAX_MEMBERS = 10_000
MAX_RATIO = 100  # of unpacked to packed, for members larger than RATIO_FROM
RATIO_FROM = 1 << 20
ZSTANDARD = 93

_ENTRY = b"PK\x01\x02"  # begins each entry of the directory
_LOCAL = struct.Struct("<4s22xHH")  # signature, lengths of the name and of the extra field
_ENCRYPTED = 0x1
# What `zipfile` makes of a directory that no zip writer wrote.
_UNREADABLE = (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OverflowError, EOFError, OSError)


def is_zip(file: LogFile) -> bool:
    """Tell whether a file begins as a zip does."""
    return file.head(4) in (b"PK\x03\x04", b"PK\x05\x06")


class Members:
    """The members of one zip by name, with `/` between parts; of equal names the last one counts.

    Raises InvalidInput, without the file's name, for what is damaged, encrypted or larger than the caps allow. All
    members together unpack to MAX_BYTES at most, however often their bytes are shared.
    """

    def __init__(self, file: LogFile) -> None:
        if file.content_size > MAX_BYTES:
            raise InvalidInput(f"is a file of more than {MAX_BYTES >> 20} MiB, the most that is read")
        self._open: Callable[[], BinaryIO] = file.open
        if file.is_packed:  # once more, as a whole
            self._open = partial(io.BytesIO, file.read())
        if _n_entries(file) > MAX_MEMBERS:
            raise InvalidInput(f"is a zip of more than {MAX_MEMBERS:,} members")
        self._left = MAX_BYTES
        try:
            with self._open() as content, zipfile.ZipFile(content) as archive:
                listed = archive.infolist()
        except _UNREADABLE as error:
            raise InvalidInput(f"is a zip that cannot be read: {error}. Was it cut short on its way?") from error
        self._members = {entry.filename.replace("\\", "/"): entry for entry in listed if not entry.is_dir()}

    def names(self) -> list[str]:
        """Return the members' names in the order in which they were written."""
        return sorted(self._members, key=lambda name: self._members[name].header_offset)

    def read(self, name: str) -> bytes:
        """Return a member's content, unpacked and checked. Raises KeyError without such a member."""
        entry = self._members[name]
        if entry.flag_bits & _ENCRYPTED:
            raise InvalidInput(f"{name} is encrypted")
        size = entry.file_size
        if size > MAX_DOCUMENT_BYTES or size > self._left:
            most = min(MAX_DOCUMENT_BYTES, MAX_BYTES)
            raise InvalidInput(f"{name} unpacks to more than is read: {most >> 20} MiB, and {MAX_BYTES >> 20} in all")
        if size > RATIO_FROM and size > MAX_RATIO * entry.compress_size:
            raise InvalidInput(f"{name} unpacks to more than {MAX_RATIO} times its size, as no log does")
        self._left -= size
        try:
            content = _unpacked(self._packed(entry), entry.compress_type, size)
        except (zlib.error, zstandard.ZstdError, struct.error, ValueError, OSError) as error:
            raise InvalidInput(f"{name} is damaged: {error}") from error
        if len(content) != size or zlib.crc32(content) != entry.CRC:
            raise InvalidInput(f"{name} is damaged: it is not what its checksum says")
        return content

    def _packed(self, entry: zipfile.ZipInfo) -> bytes:
        with self._open() as stream:
            stream.seek(entry.header_offset)
            signature, name, extra = _LOCAL.unpack(stream.read(_LOCAL.size))
            if signature != b"PK\x03\x04":
                raise zlib.error("no member begins where the directory says")
            stream.seek(name + extra, io.SEEK_CUR)
            return stream.read(entry.compress_size)


def _unpacked(packed: bytes, method: int, size: int) -> bytes:
    """Return what a member's bytes unpack to: `size` bytes, or one more where there would be more."""
    if method == zipfile.ZIP_STORED:
        return packed
    if method == zipfile.ZIP_DEFLATED:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, size + 1)
    if method != ZSTANDARD:
        raise InvalidInput(f"holds a member compressed by method {method}; stored, deflate and Zstandard are read")
    # Writers split large members into frames, one after another.
    reader = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(packed, read_across_frames=True)
    return b"".join(_parts(reader, size + 1))


def _parts(reader: zstandard.ZstdDecompressionReader, most: int) -> Iterator[bytes]:
    while most and (part := reader.read(most)):
        most -= len(part)
        yield part


def _n_entries(file: LogFile) -> int:
    """Count what looks like an entry of a directory, before anything keeps them all."""
    n, tail = 0, b""
    with file.open() as stream:
        while part := stream.read(1 << 20):
            n += (tail + part).count(_ENTRY)
            tail = part[-len(_ENTRY) + 1 :]
    return n
