"""Pack and read a tokenizer's vocabulary (token id → bytes), and make tokens readable.

Packed form: b"EVV1", then one zstd frame of: uint32 n tokens, uint32 m end ids, int32[n] lengths
(−1: the id is unused), int32[m] end ids, the tokens' bytes one after the other; all
little-endian. The frame has its content's size and a checksum.
"""

import struct
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import zstandard
from numpy.typing import NDArray

from evalboard.core.errors import EvalboardError

MAGIC = b"EVV1"
MAX_BYTES = 256 * 1024 * 1024  # of a frame's content; the largest vocabularies have about 4 MB
SPACE, NEWLINE, END = "·", "⏎", "⟨end⟩"
# Categories that print nothing, or that print like something else.
INVISIBLE = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"}


class VocabularyDamaged(EvalboardError):
    """Packed bytes are of an unknown version or do not match their checksum."""

    code = "vocabulary_damaged"
    title = "A stored vocabulary cannot be read"
    status = 500


def pack_vocabulary(tokens: Sequence[bytes | None], end_ids: Iterable[int] = ()) -> bytes:
    """Return the packed form; `end_ids` are the tokens that end an answer."""
    ends = sorted(set(end_ids))
    lengths = np.array([-1 if token is None else len(token) for token in tokens], dtype="<i4")
    head = struct.pack("<II", len(tokens), len(ends))
    content = b"".join(
        [head, lengths.tobytes(), np.array(ends, dtype="<i4").tobytes(), *(token or b"" for token in tokens)]
    )
    return MAGIC + zstandard.ZstdCompressor(level=10, write_checksum=True, write_content_size=True).compress(content)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A packed vocabulary. Token i is data[offsets[i]:offsets[i + 1]]; known[i] is False if i is unused."""

    data: bytes
    offsets: NDArray[np.int64]
    known: NDArray[np.bool_]
    end_ids: frozenset[int]

    @classmethod
    def unpack(cls, packed: bytes) -> "Vocabulary":
        """Read what `pack_vocabulary` wrote. Raises VocabularyDamaged."""
        content = _content(bytes(packed))
        try:
            n, m = struct.unpack_from("<II", content)
            lengths = np.frombuffer(content, dtype="<i4", count=n, offset=8)
            ends = np.frombuffer(content, dtype="<i4", count=m, offset=8 + 4 * n)
        except (struct.error, ValueError) as problem:
            raise VocabularyDamaged("A stored vocabulary is shorter than it says.") from problem
        data = content[8 + 4 * (n + m) :]
        offsets = np.concatenate([[0], np.cumsum(np.maximum(lengths, 0), dtype=np.int64)])
        if offsets[-1] != len(data):
            raise VocabularyDamaged("A stored vocabulary does not hold the bytes that it says.")
        return cls(data=data, offsets=offsets, known=lengths >= 0, end_ids=frozenset(ends.tolist()))

    def __len__(self) -> int:
        return len(self.known)

    def token_bytes(self, token_id: int) -> bytes | None:
        """Return a token's bytes, None for an unused id."""
        if not 0 <= token_id < len(self) or not self.known[token_id]:
            return None
        return self.data[self.offsets[token_id] : self.offsets[token_id + 1]]

    def many_bytes(self, token_ids: NDArray[np.int32]) -> list[bytes | None]:
        """Return the same of many tokens at once. token_ids: [n]."""
        is_known = (token_ids >= 0) & (token_ids < len(self))
        is_known[is_known] = self.known[token_ids[is_known]]
        ids = np.where(is_known, token_ids, 0)
        places = zip(is_known.tolist(), self.offsets[ids].tolist(), self.offsets[ids + is_known].tolist(), strict=True)
        return [self.data[start:end] if known else None for known, start, end in places]

    def agrees_with(self, other: "Vocabulary") -> bool:
        """Tell whether every id in both has the same bytes, so that one may extend the other."""
        n = min(len(self), len(other))
        return (
            np.array_equal(self.offsets[: n + 1], other.offsets[: n + 1])
            and np.array_equal(self.known[:n], other.known[:n])
            and self.data[: self.offsets[n]] == other.data[: other.offsets[n]]
        )

    @cached_property
    def _ids(self) -> dict[bytes, int | None]:
        """Return bytes → id; None if several ids have the same bytes."""
        ids: dict[bytes, int | None] = {}
        for token_id in np.flatnonzero(self.known).tolist():
            token = self.data[self.offsets[token_id] : self.offsets[token_id + 1]]
            ids[token] = None if token in ids else token_id
        return ids

    def find_ids(self, tokens: Iterable[bytes | None]) -> list[int] | None:
        """Return the id of each token's bytes; None if one of them has no id, or several."""
        ids = [self._ids.get(token) if token else None for token in tokens]
        return None if None in ids else [token_id for token_id in ids if token_id is not None]

    def ids_beginning(self, text: bytes) -> list[int]:
        """Return the ids of tokens that begin with `text` after spaces and line ends, ascending.

        Raises ValueError for an empty text, which every token begins with.
        """
        if not text:
            raise ValueError("Every token begins with nothing.")
        ids: list[int] = []
        at = self.data.find(text)
        while at >= 0:
            token = int(np.searchsorted(self.offsets, at, side="right")) - 1
            first, end = int(self.offsets[token]), int(self.offsets[token + 1])
            if at + len(text) <= end and not self.data[first:at].strip():
                ids.append(token)
            at = self.data.find(text, at + 1)
        return sorted(set(ids))

    def draw(self, ids: Iterable[int]) -> list[str]:
        """Return one text for each token, in which everything can be seen.

        A space is ·, a newline ⏎, another invisible character ⟨U+000B⟩, an end token ⟨end⟩. Where a
        character is spread over several tokens, each shows its own bytes as ⟨0xE2⟩: UTF-8 tells
        beginnings from continuations, so a token's bytes can be read without its neighbours.
        """
        return [self._drawings.get(token_id) or self._draw(token_id) for token_id in map(int, ids)]

    @cached_property
    def _drawings(self) -> dict[int, str]:
        """Return the cache of readable tokens by id."""
        return {}

    def _draw(self, token_id: int) -> str:
        if token_id in self.end_ids:
            return END
        data = self.token_bytes(token_id)
        if not data:  # none is known, or it is half a character of which a log has no bytes
            return f"⟨token {token_id}⟩"
        drawn = "".join(map(_visible, data.decode("utf-8", "surrogateescape")))
        self._drawings[token_id] = drawn
        return drawn


def _content(packed: bytes) -> bytes:
    if packed[: len(MAGIC)] != MAGIC:
        raise VocabularyDamaged("A stored vocabulary is of a version that this program does not know.")
    frame = packed[len(MAGIC) :]
    try:
        size = zstandard.frame_content_size(frame)
        if not 8 <= size <= MAX_BYTES:
            raise VocabularyDamaged("A stored vocabulary says a size that it cannot have.")
        return zstandard.ZstdDecompressor().decompress(frame)
    except zstandard.ZstdError as problem:
        raise VocabularyDamaged("A stored vocabulary does not match its checksum.") from problem


@lru_cache(maxsize=4096)
def _visible(character: str) -> str:
    if character == " ":
        return SPACE
    if character == "\n":
        return NEWLINE
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no character by itself
        return f"⟨0x{code - 0xDC00:02X}⟩"
    return f"⟨U+{code:04X}⟩" if unicodedata.category(character) in INVISIBLE else character
