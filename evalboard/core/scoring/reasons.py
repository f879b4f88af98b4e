"""Parts of the sentences that explain a score."""

import json
import re
from typing import Any

WORD_CHARS = 16  # before a difference that are shown, back to the start of the word
SHOWN_CHARS = 60
SHOWN_TARGETS = 3
VALUE = re.compile(r'"(?:[^"\\]|\\.)*?(?:"|…(?=[,;. ]|$))')  # a string, which `shown` may have cut
# What went wrong, by the sentence of a scorer without its values; the first that fits.
FAILURES = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"^Not JSON|is not JSON|^The JSON is nested", "not JSON"),
        (r"inside its thinking|is kept apart as thinking", "no answer after its thinking"),
        (r"answer is empty", "empty answer"),
        (r"lacks the key|argument +(\w+ )?is missing", "missing key"),
        (r"unexpected key|is not expected", "unexpected key"),
        (r"it calls|^There are \d+ calls|already matches", "another call"),
        (r"breaks the schema", "outside the schema"),
        (r"^\$.* items, expected|(^\$|argument).* is .*, expected", "wrong value"),
        (r"^Read |^There (is no|are \d+) number|number .* too long", "wrong number"),
        (r"^Chose|^No letter", "another choice"),
        (r"pattern", "no match of the pattern"),
        (r" lacks| does not contain", "expected text missing"),
        (r" is not |^Expected .*, got ", "another answer"),
    )
)


def shown(value: Any, limit: int = SHOWN_CHARS) -> str:
    """Return a value as short JSON, control characters escaped, cut where it is long."""
    if isinstance(value, str):
        cut = value[:limit]
        return json.dumps(cut, ensure_ascii=False) + ("…" if len(value) > limit else "")
    try:
        text = json.dumps(value, ensure_ascii=False)
    except ValueError:
        return "a number too long to show"
    if len(text) <= limit:
        return text
    cut = text[:limit]
    has_half_escape = (len(cut) - len(cut.rstrip("\\"))) % 2
    return cut[: limit - has_half_escape] + "…"


def shown_any(targets: list[Any]) -> str:
    """Return 'a or b or c', naming at most SHOWN_TARGETS of them."""
    first = " or ".join(shown(target) for target in targets[:SHOWN_TARGETS])
    n_more = len(targets) - SHOWN_TARGETS
    return f"{first} or {n_more} more" if n_more > 0 else first


def first_difference(actual: str, wanted: list[str]) -> str:
    """Say where a text leaves the accepted text that it follows longest. Characters count from 1."""
    nearest = max(wanted, key=lambda text: _shared(actual, text))
    position = _shared(actual, nearest)
    if position == len(actual):
        return f"it ends after {position} characters, where {shown(nearest[position:], 20)} should follow"
    if position == len(nearest):
        return f"it goes on with {shown(actual[position:], 20)} after the {position} expected characters"
    return f"first difference at character {position + 1}: {shown(actual[position])} for {shown(nearest[position])}"


def expected_and_got(actual: str, wanted: list[str]) -> str:
    """Return both texts from the word where a long text leaves the accepted text nearest to it."""
    nearest = max(wanted, key=lambda text: _shared(actual, text))
    position = _shared(actual, nearest)
    start = next((at + 1 for at in reversed(range(position)) if not nearest[at].isalnum()), 0)
    start = start if position - start <= WORD_CHARS else position
    rest, other = nearest[start:], actual[start:]
    place = f"; first difference at character {position + 1}" if position else ""
    return f"Expected {shown(rest) if rest else 'the end'}, got {shown(other) if other else 'the end'}{place}"


def failure_kind(reason: str) -> str:
    """Return in two words what went wrong, by a failed score's reason; "" if it is none of FAILURES."""
    sentence = VALUE.sub("", reason)
    return next((kind for pattern, kind in FAILURES if pattern.search(sentence)), "")


def _shared(left: str, right: str) -> int:
    """Return the length of the common prefix."""
    for position, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return position
    return min(len(left), len(right))
