"""What a kind of scorer is made of: its options, what targets it takes, and how it scores."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evalboard.core.document import Problems

MAX_REASON_CHARS = 400

Reader = Callable[[Any, str, Problems], Any]
Options = Mapping[str, Any]
Tools = list[dict[str, Any]] | None


class _Required:
    """Marks an option that a spec must give."""


REQUIRED: Final = _Required()


@dataclass(frozen=True, slots=True)
class Score:
    """A score from 0 to 1 and its reason.

    answer: what was read from the response and compared, normalised so that equal answers are equal; None if nothing
    was read, or the kind compares no answers.
    """

    value: float
    reason: str
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a scorer: its default, and the reader that checks a given value.

    The reader returns the value in its one canonical form, or adds to the problems.
    """

    default: Any
    read: Reader


@dataclass(frozen=True, slots=True)
class ScorerKind:
    """One kind of scorer.

    `version` is part of every scorer digest: raise it with any change that could move a score.
    `target_problem` says what is wrong with one target, or None. `score` sees checked options and
    targets only, and a list that holds at least one target where `needs_target` says so.
    `conflict` says which options contradict each other, or None. `reads_answers` says whether a score names the answer
    that it read, so that two responses can be told to give one answer. `reads_calls`: of an answer with calls it reads
    those and not the words. `scores_here`: a
    rule of ours scores; where none does, `score` refuses. `is_external`: a worker runs it.
    """

    name: str
    version: int
    options: Mapping[str, Option]
    target_problem: Callable[[Options, Any], str | None]
    score: Callable[[Options, str, list[Any], Tools], Score]
    needs_target: Callable[[Options], bool] = lambda _: True
    conflict: Callable[[Options], str | None] = lambda _: None
    reads_answers: Callable[[Options], bool] = lambda _: True
    reads_calls: bool = False
    scores_here: bool = True
    is_external: bool = False


def passed(reason: str, answer: str | None = None) -> Score:
    return Score(1.0, capped(reason), answer)


def failed(reason: str, answer: str | None = None) -> Score:
    return Score(0.0, capped(reason), answer)


def one_of(*allowed: str) -> Reader:
    def read(value: Any, path: str, problems: Problems) -> Any:
        if not isinstance(value, str) or value not in allowed:
            problems.add(path, f"must be one of {', '.join(repr(word) for word in allowed)}")
        return value

    return read


def flag(value: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, bool):
        problems.add(path, "must be true or false")
    return value


def not_negative(value: Any, path: str, problems: Problems) -> Any:
    """Read a finite number of at least 0, as a float, so that 1 and 1.0 have one digest."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= 1e300 or not math.isfinite(value):
        problems.add(path, "must be a number of at least 0")
        return value
    return float(value)


def text_of(*, at_least: int = 0, at_most: int) -> Reader:
    def read(value: Any, path: str, problems: Problems) -> Any:
        if not isinstance(value, str) or not at_least <= len(value) <= at_most:
            problems.add(path, f"must be text of {at_least} to {at_most} characters")
        return value

    return read


def or_none(reader: Reader) -> Reader:
    return lambda value, path, problems: None if value is None else reader(value, path, problems)


def number_from(least: float, most: float) -> Reader:
    def read(value: Any, path: str, problems: Problems) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not is_number or not least <= value <= most:
            problems.add(path, f"must be a number from {least:g} to {most:g}")
            return value
        return float(value)

    return read


def whole_from(least: int, most: int) -> Reader:
    def read(value: Any, path: str, problems: Problems) -> Any:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            problems.add(path, f"must be a whole number from {least} to {most}")
        return value

    return read


def text_target_problem(_options: Options, target: Any) -> str | None:
    return None if isinstance(target, str) else "must be text, or a list of texts of which any one is right"


def capped(reason: str) -> str:
    """Return the reason as it can be stored: whole characters, and not too many."""
    # Reasons quote responses and targets; what PostgreSQL cannot store must not travel with them.
    clean = reason.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    return clean if len(clean) <= MAX_REASON_CHARS else clean[: MAX_REASON_CHARS - 1] + "…"
