"""Reasons of scores come back as they were, all of them and one at a time, and what is damaged is refused."""

import json
import struct

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from evalboard.core.trace import reasons
from evalboard.core.trace.case_columns import ColumnsDamaged

sentences = st.none() | st.text(st.characters())  # lone surrogates too: a model can say anything
PACKED = reasons.pack_reasons(["yes"])
FRAME = zstandard.compress(b'["yes"]')


def framed(frame: bytes) -> bytes:
    """Return a frame behind the directory that names it."""
    return PACKED[:4] + struct.pack("<2I", 4, len(frame)) + frame


@given(st.lists(sentences))
@example([])
@example([str(index) for index in range(2 * reasons.FRAME)])
@example([str(index) for index in range(2 * reasons.FRAME + 1)])
def test_reasons_come_back(said: list[str | None]) -> None:
    packed = reasons.pack_reasons(said)
    assert reasons.unpack_reasons(packed, len(said)) == said
    assert [_read_one(packed, len(said), index) for index in range(len(said))] == said


def _read_one(packed: bytes, n_cases: int, case_index: int) -> str | None:
    first, size, index = reasons.find_reason(packed[: reasons.directory_size(n_cases)], case_index)
    return reasons.unpack_frame_of_reasons(packed[first : first + size])[index]


def test_any_zstd_steps_over_the_directory() -> None:
    said = [str(index) for index in range(reasons.FRAME + 1)]
    texts = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True).decompress(reasons.pack_reasons(said))
    assert json.loads(texts.replace(b"][", b",")) == said


def test_one_is_found_in_its_own_frame() -> None:
    packed = reasons.pack_reasons(["a" * 100] * 3 * reasons.FRAME)
    directory = packed[: reasons.directory_size(3 * reasons.FRAME)]
    place = reasons.find_reason(directory, reasons.FRAME + 7)
    assert place.at == 7
    assert len(directory) < place.first < place.first + place.size < len(packed)


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        pytest.param(b"", "damaged", id="nothing"),
        pytest.param(FRAME, "they have no directory", id="no-directory-at-all"),
        pytest.param(framed(b"not zstd"), "damaged", id="not-zstd"),
        pytest.param(PACKED[:-1], "not what their directory says", id="cut-off"),
        pytest.param(PACKED + b"\x00", "not what their directory says", id="something-behind"),
        pytest.param(PACKED[:6], "directory is cut off", id="half-a-head"),
        pytest.param(PACKED[:10], "directory is cut off", id="half-a-directory"),
        pytest.param(PACKED[:8], "directory is cut off", id="no-directory"),
        pytest.param(PACKED[:4] + struct.pack("<5I", 12, 9, 3, 9, 0), "runs backwards", id="backwards"),
        pytest.param(PACKED[:4] + struct.pack("<2I", 4, 5) + b"stuff", "damaged", id="no-frame"),
        pytest.param(framed(FRAME[:-1]), "damaged", id="list-cut-off"),
        pytest.param(framed(FRAME + b"\x00"), "damaged", id="something-behind-a-list"),
        pytest.param(framed(zstandard.compress(b"[1]")), "not a list of sentences", id="a-number"),
        pytest.param(framed(zstandard.compress(b'{"a": "b"}')), "not a list of sentences", id="an-object"),
        pytest.param(framed(zstandard.compress(b"[")), "damaged", id="half-json"),
        pytest.param(framed(zstandard.compress(b'["\xff"]')), "damaged", id="not-utf-8"),
        pytest.param(reasons.pack_reasons(["a", "b"]), "there are 2 for 1 cases", id="one-too-many"),
        pytest.param(framed(zstandard.compress(bytes(reasons.MAX_REASONS_BYTES + 1))), "ask for", id="bomb"),
        pytest.param(
            framed(zstandard.ZstdCompressor(write_content_size=False).compress(json.dumps(["a"]).encode())),
            "ask for -1 bytes",
            id="size-not-told",
        ),
    ],
)
def test_damaged_reasons_are_refused(packed: bytes, words: str) -> None:
    with pytest.raises(ColumnsDamaged, match=words):
        reasons.unpack_reasons(packed, 1)


def test_a_case_beyond_the_last_frame_is_refused() -> None:
    with pytest.raises(ColumnsDamaged, match="none of case 256"):
        reasons.find_reason(PACKED, 256)


def test_frames_that_together_ask_for_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = reasons.pack_reasons(["a" * 100] * 2 * reasons.FRAME)
    monkeypatch.setattr(reasons, "MAX_REASONS_BYTES", 200 * reasons.FRAME)
    with pytest.raises(ColumnsDamaged, match="ask for"):
        reasons.unpack_reasons(packed)
    with pytest.raises(ValueError, match="more than"):
        reasons.pack_reasons(["a" * 100] * 2 * reasons.FRAME)
