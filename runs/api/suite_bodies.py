"""The suite document as types, for the schema; evalboard.core.suite checks it, and docs/suites.md describes it."""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from evalboard.core import suite
from runs.api.schema_types import says

Slug = Annotated[str, says(pattern="^[a-z0-9][a-z0-9_-]{0,79}$")]
Title = Annotated[str, says(minLength=1, maxLength=suite.MAX_TITLE_CHARS)]
Texts = list[str]
ScorerIn = Annotated[dict[str, Any], says(description="`kind`, and what that kind takes: docs/suites.md")]


class MessageIn(TypedDict):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: NotRequired[Any]
    name: NotRequired[str]
    tool_calls: NotRequired[list[Any]]
    tool_call_id: NotRequired[str]


class CaseIn(TypedDict):
    """One case, with a prompt or messages. A list of targets means that any of them is right."""

    id: Annotated[str, says(minLength=1, maxLength=suite.MAX_ID_CHARS)]
    prompt: NotRequired[str]
    messages: NotRequired[Annotated[list[MessageIn], says(minItems=1, maxItems=suite.MAX_MESSAGES)]]
    tools: NotRequired[Annotated[list[dict[str, Any]], says(maxItems=suite.MAX_TOOLS)] | None]
    target: NotRequired[Any]
    scorer: NotRequired[ScorerIn | None]
    tags: NotRequired[Annotated[Texts, says(maxItems=suite.MAX_TAGS)] | None]
    group: NotRequired[str | None]
    reference: NotRequired[bool]


class PolicyOfSuiteIn(TypedDict):
    """The policy that the suite carries, for releases that name none."""

    slug: Slug
    title: NotRequired[str]
    rule: NotRequired[str]
    tolerance_points: NotRequired[float]
    guard_points: NotRequired[float]
    looks: NotRequired[list[int]]
    window_hours: NotRequired[float]


class SuiteIn(TypedDict):
    slug: Slug
    title: NotRequired[Title]
    max_tokens: NotRequired[Annotated[int, says(minimum=1, maximum=suite.MAX_TOKENS)]]
    stop: NotRequired[Annotated[Texts, says(maxItems=suite.MAX_STOPS)] | None]
    scorer: NotRequired[ScorerIn | None]
    policy: NotRequired[PolicyOfSuiteIn | None]
    cases: Annotated[list[CaseIn], says(minItems=1, maxItems=suite.MAX_CASES)]
