"""Scorers that compare wording: `exact` and `contains`."""

from typing import Any

from evalboard.core.scoring.kind import (
    Option,
    Options,
    Score,
    ScorerKind,
    Tools,
    failed,
    flag,
    one_of,
    passed,
    text_target_problem,
)
from evalboard.core.scoring.normalise import normalise, normalise_option
from evalboard.core.scoring.reasons import SHOWN_CHARS, expected_and_got, first_difference, shown, shown_any

MAX_WORD_CHARS = 1000  # of a target with `words`: bounds the work per place where it is found

_PART = Option("all", one_of("all", "first_line", "last_line", "first_word", "last_word"))


def select_part(text: str, part: str) -> str:
    """Return the part of a response that is compared.

    Lines are the non-empty ones; words end at whitespace.
    """
    if part == "all":
        return text
    pieces = text.split(maxsplit=1) if part == "first_word" else text.split()
    if part in ("first_line", "last_line"):
        pieces = [line for line in text.split("\n") if line.strip()]
    if not pieces:
        return ""
    return pieces[0] if part.startswith("first") else pieces[-1]


def _score_exact(options: Options, text: str, targets: list[Any], _tools: Tools) -> Score:
    how = options["normalise"]
    answer = normalise(select_part(text, options["part"]), how)
    wanted = [normalise(target, how) for target in targets]
    if answer in wanted:
        return passed(f"{shown(answer)} is an accepted answer.", answer or None)
    if not answer:
        return failed(f"Nothing to compare: the answer is empty; expected {shown_any(wanted)}.")
    if max(len(answer), *map(len, wanted)) > SHOWN_CHARS:  # else both would be cut before they differ
        return failed(f"{expected_and_got(answer, wanted)}.", answer)
    return failed(f"{shown(answer)} is not {shown_any(wanted)}; {first_difference(answer, wanted)}.", answer)


def _score_contains(options: Options, text: str, targets: list[Any], _tools: Tools) -> Score:
    how = options["normalise"]
    answer = normalise(select_part(text, options["part"]), how)
    wanted = [normalise(target, how) for target in targets]
    if "" in wanted:
        return failed("A target is empty after normalisation, so nothing can be looked for.")
    present = [target for target in wanted if _occurs(target, answer, options["words"])]
    if options["require"] == "all":
        absent = [target for target in wanted if target not in present]
        if absent:
            return failed(f"{shown(answer)} lacks {shown(absent[0])} ({len(present)} of {len(wanted)} are there).")
        return passed(f"All {len(wanted)} expected texts are in the answer.")
    if present:
        return passed(f"{shown(present[0])} is in the answer.")
    return failed(f"{shown(answer)} does not contain {shown_any(wanted)}.")


def _occurs(target: str, text: str, as_words: bool) -> bool:
    start = text.find(target)
    if not as_words:
        return start >= 0
    while start >= 0:
        end = start + len(target)
        is_whole = not _is_word_char(text[start - 1 : start]) and not _is_word_char(text[end : end + 1])
        if is_whole:
            return True
        start = text.find(target, start + 1)
    return False


def _is_word_char(char: str) -> bool:
    return char.isalnum() or char == "_"


def _contains_target_problem(options: Options, target: Any) -> str | None:
    if problem := text_target_problem(options, target):
        return problem
    if not normalise(target, options["normalise"]):
        return "is empty after normalisation; every response would contain it"
    if options["words"] and len(target) > MAX_WORD_CHARS:
        return f"is longer than {MAX_WORD_CHARS} characters, too long to look for as whole words"
    return None


EXACT = ScorerKind(
    name="exact",
    version=1,
    options={"part": _PART, "normalise": normalise_option()},
    target_problem=text_target_problem,
    score=_score_exact,
)

CONTAINS = ScorerKind(
    name="contains",
    version=1,
    options={
        "part": _PART,
        "require": Option("any", one_of("any", "all")),
        "words": Option(False, flag),
        "normalise": normalise_option(),
    },
    target_problem=_contains_target_problem,
    score=_score_contains,
    reads_answers=lambda _: False,
)
