"""The `choice` scorer: the letter of the chosen option."""

import functools
import re
from dataclasses import dataclass
from typing import Any

from evalboard.core.document import Problems
from evalboard.core.scoring.kind import Option, Options, Score, ScorerKind, Tools, failed, flag, one_of, passed
from evalboard.core.scoring.reasons import shown, shown_any

MAX_LETTERS = 26
_WRAP = "[*_\"'`]{0,3}"  # what models put round a letter for emphasis
_GAP = r"\s{0,5}"  # bounded, so that runs of spaces cannot be split in many ways


@dataclass(frozen=True, slots=True)
class _Patterns:
    """The three ways in which an answer names its letter, in the order in which they are tried."""

    marked: re.Pattern[str]  # (A)  [A]  A)  A.  A:  or a line that is only A
    phrase: re.Pattern[str]  # the answer is A
    bare: re.Pattern[str]  # A followed by more words


@functools.lru_cache(maxsize=256)
def _patterns(letters: str, ignore_case: bool) -> _Patterns:
    one = f"[{letters}{letters.lower() if ignore_case else ''}]"
    start = rf"\A\s*{_WRAP}"
    marked = rf"{start}(?:\((?P<round>{one})\)|\[(?P<square>{one})\]|(?P<plain>{one}){_WRAP}(?:[).:,\]]|\s*(?:\n|\Z)))"
    phrase = (
        rf"(?i:\banswer){_WRAP}{_GAP}(?i:is|:|=|would{_GAP}be){_WRAP}:?{_GAP}(?i:option|choice|letter)?{_GAP}"
        rf"{_WRAP}[(\[]?(?P<plain>{one})(?![\w'’])"
    )
    bare = rf"{start}(?P<plain>{one}){_WRAP}\s"
    return _Patterns(re.compile(marked), re.compile(phrase), re.compile(bare))


def _chosen(text: str, options: Options) -> tuple[str, str] | None:
    """Return (letter, where it was read) or None."""
    patterns = _patterns(options["letters"], options["ignore_case"])
    if match := patterns.marked.search(text):
        return _letter(match), "at the start"
    phrases = list(patterns.phrase.finditer(text))
    if phrases:
        return _letter(phrases[-1] if options["which"] == "last" else phrases[0]), "after 'answer'"
    if options["bare"] and (match := patterns.bare.search(text)):
        return _letter(match), "as the first word"
    return None


def _letter(match: re.Match[str]) -> str:
    return next(letter for letter in match.groups() if letter).upper()


def _score(options: Options, text: str, targets: list[Any], _tools: Tools) -> Score:
    chosen = _chosen(text, options)
    if chosen is None:
        return failed(f"No letter of {options['letters']} can be read as the choice in {shown(text)}.")
    letter, place = chosen
    if letter in targets:
        return passed(f"Chose {letter}, read {place}.", letter)
    return failed(f"Chose {letter}, read {place}; expected {shown_any(targets)}.", letter)


def _read_letters(value: Any, path: str, problems: Problems) -> Any:
    is_text = isinstance(value, str) and 2 <= len(value) <= MAX_LETTERS
    if not is_text or not (value.isascii() and value.isalpha() and value.isupper()) or len(set(value)) < len(value):
        problems.add(path, "must be 2 to 26 different capital letters A to Z")
        return value
    return "".join(sorted(value))


def _target_problem(options: Options, target: Any) -> str | None:
    if isinstance(target, str) and len(target) == 1 and target in options["letters"]:
        return None
    return f"must be one of the letters {options['letters']}, or a list of them of which any one is right"


CHOICE = ScorerKind(
    name="choice",
    version=1,
    options={
        "letters": Option("ABCD", _read_letters),
        "ignore_case": Option(False, flag),
        "bare": Option(True, flag),
        "which": Option("first", one_of("first", "last")),
    },
    target_problem=_target_problem,
    score=_score,
)
