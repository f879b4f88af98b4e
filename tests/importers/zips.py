"""Zips as Inspect writes them, and as nobody should: Python's own writer knows no Zstandard and tells no lies."""

import struct
import zipfile
import zlib
from collections.abc import Mapping

import zstandard

ZSTANDARD = 93
_END = struct.Struct("<4s4H2LH")
_LOCAL = struct.Struct("<4s5H3L2H")
_ENTRY = struct.Struct("<4s6H3L5H2L")


def zip_of(members: Mapping[str, bytes], *, method: int = ZSTANDARD, flags: int = 0, size: int | None = None) -> bytes:
    """Return a zip. `size` is what every member claims to unpack to, where that is a lie."""
    body, directory = b"", b""
    for name, content in members.items():
        packed, encoded = _packed(content, method), name.encode()
        facts = (method, 0, 0, zlib.crc32(content), len(packed), len(content) if size is None else size)
        directory += _ENTRY.pack(b"PK\1\2", 20, 20, flags, *facts, len(encoded), 0, 0, 0, 0, 0, len(body)) + encoded
        body += _LOCAL.pack(b"PK\3\4", 20, flags, *facts, len(encoded), 0) + encoded + packed
    n = len(members)
    return body + directory + _END.pack(b"PK\5\6", 0, 0, n, n, len(directory), len(body), 0)


def _packed(content: bytes, method: int) -> bytes:
    if method == zipfile.ZIP_DEFLATED:
        compressor = zlib.compressobj(wbits=-15)
        return compressor.compress(content) + compressor.flush()
    if method == ZSTANDARD:
        # Two frames, as Inspect writes for large members.
        half = len(content) // 2
        return zstandard.compress(content[:half]) + zstandard.compress(content[half:])
    return content
