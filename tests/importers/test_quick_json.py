"""The quick reader of JSON and the one that judges give the same values, or the quick one leaves the text alone."""

import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.errors import InvalidInput
from evalboard.importers import inspect_shape, json_files, quick_json

TEXTS = st.text(st.characters(exclude_categories=()) | st.sampled_from('[]{}"\\,:0\n'), max_size=12)
FLOATS = st.floats() | st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("d", struct.pack("Q", bits))[0])
NUMBERS = (
    FLOATS | st.integers() | st.integers(-(2**70), 2**70) | st.sampled_from([10**299, 10**300, 10**350, -(10**299)])
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
DIGITS = st.text("0123456789", min_size=1, max_size=40)
# Numbers as nobody's writer writes them, near what float64 can tell apart.
WRITTEN = st.builds(
    "{}{}.{}e{}".format, st.sampled_from(["", "-"]), st.integers(0, 10**25), DIGITS, st.integers(-330, 310)
)


def judged(text: bytes | str) -> Any:
    """What the slow parser makes of a text: its value to the bit, or its words."""
    try:
        return exact(json_files.parse_slowly(text, where="here"))
    except InvalidInput as refused:
        return refused.detail


def read(text: bytes | str) -> Any:
    try:
        return exact(json_files.parse_value(text, where="here"))
    except InvalidInput as refused:
        return refused.detail


def exact(value: Any) -> Any:
    """A value by which 1, 1.0 and True, 0.0 and -0.0 differ, and keys by their order."""
    if isinstance(value, dict):
        return [(key, exact(one)) for key, one in value.items()]
    if isinstance(value, list):
        return [exact(one) for one in value]
    return (type(value).__name__, value.hex() if isinstance(value, float) else value)


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
@pytest.mark.drawn
def test_both_readers_give_one_value(value: Any, is_ascii: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    assert read(text) == judged(text)
    encoded = text.encode("utf-8", "surrogatepass")
    assert read(encoded) == judged(encoded)


@given(WRITTEN)
@pytest.mark.drawn
def test_a_float_keeps_its_bits_however_it_is_written(text: str) -> None:
    assert read(text) == judged(text)
    value = float(text)
    if math.isfinite(value):
        assert quick_json.decode(text.encode()).hex() == value.hex()


@given(
    VALUES,
    st.integers(0, 400),
    st.sampled_from([b"", b'"', b"[", b"}", b"\\", b"0", b"-", b"e", b"\xff", b"\0", b"NaN"]),
)
@pytest.mark.drawn
def test_damage_is_refused_in_the_same_words(value: Any, at: int, put: bytes) -> None:
    text = json.dumps({"a": value, "b": [value]}).encode()
    at %= len(text)
    damaged = text[:at] + put + text[at + 1 :]
    assert read(damaged) == judged(damaged)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": 1, "b": 2, "a": [3]}',
        b'{"a": NaN, "b": [-Infinity, 1e999]}',
        b'\xef\xbb\xbf{"a": 1}',
        b'"\\ud800"',
        b'"\\"[[[\\\\"',
        b"[" * 64 + b"]" * 64,
        b"[" * 65 + b"]" * 65,
        b"[" * 100_000,
        b'["' + b"[" * 100 + b'"]',
        b'["' + b"]" * 100 + b'",' + b"[" * 64 + b"]" * 64 + b"]",
        b"9" * 300,
        b"9" * 301,
        b"-" + b"9" * 300,
        b'{"n": [1, ' + b"9" * 5000 + b"]}",
        b"0." + b"1" * 400,
        '{"é": 1}'.encode("utf-16"),
        b"",
    ],
)
def test_what_either_might_read_otherwise(text: bytes) -> None:
    assert read(text) == judged(text)


@given(VALUES)
@pytest.mark.drawn
def test_depth_is_that_of_the_value(value: Any) -> None:
    def nested(one: Any) -> int:
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else None
        return 0 if inner is None else 1 + max(map(nested, inner), default=0)

    assert quick_json.depth(json.dumps(value).encode()) == nested(value)


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        (b'{"other": "\xff", "id": 1}', False),  # passed over, and no UTF-8 all the same
        (b'{"other": ' + b"[" * 64 + b"]" * 64 + b', "id": 1}', False),
        (b'{"other": NaN, "id": 1}', False),
        (b'{"other": 1e999, "id": 1}', True),
        (
            b'{"events": 7, "id": 1}',
            False,
        ),  # of another kind than the shape has: returned whole, for its reader's words
    ],
)
def test_what_a_shape_passes_over_is_judged_too(text: bytes, is_read: bool) -> None:
    if is_read:
        assert json_files.parse(text, where="", shape=inspect_shape.SAMPLE) == {"id": 1}
        return
    with pytest.raises(quick_json.NeedsJudging):
        quick_json.decode(text, inspect_shape.SAMPLE)
    assert judged(text) == _in_shape(text)


def _in_shape(text: bytes) -> Any:
    try:
        return exact(json_files.parse(text, where="here", shape=inspect_shape.SAMPLE))
    except InvalidInput as refused:
        return refused.detail
