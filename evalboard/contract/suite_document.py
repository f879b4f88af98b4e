"""The suite document as it is sent; evalboard.core.suite checks it, and docs/suites.md describes it."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, optional, says
from evalboard.contract.suite_limits import (
    MAX_CASES,
    MAX_ID_CHARS,
    MAX_MESSAGES,
    MAX_STOPS,
    MAX_TAGS,
    MAX_TITLE_CHARS,
    MAX_TOKENS,
    MAX_TOOLS,
)

Slug = Annotated[str, says(pattern="^[a-z0-9][a-z0-9_-]{0,79}$")]
Title = Annotated[str, says(minLength=1, maxLength=MAX_TITLE_CHARS)]
Texts = tuple[str, ...]
ScorerIn = Annotated[dict[str, Any], says(description="`kind`, and its options (docs/suites.md)")]


class MessageIn(Contract):
    role: Annotated[str, says(enum=("system", "developer", "user", "assistant", "tool"))]
    content: Any = optional
    name: str = optional
    tool_calls: tuple[Any, ...] = optional
    tool_call_id: str = optional


class CaseIn(Contract):
    """One case, with a prompt, messages or a completion. A list of targets: any of them is right."""

    id: Annotated[str, says(minLength=1, maxLength=MAX_ID_CHARS)]
    prompt: str = optional
    completion: Annotated[
        str, says(minLength=1, description="a text to continue, given to the model without a chat template")
    ] = optional
    messages: Annotated[tuple[MessageIn, ...], says(minItems=1, maxItems=MAX_MESSAGES)] = optional
    input: Annotated[
        str | None, says(minLength=1, description="what of the prompt is the case's own; else the last user message")
    ] = optional
    tools: Annotated[tuple[dict[str, Any], ...], says(maxItems=MAX_TOOLS)] | None = optional
    target: Any = optional
    scorer: ScorerIn | None = optional
    tags: Annotated[Texts, says(maxItems=MAX_TAGS)] | None = optional
    group: str | None = optional
    reference: bool = optional


class PolicyOfSuiteIn(Contract):
    """The policy that the suite carries, for releases that name none."""

    slug: Slug
    title: str = optional
    rule: str = optional
    tolerance_points: float = optional
    guard_points: float = optional
    metric: str = optional
    looks: tuple[int, ...] = optional
    window_hours: float = optional


class SuiteIn(Contract):
    slug: Slug
    title: Title = optional
    max_tokens: Annotated[int, says(minimum=1, maximum=MAX_TOKENS)] = optional
    stop: Annotated[Texts, says(maxItems=MAX_STOPS)] | None = optional
    scorer: ScorerIn | None = optional
    policy: PolicyOfSuiteIn | None = optional
    cases: Annotated[tuple[CaseIn, ...], says(minItems=1, maxItems=MAX_CASES)]
