"""JSON read at once by msgspec, where nothing in it needs judging; the rest is for `json_files`, which knows the words.

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
_QUOTE = ord('"')
_DIGITS_AS_ZERO = bytes.maketrans(b"0123456789", b"0" * 10)
_STEP = 20  # of so many characters one is looked at, to find the few texts that may hold a very long number


class NeedsJudging(ValueError):
    """The text may be no JSON that is read, or hold what is read as something else."""


def decode(text: bytes, shape: "msgspec.json.Decoder[Any]" = _ANYTHING) -> Any:
    """Return the value of a JSON text in UTF-8; of objects that the shape has as TypedDicts, the keys that it names.

    Raises NeedsJudging wherever `json_files` might read the text otherwise or refuse it, and where it fits no shape.
    """
    try:
        if not text.isascii():
            text.decode()
        value = shape.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise NeedsJudging from None
    if _may_hold_a_long_number(text) or depth(text) > MAX_DEPTH:
        raise NeedsJudging
    return value


def depth(text: bytes) -> int:
    """Return how deep the lists and objects of a JSON text are nested; the text must be JSON."""
    if b'\\"' in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = np.frombuffer(text.translate(None, _NEITHER_BRACKET_NOR_QUOTE), dtype=np.uint8)
    is_quote = marks == _QUOTE
    is_within_text = np.cumsum(is_quote, dtype=np.int32) & 1
    steps = (marks & 2).astype(np.int32) - 1  # 1 for what opens, -1 for what closes: this bit tells their codes apart
    steps[is_quote | is_within_text.astype(bool)] = 0
    return int(np.cumsum(steps).max(initial=0))


def _may_hold_a_long_number(text: bytes) -> bool:
    looked_at = text[::_STEP].translate(_DIGITS_AS_ZERO)
    return b"0" * (DIGITS_AT_MOST // _STEP - 1) in looked_at
