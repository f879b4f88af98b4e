"""Choose the suite version of a log's responses: an existing one, or one made from the log."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evalboard.contract.suite_limits import MAX_STOP_CHARS, MAX_STOPS, MAX_TITLE_CHARS, MAX_TOKENS
from evalboard.core import scoring
from evalboard.core.digest import canonical_json
from evalboard.core.errors import Conflict, InvalidInput, NotFound
from evalboard.core.scoring import MAX_SOURCE_CHARS
from evalboard.core.suite import DEFAULT_MAX_TOKENS, RESERVED, is_completion, parse_suite
from evalboard.importers.records import LoggedCase, LoggedRun
from evalboard.wording.numbers import counted

MAX_SLUG = 80
UNKNOWN_PROMPT = "(The imported log does not hold this prompt.)"
NO_PROMPTS, NO_LIMIT = "The log does not hold the prompts of", "The log does not say how long answers may be"
MAX_BESIDE = 40  # of the tool's name behind a suite's, where that name is people's or another tool's
NAMESAKES = range(2, 10)
NAMED = 5
NUMBERS = re.compile(r"([0-9]+)")
VERSION = re.compile(r"v?\d")  # how the last word of a tool begins that is its version
# What a suite's messages may hold; a log has more, such as who wrote a message and when.
MESSAGE_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")

Message = dict[str, Any]
# A suite version: a stored record, or one in memory with the same attributes: suite.slug, number, digest, scorer.spec
# and scorer.digest.
Version = Any


class Shelf(Protocol):
    """Finds and stores suite versions."""

    def newest(self, slug: str, /) -> Version | None:
        """Return the newest version of a suite, None where there is no such suite."""
        ...

    def with_digest(self, digest: str, /) -> Iterable[Version]:
        """Return the versions with this content, the oldest first."""
        ...

    def newest_with(self, case_id: str, n_cases: int, /) -> Iterable[Version]:
        """Return versions of so many cases, this one among them, that are the newest of their suites."""
        ...

    def scored_by(self, slug: str, plan: Mapping[str, Any], /) -> Iterable[Version]:
        """Return the versions of a suite that a plan scores, the newest first."""
        ...

    def push(self, document: Mapping[str, Any], /) -> Version:
        """Store a suite document as its suite's newest version, or return the version that is equal."""
        ...

    def messages(self, version: Version, /) -> Mapping[str, Sequence[Message]]:
        """Return case id → prompt."""
        ...

    def indexes(self, version: Version, /) -> Mapping[str, int]:
        """Return case id → index."""
        ...

    def has_all(self, version: Version, digests: set[str], /) -> bool:
        """Tell whether a version has all cases of these digests."""
        ...


@dataclass(frozen=True, slots=True)
class MatchedSuite:
    """The chosen version, the place of each case of the log in it, and notes."""

    version: Version
    indexes: Mapping[str, int]
    notes: tuple[str, ...]


def place(logged: LoggedRun, suite: str | None, shelf: Shelf, *, source: str) -> MatchedSuite:
    """Find the suite version of a log, or make it.

    source: the digest of its import. Cases without prompts belong to it alone: equal ids are not equal questions.

    Raises NotFound for a named suite that is not there, and InvalidInput where the log's cases or prompts are not
    the suite's, or make no suite.
    """
    if suite is not None:
        version = shelf.newest(suite)
        if version is None:
            raise NotFound(f"There is no suite {suite}; push it, or leave the name out to make one from the log.")
        _refuse_other_cases(version, shelf.messages(version), logged)
        return _placed(version, logged, shelf, [])
    return _place_alone(logged, shelf, source)


def recorded_plan(logged: LoggedRun, name: str = "") -> dict[str, Any]:
    """Return the plan that represents a tool's scores of a name, or the absence of scores."""
    return scoring.plan(_recorded(logged, name), {})


def slug_of(text: str) -> str:
    """Return a name of a suite or an endpoint, made of any text."""
    slug = re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-_")
    return "unnamed" if slug in ("", *RESERVED) else slug[:MAX_SLUG]


def tool_of(logged: LoggedRun) -> str:
    """Return the tool that wrote a log, without its version."""
    words = logged.tool.rsplit(maxsplit=1)  # in linear time, however many spaces a log has there
    return words[0] if len(words) == 2 and VERSION.match(words[1]) else logged.tool


def own_slug(slug: str, logged: LoggedRun, shelf: Shelf) -> str:
    """Return the suite name for a log of this tool, distinct from suites of people or other tools."""
    beside = f"-{slug_of(tool_of(logged))[:MAX_BESIDE]}"
    names = (
        slug,
        *(f"{slug[: MAX_SLUG - len(more)]}{more}" for more in (beside, *(f"{beside}-{n}" for n in NAMESAKES))),
    )
    for name in names:
        version = shelf.newest(name)
        if version is None or _is_of_tool(version, logged):
            return name
    raise Conflict(f"Suites named {slug}, {slug}{beside} and so on are all of other tools. Name a suite for this log.")


def made_of(document: Mapping[str, Any], shelf: Shelf) -> Version | None:
    """Return the version that a log of these very cases made, under this name or another."""
    alike = list(shelf.with_digest(parse_suite(document).digest))
    return next((version for version in reversed(alike) if version.suite.slug == document["slug"]), None) or (
        alike[-1] if alike else None
    )


def _place_alone(logged: LoggedRun, shelf: Shelf, source: str) -> MatchedSuite:
    """Return the suite with these cases, of any name; else a version of the tool's own suite."""
    slug = slug_of(logged.slug)
    if not all(case.messages for case in logged.cases):
        own = own_slug(f"{slug[: MAX_SLUG - 9]}-{source[:8]}", logged, shelf)
        return _placed(shelf.push(make_document(own, logged)), logged, shelf, _notes(logged))
    pushed = shelf.newest(slug) if logged.has_texts else None  # whose scorer would read them
    if pushed is not None and not scoring.is_recorded(pushed.scorer.spec) and _is_of(pushed, logged, shelf):
        return _placed(pushed, logged, shelf, [])
    slug = own_slug(slug, logged, shelf)
    document = make_document(slug, logged)
    is_whole = logged.status == "finished" or logged.n_cases == len(logged.cases)
    if is_whole and (made := made_of(document, shelf)) is not None:
        return _placed(made, logged, shelf, _notes(logged))
    if is_whole and logged.has_texts and (pushed := _pushed_of(logged, shelf)) is not None:
        return _placed(pushed, logged, shelf, [])
    broken_off = None if is_whole else _that_holds(slug, document, logged, shelf)
    return _placed(broken_off or shelf.push(document), logged, shelf, _notes(logged))


def _pushed_of(logged: LoggedRun, shelf: Shelf) -> Version | None:
    """The newest version of a suite that people pushed, if it has these very cases: ids and prompts."""
    alike = shelf.newest_with(logged.cases[0].id, len(logged.cases))
    fit = (each for each in alike if not scoring.is_recorded(each.scorer.spec) and _is_of(each, logged, shelf))
    return next(fit, None)


def _placed(version: Version, logged: LoggedRun, shelf: Shelf, notes: Sequence[str]) -> MatchedSuite:
    known = shelf.indexes(version)
    return MatchedSuite(version, {case.id: known[case.id] for case in logged.cases}, tuple(notes))


def _refuse_other_cases(version: Version, known: Mapping[str, Sequence[Message]], logged: LoggedRun) -> None:
    lacking = [case.id for case in logged.cases if case.id not in known]
    if lacking:
        more = f" and {len(lacking) - NAMED} more" if len(lacking) > NAMED else ""
        text = f"{version} has no case {', '.join(lacking[:NAMED])}{more}, of which the log has responses."
        raise InvalidInput("The log is not one of this suite.", fields={"suite": text})
    other = [case.id for case in logged.cases if not _may_be_same(case, known[case.id])]
    if other:
        more = f"; so has {len(other) - 1} more" if len(other) > 1 else ""
        text = f"Case {other[0]} has another prompt in the log than in {version}{more}."
        raise InvalidInput("The log is not one of this suite.", fields={"suite": text})


def _is_of(version: Version, logged: LoggedRun, shelf: Shelf) -> bool:
    """Return whether a log has the version's cases; an interrupted one has some of them."""
    known = shelf.messages(version)
    if any(case.id not in known or not _may_be_same(case, known[case.id]) for case in logged.cases):
        return False
    return logged.status != "finished" or len(known) == len(logged.cases)


def _that_holds(slug: str, document: Mapping[str, Any], logged: LoggedRun, shelf: Shelf) -> Version | None:
    """Return the newest version from a whole log that includes this interrupted one."""
    digests = {case.digest for case in parse_suite(document).cases}
    versions = shelf.scored_by(slug, recorded_plan(logged, _main(logged)))
    return next((version for version in versions if shelf.has_all(version, digests)), None)


def _is_of_tool(version: Version, logged: LoggedRun) -> bool:
    spec, tool = version.scorer.spec, tool_of(logged)
    return scoring.is_recorded(spec) and f"{spec['default']['source']} ".startswith(f"{tool[:MAX_SOURCE_CHARS]} ")


def _may_be_same(case: LoggedCase, stored: Sequence[Message]) -> bool:
    """Return whether the prompts are equal as far as both are known."""
    if not case.messages or list(stored) == unknown_prompt():
        return True
    if is_completion(stored):  # which a log of /v1/completions has as one user message
        stored = [{**stored[0], "role": "user"}]
    return canonical_json(list(map(_message, case.messages))) == canonical_json(list(map(_message, stored)))


def make_document(slug: str, logged: LoggedRun) -> dict[str, Any]:
    """Return the suite document of a log's cases."""
    sent = logged.sampling
    return {
        "slug": slug,
        "title": (logged.title or slug)[:MAX_TITLE_CHARS],
        "max_tokens": sent["max_tokens"] if says_max_tokens(logged) else DEFAULT_MAX_TOKENS,
        "stop": [text for text in stops_of(sent) if 1 <= len(text) <= MAX_STOP_CHARS][:MAX_STOPS],
        "scorer": _recorded(logged, _main(logged)),
        "cases": [_case(case) for case in sorted(logged.cases, key=_place_of)],
    }


def _place_of(case: LoggedCase) -> list[Any]:
    """Return the sort key of a log's case: the tool's number, else the id with numbers as numbers."""
    parts = [(not part.isdigit(), int(part) if part.isdigit() else part) for part in NUMBERS.split(case.id) if part]
    return [case.index is None, case.index or 0, parts, case.id]


def stops_of(sampling: Mapping[str, Any]) -> list[str]:
    """Return the texts at which an answer was to end: a log has one text, or a list."""
    given = sampling.get("stop")
    listed = [given] if isinstance(given, str) else given if isinstance(given, list | tuple) else []
    return [text for text in listed if isinstance(text, str) and text]


def _case(case: LoggedCase) -> dict[str, Any]:
    messages = list(map(_message, case.messages)) or unknown_prompt()
    row: dict[str, Any] = {"id": case.id, "messages": messages, "target": case.target}
    own_input = {"input": case.input} if case.input and case.messages else {}
    return row | own_input | ({"tools": list(case.tools)} if case.tools else {})


def _message(given: Mapping[str, Any]) -> Message:
    """Return a message as suites store it, with content parts joined to text."""
    message = {name: given[name] for name in MESSAGE_FIELDS if given.get(name) not in (None, "", [])}
    content = given.get("content")
    if isinstance(content, list):
        parts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
        content = "".join(part for part in parts if isinstance(part, str))
    return message | {"role": given.get("role", "user"), "content": content or ""}


def unknown_prompt() -> list[Message]:
    """Return the placeholder for a prompt that is not in a log."""
    return [{"role": "user", "content": UNKNOWN_PROMPT}]


def _main(logged: LoggedRun) -> str:
    return logged.scorers[0] if logged.scorers else ""


def _recorded(logged: LoggedRun, name: str) -> dict[str, Any]:
    """Return the spec of recorded scores, without the tool's version.

    Logs of two versions would never be comparable, and their scores rarely differ.
    """
    return {"kind": "recorded", "source": f"{tool_of(logged)} {name}".strip()[:MAX_SOURCE_CHARS]}


def says_max_tokens(logged: LoggedRun) -> bool:
    """Tell whether a log has the token limit of its answers."""
    most = logged.sampling.get("max_tokens")
    return type(most) is int and 1 <= most <= MAX_TOKENS


def _notes(logged: LoggedRun) -> list[str]:
    notes = []
    if n := sum(not case.messages for case in logged.cases):
        notes.append(f"{NO_PROMPTS} {counted(n, 'case')}; in the suite a sentence says so.")
    if not says_max_tokens(logged):
        notes.append(f"{NO_LIMIT}; the suite says {DEFAULT_MAX_TOKENS} tokens.")
    if not logged.scorers:
        until = "until it is scored with a scorer" if logged.has_texts else "and no scorer can give it any"
        notes.append(f"The log holds no scores; the run has none {until}.")
    return notes
