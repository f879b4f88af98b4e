"""Spell verdicts: one spelling in sentences, pages, badges, the command line and messages.

The codes, `no_ship` and `not_comparable`, are for fields that programs read.
"""

NAMES = {
    "ship": "ship",
    "no_ship": "no-ship",
    "inconclusive": "inconclusive",
    "not_comparable": "not comparable",
}


def verdict_name(verdict: str) -> str:
    """Return "no-ship" for "no_ship"; a word that only a newer server knows is unchanged."""
    return NAMES.get(verdict, verdict)
