"""Pack byte groups into frames of zstd, and unpack them."""

from collections.abc import Sequence

import zstandard

from evalboard.core.errors import TraceDamaged
from evalboard.core.trace.cursor import AGAIN

LEVEL = 11  # what higher ones save, they take a fifth longer for (docs/formats.md)
MAX_WINDOW = 1 << 27


def pack(groups: Sequence[bytes]) -> bytes:
    """Return one zstd frame; each group ends a block, which gives it its own entropy table."""
    form = zstandard.ZstdCompressionParameters.from_level(
        LEVEL, source_size=max(sum(map(len, groups)), 1), write_content_size=0, write_checksum=0, write_dict_id=0
    )
    compressor = zstandard.ZstdCompressor(compression_params=form).compressobj()
    parts: list[bytes] = []
    for group in filter(None, groups):
        if parts:
            parts.append(compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
        parts.append(compressor.compress(group))
    return b"".join([*parts, compressor.flush()])


class Unpacker:
    """Unpacks frame after frame."""

    def __init__(self) -> None:
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)

    def __call__(self, frame: bytes, size: int) -> bytes:
        """Return the content of a frame.

        Raises TraceDamaged unless it has `size` bytes and nothing follows it.
        """
        try:
            content: bytes = self._decompressor.decompress(
                frame, max_output_size=max(size, 1), read_across_frames=False, allow_extra_data=False
            )
        except zstandard.ZstdError as error:
            raise TraceDamaged(f"The trace block cannot be unpacked ({error}). {AGAIN}") from error
        if len(content) != size:
            raise TraceDamaged(f"The trace block unpacks to {len(content)} bytes in place of {size}. {AGAIN}")
        return content
