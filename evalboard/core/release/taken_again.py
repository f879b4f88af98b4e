"""Tell whether a verdict that was stored is the one that its evidence gives."""

import json
import math
from collections.abc import Mapping
from typing import Any

from evalboard.core.digest import canonical_json, digest_json
from evalboard.core.release.gate_verdict import FIRST_VERDICT_RULES

# What was tried and signed meanwhile changes a verdict's warnings, and nothing else of it.
MOVES = "warnings"
# Two machines may add the same numbers in another order; a forged number differs by more.
CLOSE = 1e-9


def find_change(word: str, document: Mapping[str, Any], taken_again: Mapping[str, Any]) -> str:
    """Say in a sentence how a stored verdict differs from judging again; "" if equal."""
    given = json.loads(canonical_json(taken_again))
    if word != given["verdict"]:
        return f"it says {word}, and recomputed it is {given['verdict']}."
    if place := _first_difference({"rules": FIRST_VERDICT_RULES, **document}, given, ""):
        return f"its field {place} differs when it is recomputed."
    return ""


def digest_verdict(word: str, document: Mapping[str, Any], policy: Mapping[str, Any]) -> str:
    """Return the digest of a verdict and its policy, which a sign-off covers.

    policy: its slug, version and settings.
    """
    return digest_json({"word": word, "document": document, "policy": policy})


def _first_difference(stored: Any, given: Any, place: str) -> str:
    """Return the path of the first value that differs, warnings aside; "" where none does."""
    if isinstance(stored, dict) and isinstance(given, dict):
        names = sorted((stored.keys() | given.keys()) - {MOVES})
        inner = ((stored.get(name), given.get(name), f"{place}.{name}" if place else name) for name in names)
    elif isinstance(stored, list) and isinstance(given, list) and len(stored) == len(given):
        inner = ((*pair, f"{place}[{at}]") for at, pair in enumerate(zip(stored, given, strict=True)))
    else:
        return "" if _is_same(stored, given) else place
    return next(filter(None, (_first_difference(*each) for each in inner)), "")


def _is_same(stored: Any, given: Any) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (stored, given)]
    if all(numbers):
        return math.isclose(stored, given, rel_tol=CLOSE, abs_tol=CLOSE)
    return bool(stored == given)
