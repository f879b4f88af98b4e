"""What kinds of hits are called, and how many there are."""

from evalboard.contract.find import ANSWER, Hit, SearchResult
from evalboard.wording.numbers import counted

KIND_NAMES = {
    "run": "Run",
    "release": "Release",
    "suite": "Suite",
    "case": "Case",
    "token": "Token",
    "digest": "Digest",
    "request": "Request id",
    "label": "Label",
    "endpoint": "Endpoint",
    "stack": "Stack",
    ANSWER: "Answer",
}
PLURALS = {kind: f"{name.lower()}s" for kind, name in KIND_NAMES.items()}
GLYPHS = {  # of the kinds whose state has none
    "release": "queued",
    "suite": "lines",
    "case": "lines",
    "token": "flip",
    "digest": "hash",
    "request": "info",
    "label": "label",
    "endpoint": "rotation",
    "stack": "hash",
    ANSWER: "lines",
}


def glyph_of(hit: Hit) -> str:
    """Return the glyph of a hit's state where it has one, else that of its kind."""
    return hit.state.replace("_", "-") or GLYPHS[hit.kind]


def describe_result(result: SearchResult, *, n_shown: int) -> str:
    """Say how many hits are shown of how many: "9 of 14 hits"."""
    more = "more than " if result.is_more else ""
    if not result.n:
        return "nothing found"
    return (
        counted(n_shown, "hit")
        if result.n == n_shown and not more
        else f"{n_shown} of {more}{counted(result.n, 'hit')}"
    )
