"""The files of a log, compressed or not, and their beginnings, by which formats are recognised."""

import hashlib
import io
import json
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from evalboard.core.document import MAX_DEPTH
from evalboard.core.errors import InvalidInput

HEAD_BYTES = 64 << 10
MAX_FIRST_BYTES = 4 << 20  # of a first line that is longer than the head
MAX_BYTES = 512 << 20  # of one file, and of what one file unpacks to
MAX_WINDOW = 1 << 27  # the largest that Zstandard's own command line writes
# How a compressed file begins, what its name ends in, and what unpacks it.
_PACKED = (
    (b"\x1f\x8b", ".gz", partial(zlib.decompressobj, 16 + zlib.MAX_WBITS)),
    (b"\x28\xb5\x2f\xfd", ".zst", lambda: zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()),
)
_PART_BYTES = 1 << 10  # read at a time: it unpacks to 32 MiB at most, whatever it holds

_OPENING = {"{": "}", "[": "]"}


@dataclass(frozen=True)
class LogFile:
    """One file: the name from its sender, which is never used as a path, and its present path.

    `size` and `sha256` are the file's own; everything else is about its content, which is unpacked if the file is
    compressed. Its beginning is read and parsed once, however many formats look at it.
    """

    name: str
    path: Path

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    @cached_property
    def sha256(self) -> str:
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def content_size(self) -> int:
        """Return how many bytes the content has. Raises InvalidInput, without the file's name, as `open` does."""
        if self._packing is None:
            return self.size
        with self.open() as content:
            return sum(map(len, iter(partial(content.read, 1 << 20), b"")))

    @property
    def plain_name(self) -> str:
        """Return the name of the content, without a compression suffix."""
        return self.name if self._packing is None else self.name.removesuffix(self._packing[0])

    @property
    def is_packed(self) -> bool:
        return self._packing is not None

    @cached_property
    def _packing(self) -> tuple[str, Any] | None:
        """Return the compression suffix and its unpacker."""
        with self.path.open("rb") as file:
            head = file.read(4)
        return next(((ending, make) for magic, ending, make in _PACKED if head.startswith(magic)), None)

    @cached_property
    def start(self) -> str:
        """Return the first characters, without the white space before them."""
        return start_of(self.head(HEAD_BYTES))

    @cached_property
    def first_object(self) -> dict[str, Any]:
        """Return the first JSON object, as far as the beginning has it; {} if it starts with none.

        A first line may have a long prompt before the fields that show its format: it is read to its end.
        """
        head = self.head(HEAD_BYTES)
        if len(head) == HEAD_BYTES and b"\n" not in head:
            line, end, _ = self.head(MAX_FIRST_BYTES).partition(b"\n")
            if end or len(line) < MAX_FIRST_BYTES:
                return first_object_of(start_of(line))
        return first_object_of(self.start)

    def head(self, n: int = 4096) -> bytes:
        """Return the first bytes, to recognise a format; of a damaged file those before the damage."""
        parts: list[bytes] = []
        with suppress(InvalidInput), self.open() as content:
            while n and (part := content.read1(n)):
                parts.append(part)
                n -= len(part)
        return b"".join(parts)

    def tail(self, n: int = 4096) -> bytes:
        """Return the last bytes, where a zip lists its members."""
        if self._packing is not None:
            with suppress(InvalidInput):
                return self.read()[-n:]
            return b""
        with self.path.open("rb") as file:
            file.seek(max(self.size - n, 0))
            return file.read(n)

    def open(self) -> io.BufferedReader:
        """Open the content, which can be sought in where the file is not compressed.

        Reading raises InvalidInput, without the file's name, where it is damaged or unpacks to more than MAX_BYTES.
        """
        file = self.path.open("rb")
        return file if self._packing is None else io.BufferedReader(_Unpacked(file, self._packing[1]), 1 << 16)

    def read(self) -> bytes:
        """Return the whole content; raises what reading does."""
        with self.open() as content:
            return content.read()


class _Unpacked(io.RawIOBase):
    """The content of a compressed file, which may be of several parts, one after another."""

    def __init__(self, file: BinaryIO, make: Any) -> None:
        self._file, self._make, self._unpacker = file, make, make()
        self._rest, self._n_bytes = memoryview(b""), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest and (part := self._file.read(_PART_BYTES)):
            self._rest = memoryview(b"".join(self._unpack(part)))
            self._n_bytes += len(self._rest)
            if self._n_bytes > MAX_BYTES:
                raise InvalidInput(f"unpacks to more than {MAX_BYTES >> 20} MiB, the most that is read")
        if not self._rest and not self._unpacker.eof:
            raise InvalidInput("is compressed, and its end is missing. Was it cut short on its way?")
        n = min(len(buffer), len(self._rest))
        buffer[:n], self._rest = self._rest[:n], self._rest[n:]
        return n

    def _unpack(self, packed: bytes) -> Any:
        try:
            while packed:
                if self._unpacker.eof:
                    self._unpacker = self._make()
                yield self._unpacker.decompress(packed)
                packed = self._unpacker.unused_data
        except (zlib.error, zstandard.ZstdError) as error:
            raise InvalidInput(f"is compressed, and damaged: {error}") from error

    def close(self) -> None:
        self._file.close()
        super().close()


def start_of(head: bytes) -> str:
    """Return a file's first characters, without the white space and the byte order mark before them."""
    return head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")


def first_object_of(text: str) -> dict[str, Any]:
    """Return the first JSON object in the beginning of a file, or of a list; {} if there is none.

    If the object continues after the first 64 KiB, or is nested deeper than is read, the fields that are complete until
    there. If the first line has no JSON, the object that the second one is. Never raises, and takes time in proportion
    to the text.
    """
    if text.startswith("["):
        text = text[1:].lstrip()
    try:
        head, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        head = _second_line(text) or (_cut(text) if text.startswith("{") else None)
    return head if isinstance(head, dict) else {}


def _second_line(text: str) -> Any:
    """Parse the line after a damaged one; None if it is no JSON, as in a text of many lines."""
    first, _, rest = text.partition("\n")
    try:
        return None if first.strip() in _OPENING else json.loads(rest.lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        return None


def _cut(text: str) -> Any:
    """Parse a JSON text that breaks off: everything after its last complete member is left out."""
    stack: list[str] = []
    end = 0  # behind what is complete; nothing has opened or closed since
    is_quoted = is_escaped = False
    for at, char in enumerate(text):
        if is_quoted:
            is_quoted = is_escaped or char != '"'
            is_escaped = char == "\\" and not is_escaped
        elif char == '"':
            is_quoted = True
        elif char in _OPENING:
            if len(stack) == MAX_DEPTH:
                break
            stack.append(_OPENING[char])
            end = at + 1
        elif char in "}]":
            if not stack or stack[-1] != char:
                break
            stack.pop()
            end = at + 1
        elif char == ",":
            end = at
    try:
        return json.loads(text[:end] + "".join(reversed(stack)))
    except (ValueError, RecursionError):
        return None
