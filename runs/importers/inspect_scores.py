"""Inspect's scores as numbers from 0 to 1."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runs.importers.field_values import mapping, objects, shortened, text
from runs.importers.records import LoggedScore

# As Inspect's own metrics read a value: correct, partly correct, incorrect, no answer.
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def read_scores(sample: Mapping[str, Any]) -> dict[str, LoggedScore]:
    """Return a sample's scores by scorer. A score that is an object becomes one for each key, `scorer.key`.

    Raises InvalidInput, without the file's name.
    """
    found = {}
    for scorer, score in mapping(sample.get("scores"), "scores").items():
        given = mapping(score, f"scores.{scorer[:80]}")
        for name, value in _single(scorer, given.get("value")):
            found[name] = LoggedScore(_as_number(value), _words(value, given))
    return found


def in_order(found: Sequence[str], results: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the scorers' names, the main one first: the log's headline, else the first of its results.

    `found` are the names in the order in which samples had them, `results` is the log's. Raises InvalidInput, without
    the file's name.
    """
    listed = [mapping(results.get("headline"), "results.headline"), *objects(results.get("scores"), "results.scores")]
    for entry in listed:
        scorer, name = text(entry.get("scorer")), text(entry.get("name") or entry.get("score"))
        for candidate in (f"{scorer}.{name}", name, scorer):
            if candidate in found:
                return (candidate, *(other for other in found if other != candidate))
    return tuple(found)


def _single(scorer: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"{scorer}.{key}", item) for key, item in value.items())
    else:
        yield scorer, value


def _as_number(value: Any) -> float | None:
    """Return a score from 0 to 1, None for what is no number or lies outside."""
    if isinstance(value, str):
        value = _LETTERS.get(value, _WORDS.get(value.lower(), value))
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and 0 <= number <= 1 else None


def _words(value: Any, score: Mapping[str, Any]) -> str:
    """Return what the scorer said: its value, and its explanation or the answer that it read."""
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    why = text(score.get("explanation")) or text(score.get("answer"))
    return shortened(f"{said}: {why}" if why else said)
