"""Parse suite documents, and check them in full before anything is stored (docs/suites.md)."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from evalboard.contract.suite_limits import (
    MAX_CASE_CHARS,
    MAX_CASES,
    MAX_GROUP_CHARS,
    MAX_ID_CHARS,
    MAX_MESSAGES,
    MAX_STOP_CHARS,
    MAX_STOPS,
    MAX_TAG_CHARS,
    MAX_TAGS,
    MAX_TEXT_CHARS,
    MAX_TITLE_CHARS,
    MAX_TOKENS,
    MAX_TOOLS,
)
from evalboard.core.digest import canonical_json, digest_bytes, digest_json
from evalboard.core.document import Problems, at, read_strict_json, storage_problems
from evalboard.core.errors import InvalidInput
from evalboard.core.images import Image, read_parts
from evalboard.core.scoring import KINDS, read_spec, target_problems
from evalboard.core.suite import policy
from evalboard.core.suite.policy import PolicySettings

DEFAULT_MAX_TOKENS = 256
RESERVED = ("new",)  # suites/new/ is a page of its own
MESSAGE_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id")
COMPLETION = "completion"  # the role of a text that a model continues; no chat template is applied

_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}\Z")
_ROLES = ("system", "developer", "user", "assistant", "tool")
NO_SCORER = "is missing, and the suite has no default scorer"
SCORER_ADVICE = f'; give the suite or the case one, such as {{"kind": "exact"}}: the kinds are {", ".join(KINDS)}'
_SUITE_FIELDS = ("slug", "title", "max_tokens", "stop", "scorer", "policy", "cases")
_POLICY_NAMES = ("slug", "title")
_PROMPTS = ("prompt", "messages", COMPLETION)  # a case has exactly one of them
CASE_FIELDS = ("id", *_PROMPTS, "input", "tools", "target", "scorer", "tags", "group", "reference")
_HEADER_FIELDS = ("title", "max_tokens", "stop", "scorer", "policy")


@dataclass(frozen=True, slots=True)
class CaseDocument:
    """One case. `index` counts from 0; `scorer` is None where the suite's default judges it.

    `target` is None where the scorer compares with nothing; a list means that any one is right. `input` is what of the
    prompt is the case's own, "" where that is the last user message. `images` are those that were sent in it, which the
    messages name by digest. `digest` covers everything but the index.
    """

    index: int
    id: str
    messages: tuple[dict[str, Any], ...]
    tools: list[dict[str, Any]] | None
    target: Any
    scorer: dict[str, Any] | None
    tags: tuple[str, ...]
    group: str
    is_reference: bool
    digest: str
    input: str = ""
    images: tuple[Image, ...] = ()

    @property
    def own_input(self) -> Any:
        """Return the case's own part of the prompt: its `input`, else the last (user) message."""
        by_user = (message for message in reversed(self.messages) if message["role"] == "user")
        return self.input or next(by_user, self.messages[-1]).get("content")


@dataclass(frozen=True, slots=True)
class PolicyDocument:
    """The policy that a suite carries, for releases that name none."""

    slug: str
    title: str
    settings: PolicySettings


@dataclass(frozen=True, slots=True)
class SuiteHead:
    """A suite version without its cases. `scorer` judges cases that have none of their own."""

    slug: str
    title: str
    max_tokens: int
    stop: tuple[str, ...]
    scorer: dict[str, Any] | None
    policy: PolicyDocument | None


@dataclass(frozen=True, slots=True)
class SuiteDocument(SuiteHead):
    """One suite version. `digest` covers its cases in order and how they are sent and scored.

    It covers neither names nor the policy: runs under another tolerance stay comparable.
    """

    cases: tuple[CaseDocument, ...]
    digest: str


def parse_suite(document: Mapping[str, Any], *, lines: Sequence[int] = ()) -> SuiteDocument:
    """Return the suite that a document describes; scorers come back complete.

    lines: of each case in the text that it was read from. Raises InvalidInput whose `fields` name up to 20 wrong fields
    by path, such as `cases[3].target`, or `line 5.target` where the lines are known.
    """
    problems = Problems()
    if not isinstance(document, Mapping):
        raise InvalidInput("A suite must be a JSON object.", fields={"": "must be an object"})
    head = read_head(document, problems)
    # A default that is wrong is named once, not once more for every case that relies on it.
    is_default_usable = head.scorer is not None or document.get("scorer") is None
    cases = _read_cases(document.get("cases"), head.scorer if is_default_usable else {}, problems, lines)
    problems.raise_if_any("The suite is not valid")
    digest = digest_suite(head, [case.digest for case in cases])
    own = {each.name: getattr(head, each.name) for each in fields(head)}
    return SuiteDocument(**own, cases=tuple(cases), digest=digest)


def read_head(document: Mapping[str, Any], problems: Problems) -> SuiteHead:
    """Return a suite document without its cases; problems are added to `problems`."""
    _refuse_unknown(document, _SUITE_FIELDS, "", problems)
    slug = _read_slug(document.get("slug"), "slug", problems)
    if slug in RESERVED:
        problems.add("slug", "is the address of the page that makes suites; choose another name")
    title = read_text(document.get("title", slug), "title", problems, at_least=1, at_most=MAX_TITLE_CHARS)
    max_tokens = _read_max_tokens(document.get("max_tokens", DEFAULT_MAX_TOKENS), problems)
    stop = _read_texts(document.get("stop"), "stop", problems, n=MAX_STOPS, at_most=MAX_STOP_CHARS)
    scorer = _read_scorer(document, "", problems)
    own_policy = _read_policy(document.get("policy"), problems)
    return SuiteHead(slug, title, max_tokens, tuple(stop), scorer, own_policy)


def digest_suite(head: SuiteHead, case_digests: Sequence[str]) -> str:
    """Return the digest of a suite version, from those of its cases in order."""
    limits = {"max_tokens": head.max_tokens, "stop": list(head.stop)}
    return digest_json({**limits, "scorer": head.scorer, "cases": list(case_digests)})


def digest_asked(max_tokens: int, stop: Sequence[str], case_digests: Sequence[str]) -> str:
    """Return the digest of what a suite version asks: it is equal where only the default scorer differs."""
    return digest_json({"max_tokens": max_tokens, "stop": list(stop), "cases": list(case_digests)})


def read_suite_json(text: str) -> Any:
    """Return the document in a JSON text. Raises InvalidInput for what strict JSON is not."""
    try:
        return read_strict_json(text.removeprefix("\ufeff"))
    except ValueError as error:
        raise InvalidInput(f"This is not a JSON document: {error}.") from None


def read_lines(text: str, problems: Problems, *, first: int = 1) -> list[tuple[int, dict[str, Any]]]:
    """Return (line number, object) for every non-blank line of JSONL. first: number of the first line."""
    rows = []
    # Not splitlines(): JSON strings may hold U+2028 and its like as they are.
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=first):
        if not line.strip() or problems.is_full:
            continue
        try:
            row = read_strict_json(line)
        except ValueError as error:
            problems.add(f"line {number}", f"is not JSON: {error}")
            continue
        if isinstance(row, dict):
            rows.append((number, row))
        else:
            problems.add(f"line {number}", "must be a JSON object")
    return rows


def read_header(header: Any, problems: Problems) -> dict[str, Any]:
    if not isinstance(header, dict):
        problems.add("suite", "must be an object")
        return {}
    _refuse_unknown(header, _HEADER_FIELDS, "suite", problems)
    return header


def _read_cases(
    rows: Any, default: dict[str, Any] | None, problems: Problems, lines: Sequence[int]
) -> list[CaseDocument]:
    if not isinstance(rows, list | tuple) or not rows:
        problems.add("cases", "must be a list of at least one case")
        return []
    if len(rows) > MAX_CASES:
        problems.add("cases", f"holds {len(rows)} cases; the most is {MAX_CASES}")
        return []
    cases: list[CaseDocument] = []
    first_at: dict[str, str] = {}
    for index, row in enumerate(rows):
        if problems.is_full:
            break
        path = f"line {lines[index]}" if lines else f"cases[{index}]"
        case = read_case(row, index, default, problems, path=path)
        if case is None:
            continue
        if case.id in first_at:
            problems.add(f"{path}.id", f"is the id of {first_at[case.id]} too")
        first_at.setdefault(case.id, path)
        cases.append(case)
    return cases


def read_case(
    row: Any, index: int, default: dict[str, Any] | None, problems: Problems, *, path: str
) -> CaseDocument | None:
    """Return one case; None if it has problems, which are added to `problems`. path: its path."""
    if not isinstance(row, Mapping):
        problems.add(path, "must be an object")
        return None
    n_before = problems.n_found
    for place, text in storage_problems(dict(row), path):
        problems.add(place, text)
    if problems.n_found > n_before:
        return None  # nothing below can be trusted to run on such values
    _refuse_unknown(row, CASE_FIELDS, path, problems)
    scorer = _read_scorer(row, path, problems)
    images: dict[str, Image] = {}
    content: dict[str, Any] = {
        "id": _read_id(row.get("id"), at(path, "id"), problems),
        "messages": tuple(_read_prompt(row, path, problems, images)),
        "tools": read_tools(row.get("tools"), at(path, "tools"), problems),
        "target": row.get("target"),
        "scorer": scorer,
        "tags": tuple(_read_texts(row.get("tags"), at(path, "tags"), problems, n=MAX_TAGS, at_most=MAX_TAG_CHARS)),
        "group": read_text(row.get("group", ""), at(path, "group"), problems, at_most=MAX_GROUP_CHARS),
        "is_reference": _read_flag(row.get("reference", False), at(path, "reference"), problems),
    }
    if row.get("input") is not None:  # of cases that name none, the digest is what it was before there was one
        content["input"] = read_text(row["input"], at(path, "input"), problems, at_least=1, at_most=MAX_TEXT_CHARS)
    if row.get("scorer") is None:
        scorer = default
    _check_target(row, scorer, path, problems)
    if problems.n_found > n_before:
        return None
    encoded = canonical_json(content)
    if len(encoded) > MAX_CASE_CHARS:
        problems.add(path, f"is longer than {MAX_CASE_CHARS} bytes as JSON")
        return None
    return CaseDocument(index=index, digest=digest_bytes(encoded), images=tuple(images.values()), **content)


def _check_target(row: Mapping[str, Any], scorer: dict[str, Any] | None, path: str, problems: Problems) -> None:
    if scorer is None:
        if row.get("scorer") is None:
            is_told = any(text.startswith(NO_SCORER) for text in problems.fields.values())
            problems.add(at(path, "scorer"), NO_SCORER if is_told else NO_SCORER + SCORER_ADVICE)
        return
    if not scorer:
        return  # the suite's default is wrong and has been named
    place = at(path, "target")
    if "target" not in row:
        if KINDS[scorer["kind"]].needs_target(scorer):
            problems.add(place, f"is missing; the scorer {scorer['kind']} compares with it")
        return
    for where, text in target_problems(scorer, row["target"], place):
        problems.add(where, text)


def _read_scorer(row: Mapping[str, Any], path: str, problems: Problems) -> dict[str, Any] | None:
    place = at(path, "scorer")
    spec = row.get("scorer")
    if spec is None:
        return None
    unsafe = list(storage_problems(spec, place))
    for where, text in unsafe:
        problems.add(where, text)
    return None if unsafe else read_spec(spec, place, problems)


def _read_policy(document: Any, problems: Problems) -> PolicyDocument | None:
    if document is None:
        return None
    if not isinstance(document, Mapping):
        problems.add("policy", "must be an object, or be left out")
        return None
    slug = _read_slug(document.get("slug"), "policy.slug", problems)
    title = read_text(document.get("title", slug), "policy.title", problems, at_least=1, at_most=MAX_TITLE_CHARS)
    settings = {name: value for name, value in document.items() if name not in _POLICY_NAMES}
    checked = policy.read_policy(settings, "policy", problems)
    return None if checked is None else PolicyDocument(slug, title, checked)


def _read_prompt(
    row: Mapping[str, Any], path: str, problems: Problems, images: dict[str, Image]
) -> list[dict[str, Any]]:
    if sum(name in row for name in _PROMPTS) != 1:
        problems.add(at(path, "prompt"), "exactly one of prompt, messages and completion must be given")
        return []
    if COMPLETION in row:
        place = at(path, COMPLETION)
        text = read_text(row[COMPLETION], place, problems, at_least=1, at_most=MAX_TEXT_CHARS)
        if row.get("tools") is not None:
            problems.add(at(path, "tools"), "cannot be given with completion: only a chat template offers tools")
        return [{"role": COMPLETION, "content": text}]
    if "prompt" in row:
        prompt = read_text(row["prompt"], at(path, "prompt"), problems, at_most=MAX_TEXT_CHARS)
        return [{"role": "user", "content": prompt}]
    return read_messages(row["messages"], at(path, "messages"), problems, images)


def write_prompt(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the field of a case document that these messages were read from."""
    return {COMPLETION: messages[0]["content"]} if is_completion(messages) else {"messages": messages}


def is_completion(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether a case's prompt is one text to continue, to which no chat template is applied."""
    return bool(messages) and messages[0].get("role") == COMPLETION


def read_messages(
    messages: Any, path: str, problems: Problems, images: dict[str, Image] | None = None
) -> list[dict[str, Any]]:
    """Return a list of chat messages. Problems are added to `problems`.

    images: to which their images are added; None where messages have text alone.
    """
    if not isinstance(messages, list) or not 1 <= len(messages) <= MAX_MESSAGES:
        problems.add(path, f"must be a list of 1 to {MAX_MESSAGES} messages")
        return []
    return [_read_message(message, f"{path}[{index}]", problems, images) for index, message in enumerate(messages)]


def _read_message(message: Any, path: str, problems: Problems, images: dict[str, Image] | None) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        problems.add(path, "must be an object with role and content")
        return {}
    _refuse_unknown(message, MESSAGE_FIELDS, path, problems)
    if message.get("role") not in _ROLES:
        problems.add(at(path, "role"), f"must be one of {', '.join(_ROLES)}")
    has_calls = message.get("tool_calls") is not None
    content = message.get("content")
    if images is not None and isinstance(content, list) and message.get("role") == "user":
        message = {**message, "content": read_parts(content, at(path, "content"), problems, images)}
    elif not (has_calls and message.get("content") is None):
        read_text(message.get("content"), at(path, "content"), problems, at_most=MAX_TEXT_CHARS)
    if has_calls and not isinstance(message["tool_calls"], list):
        problems.add(at(path, "tool_calls"), "must be a list")
    for name in ("name", "tool_call_id"):
        if name in message:
            read_text(message[name], at(path, name), problems, at_least=1, at_most=MAX_ID_CHARS)
    return dict(message)


def read_tools(tools: Any, path: str, problems: Problems) -> list[dict[str, Any]] | None:
    """Return a list of tools, None if there are none; problems are added to `problems`."""
    if tools is None:
        return None
    if not isinstance(tools, list) or not 1 <= len(tools) <= MAX_TOOLS:
        problems.add(path, f"must be a list of 1 to {MAX_TOOLS} tools, or be left out")
        return None
    for index, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        is_tool = isinstance(function, Mapping) and isinstance(function.get("name"), str) and bool(function["name"])
        if not is_tool or tool.get("type") != "function":
            problems.add(f"{path}[{index}]", 'must be {"type": "function", "function": {"name", …}}')
    return tools


def _read_slug(slug: Any, path: str, problems: Problems) -> str:
    if not isinstance(slug, str) or not _SLUG.match(slug):
        problems.add(path, "must be 1 to 80 characters a-z, 0-9, - and _, starting with a letter or digit")
        return ""
    return slug


def _read_max_tokens(value: Any, problems: Problems) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_TOKENS:
        problems.add("max_tokens", f"must be a whole number from 1 to {MAX_TOKENS}")
        return 0
    return value


def _read_id(value: Any, path: str, problems: Problems) -> str:
    case_id = read_text(value, path, problems, at_least=1, at_most=MAX_ID_CHARS)
    # Line separators count with the control characters: an id must stay on one line of a log.
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in case_id):
        problems.add(path, "must not hold control characters")
    return case_id


def read_text(value: Any, path: str, problems: Problems, *, at_least: int = 0, at_most: int) -> str:
    """Return a text of at_least to at_most characters; problems are added to `problems`."""
    if not isinstance(value, str) or not at_least <= len(value) <= at_most:
        problems.add(path, f"must be text of {at_least} to {at_most} characters")
        return ""
    for place, text in storage_problems(value, path):
        problems.add(place, text)
    return value


def _read_texts(value: Any, path: str, problems: Problems, *, n: int, at_most: int) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list | tuple) or len(value) > n:
        problems.add(path, f"must be a list of at most {n} texts")
        return []
    return [
        read_text(item, f"{path}[{index}]", problems, at_least=1, at_most=at_most) for index, item in enumerate(value)
    ]


def _read_flag(value: Any, path: str, problems: Problems) -> bool:
    if not isinstance(value, bool):
        problems.add(path, "must be true or false")
    return value is True


def _refuse_unknown(row: Mapping[str, Any], known: tuple[str, ...], path: str, problems: Problems) -> None:
    for name in row:
        if name not in known:
            problems.add(at(path, str(name)), f"is unknown; known are {', '.join(known)}")
