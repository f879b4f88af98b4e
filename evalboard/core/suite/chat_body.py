"""Read a recorded production request: a chat completion body for OpenAI's or vLLM's server.

Every field is either used for our engine or listed by name as not used: none is dropped silently.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalboard.contract.suite_limits import MAX_CASE_CHARS, MAX_STOP_CHARS, MAX_STOPS, MAX_TOKENS
from evalboard.core.digest import canonical_json
from evalboard.core.document import Problems, at, storage_problems
from evalboard.core.fields import SAMPLING_FIELDS, THINKING_FIELDS
from evalboard.core.suite.suite import MESSAGE_FIELDS, read_messages, read_text, read_tools

MAX_ALTERNATIVES = 20  # vLLM's own cap on logprobs
MIN_ALTERNATIVES = 2  # a margin needs two
LIMITS = ("max_completion_tokens", "max_tokens")  # the first one that is given counts, as vLLM has it
READ = ("model", "messages", "tools", "stop", "logprobs", "top_logprobs", *LIMITS)
_OF_PROFILE = (
    "logprobs",
    "reasoning_tags",
    "max_completion_tokens",
)  # fields of sampling that mean something else in a body, or nothing
# Fields that may hold a value which asks for nothing that is not done here anyway.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "stream": (False,),
    "tool_choice": ("auto",),
    "response_format": ({"type": "text"},),
    "logit_bias": ({},),
    "echo": (False,),
    "best_of": (1,),
    "use_beam_search": (False,),
    "store": (False,),
}
# They name who asks, or how the answer travels, and change no token.
_BESIDE_TOKENS = frozenset(
    {"user", "metadata", "stream", "stream_options", "store", "service_tier", "request_id", "priority"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatBody:
    """A recorded body as it is decoded here.

    model: as the body names it, "" where it does not. sampling: those fields of a profile's sampling that the body
    says, in place of the profile's. max_tokens: None where the body sets no limit. not_sent: names of the fields that
    no engine is given; of these `changes_tokens` could have changed the answer.
    """

    model: str
    messages: tuple[dict[str, Any], ...]
    tools: list[dict[str, Any]] | None
    sampling: Mapping[str, Any]
    max_tokens: int | None
    stop: tuple[str, ...]
    not_sent: tuple[str, ...]

    @property
    def changes_tokens(self) -> tuple[str, ...]:
        return tuple(name for name in self.not_sent if name not in _BESIDE_TOKENS)


def read_chat_body(body: Any) -> ChatBody:
    """Read the body of a chat completion.

    Raises InvalidInput whose fields are paths, such as `body.messages[0].role`. Fields that are null count as not
    given. Contents in parts are joined by line breaks, as vLLM joins them.
    """
    problems = Problems()
    if not isinstance(body, Mapping):
        problems.add("body", "must be an object, such as an OpenAI client sends")
        problems.raise_if_any("The request is not valid")
    given = {str(name): value for name, value in body.items() if value is not None}
    for path, text in storage_problems(given, "body"):
        problems.add(path, text)
    problems.raise_if_any("The request is not valid")
    if len(canonical_json(given)) > MAX_CASE_CHARS:
        problems.add("body", f"must have at most {MAX_CASE_CHARS:,} characters as JSON")
    messages, beside = _split_messages(given.get("messages"), problems)
    chat = ChatBody(
        model=str(given.get("model", "")),
        messages=tuple(read_messages(messages, "body.messages", problems)),
        tools=read_tools(given.get("tools") or None, "body.tools", problems),
        sampling=_read_sampling(given, problems),
        max_tokens=_read_limit(given, problems),
        stop=_read_stop(given.get("stop"), problems),
        not_sent=(*(name for name, value in given.items() if _is_left_out(name, value)), *beside),
    )
    problems.raise_if_any("The request is not valid")
    return chat


def _read_sampling(given: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    checks = {name: check for name, check in (SAMPLING_FIELDS | THINKING_FIELDS).items() if name not in _OF_PROFILE}
    sampling = {name: given[name] for name in checks if name in given and given[name] != {}}
    if sampling.get("top_k") == -1:
        sampling["top_k"] = 0  # vLLM's older spelling of "all of them"
    for name, value in sampling.items():
        if words := checks[name](value):
            problems.add(f"body.{name}", words)
    n_alternatives = given.get("top_logprobs", 0)
    if type(n_alternatives) is not int or not 0 <= n_alternatives <= MAX_ALTERNATIVES:
        problems.add("body.top_logprobs", f"Must be a whole number from 0 to {MAX_ALTERNATIVES}.")
    elif n_alternatives > MIN_ALTERNATIVES:
        sampling["logprobs"] = n_alternatives
    return sampling


def _read_limit(given: Mapping[str, Any], problems: Problems) -> int | None:
    name = next((each for each in LIMITS if each in given), None)
    if name is None:
        return None
    value = given[name]
    if type(value) is not int or not 1 <= value <= MAX_TOKENS:
        problems.add(f"body.{name}", f"Must be a whole number from 1 to {MAX_TOKENS:,}.")
        return None
    return value


def _read_stop(stop: Any, problems: Problems) -> tuple[str, ...]:
    texts = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(texts, list) or len(texts) > MAX_STOPS:
        problems.add("body.stop", f"must be a text, or a list of at most {MAX_STOPS} texts")
        return ()
    return tuple(
        read_text(text, f"body.stop[{index}]", problems, at_least=1, at_most=MAX_STOP_CHARS)
        for index, text in enumerate(texts)
    )


def _split_messages(messages: Any, problems: Problems) -> tuple[Any, list[str]]:
    """Return (messages with joined content parts, paths of the fields that no suite case has)."""
    if not isinstance(messages, list):
        return messages, []
    taken: list[Any] = []
    beside: list[str] = []
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping):
            taken.append(message)
            continue
        fields = {str(name): value for name, value in message.items() if value is not None}
        if isinstance(fields.get("content"), list):
            fields["content"] = _join_parts(fields["content"], f"body.messages[{index}].content", problems)
        taken.append({name: value for name, value in fields.items() if name in MESSAGE_FIELDS})
        beside += [f"messages[{index}].{name}" for name in fields if name not in MESSAGE_FIELDS]
    return taken, beside


def _join_parts(content: list[Any], path: str, problems: Problems) -> str:
    texts = []
    for index, part in enumerate(content):
        text = part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else None
        if not isinstance(text, str):
            problems.add(at(f"{path}[{index}]", "type"), "only parts of text are decoded here")
            continue
        texts.append(text)
    return "\n".join(texts)


def _is_left_out(name: str, value: Any) -> bool:
    if name in READ or (name in _NEUTRAL and value in _NEUTRAL[name]):
        return False
    return name == "reasoning_tags" or name not in SAMPLING_FIELDS | THINKING_FIELDS
