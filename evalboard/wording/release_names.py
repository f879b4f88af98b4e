"""Verdicts as people read them: one spelling in sentences, on pages and badges, on the command line and in messages.

The codes, `no_ship` and `not_comparable`, are for fields that programs read.
"""

NAMES = {
    "ship": "ship",
    "no_ship": "no-ship",
    "inconclusive": "inconclusive",
    "not_comparable": "not comparable",
}


def verdict_name(verdict: str) -> str:
    """Return "no-ship" for "no_ship"; a word that a newer server knows stays as it is."""
    return NAMES.get(verdict, verdict)
