"""Read JSON by msgspec if it needs no checks; else `json_files` reads it and words the problems.

msgspec gives what Python's own `json` gives: the last of a key given twice, floats to the bit, integers of any length.
It refuses more (numbers that are not finite, half a surrogate pair, a byte order mark), and does not look at what must
be refused or replaced here. What it passes over, for a shape that does not name it, it holds to JSON's grammar alone.
"""

from typing import Any

import msgspec
import numpy as np

from evalboard.core.document import MAX_DEPTH

DIGITS_AT_MOST = 300  # of an integer; see `json_files`

_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_NEITHER_BRACKET_NOR_QUOTE = bytes(set(range(256)) - set(b'[]{}"'))
_QUOTE, _BACKSLASH = b'"\\'
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")  # 1 for what opens, -1 for what closes
_DIGITS_AS_ZERO = bytes.maketrans(b"0123456789", b"0" * 10)
_STEP = 20  # of so many characters one is looked at, to find the few texts that may hold a very long number


class NeedsJudging(ValueError):
    """The text may be invalid JSON, or have a value that must be checked or replaced."""


def decode(text: bytes, shape: "msgspec.json.Decoder[Any]" = _ANYTHING) -> Any:
    """Return the value of a JSON text in UTF-8; TypedDicts of the shape keep only their keys.

    Raises NeedsJudging wherever `json_files` might read the text otherwise or refuse it, and where it fits no shape.
    """
    try:
        _check_utf8(text)
        value = shape.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise NeedsJudging from None
    if _may_hold_a_long_number(text) or depth(text) > MAX_DEPTH:
        raise NeedsJudging
    return value


def depth(text: bytes) -> int:
    """Return how deep the lists and objects of a JSON text are nested; the text must be JSON."""
    text = _without_escaped_quotes(text)
    # Two quotes with no bracket between them are a text without one, or the end of a text and the start of the next.
    marks = text.translate(None, _NEITHER_BRACKET_NOR_QUOTE).replace(b'""', b"")
    outside = b"".join(marks.split(b'"')[::2])
    steps = np.frombuffer(outside.translate(_STEPS), dtype=np.int8)
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def _without_escaped_quotes(text: bytes) -> bytes:
    if b"\\" not in text:
        return text
    chars = np.frombuffer(text, dtype=np.uint8)
    escaped = np.flatnonzero(chars == _BACKSLASH) + 1
    if (np.diff(escaped) == 1).any():  # a backslash behind another may itself be what is escaped
        return text.replace(b"\\\\", b"").replace(b'\\"', b"")
    quotes = escaped[chars[escaped] == _QUOTE]
    if not len(quotes):
        return text
    chars = chars.copy()
    chars[quotes] = _BACKSLASH
    return chars.tobytes()


def _check_utf8(text: bytes) -> None:
    """Raise UnicodeDecodeError for text that is not UTF-8.

    Only the characters outside ASCII are decoded, each with the one after it.
    """
    if text.isascii():
        return
    chars = np.frombuffer(text, dtype=np.int8)
    is_decoded = chars < 0
    is_decoded[1:] |= is_decoded[:-1]
    chars[is_decoded].tobytes().decode()


def _may_hold_a_long_number(text: bytes) -> bool:
    looked_at = text[::_STEP].translate(_DIGITS_AS_ZERO)
    return b"0" * (DIGITS_AT_MOST // _STEP - 1) in looked_at
