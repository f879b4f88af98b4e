"""The `regex` scorer. RE2 matches in time linear in the text, whatever pattern a suite brings."""

import functools
from typing import Any

import re2

from evalboard.core.document import Problems
from evalboard.core.scoring.kind import (
    REQUIRED,
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
from evalboard.core.scoring.reasons import first_difference, shown, shown_any

MAX_PATTERN_CHARS = 1000
MAX_PATTERN_MEMORY = 2 << 20  # bytes; RE2 refuses a pattern whose program and automata outgrow it
MAX_MATCHED_CHARS = 200_000  # linear time in the text is still seconds for the worst of patterns


@functools.lru_cache(maxsize=512)
def compiled(pattern: str, ignore_case: bool = False) -> Any:
    """Return the RE2 program of a pattern. Raises re2.error where RE2 refuses it."""
    how = re2.Options()
    how.log_errors = False  # the refusal is reported to the person, not to the process's stderr
    how.max_mem = MAX_PATTERN_MEMORY
    how.case_sensitive = not ignore_case
    return re2.compile(pattern, how)


def read_pattern(value: Any, path: str, problems: Problems) -> Any:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_PATTERN_CHARS:
        problems.add(path, f"must be a pattern of 1 to {MAX_PATTERN_CHARS} characters")
        return value
    try:
        compiled(value)
    except (re2.error, UnicodeEncodeError) as error:
        problems.add(path, f"is not a pattern that RE2 accepts: {_words_of(error)}")
    return value


def _read_group(value: Any, path: str, problems: Problems) -> Any:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not is_number and not isinstance(value, str):
        problems.add(path, "must be the number or the name of a group, or null")
    return value


def _conflict(options: Options) -> str | None:
    group = options["group"]
    if group is None:
        return None
    program = compiled(options["pattern"])
    is_known = group in program.groupindex if isinstance(group, str) else 0 <= group <= program.groups
    return None if is_known else f"the pattern has no group {group!r}"


def _score(options: Options, text: str, targets: list[Any], _tools: Tools) -> Score:
    if len(text) > MAX_MATCHED_CHARS:
        return failed(
            f"The answer has {len(text)} characters; patterns are matched against at most {MAX_MATCHED_CHARS}."
        )
    program = compiled(options["pattern"], options["ignore_case"])
    match = program.fullmatch(text) if options["match"] == "full" else program.search(text)
    if match is None:
        return failed(f"The pattern {shown(options['pattern'])} does not match {shown(text)}.")
    if options["group"] is None:
        return passed(f"The pattern matches {shown(match.group(0))}.")
    how = options["normalise"]
    group = match.group(options["group"])
    if group is None:
        return failed(f"The pattern matches, but its group {options['group']!r} took no part.")
    answer = normalise(group, how)
    wanted = [normalise(target, how) for target in targets]
    if answer in wanted:
        return passed(f"The pattern found {shown(answer)}, an accepted answer.", answer or None)
    difference = f"not {shown_any(wanted)}; {first_difference(answer, wanted)}"
    return failed(f"The pattern found {shown(answer)}, {difference}.", answer or None)


def _words_of(error: Exception) -> str:
    words = error.args[0] if error.args else str(error)
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)


REGEX = ScorerKind(
    name="regex",
    version=1,
    options={
        "pattern": Option(REQUIRED, read_pattern),
        "match": Option("search", one_of("search", "full")),
        "ignore_case": Option(False, flag),
        "group": Option(None, _read_group),
        "normalise": normalise_option(),
    },
    target_problem=text_target_problem,
    score=_score,
    needs_target=lambda options: options["group"] is not None,
    conflict=_conflict,
    reads_answers=lambda options: options["group"] is not None,
)
