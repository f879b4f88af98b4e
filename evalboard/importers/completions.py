"""Read an answer of an OpenAI-compatible server: a chat completion, or an old `/v1/completions` body."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalboard.core.answer import AnswerParts, as_function, join_parts
from evalboard.core.digest import canonical_json
from evalboard.core.errors import InvalidInput
from evalboard.core.trace import Ending, plain_word, read_ending
from evalboard.importers import tokens
from evalboard.importers.field_values import SideFields, label, mapping, objects, rows, text, whole
from evalboard.importers.spelling import SpelledTokens, spell_tokens

MAX_ERROR_CHARS = 2000
MAX_COUNT = 2**31 - 1
REASONING_FIELDS = ("reasoning_content", "reasoning")  # of vLLM, DeepSeek, LiteLLM; of OpenRouter and newer vLLM
# Of a refused prompt: names, as `plain_word` has them, beside those of filtered answers; and what messages say.
PROMPT_REFUSALS = ("contentpolicyviolation", "responsibleaipolicyviolation", "moderationblocked", "invalidprompt")
ABOUT_THE_PROMPT = ("content management policy", "content policy", "usage policies", "was flagged")
MEDIA = ("audio", "image", "images", "video")  # fields of a message whose answer is no text
MOVED = "provider_specific_fields"
HALF_CHARACTER = re.compile(r"[\ud800-\udfff]")
REASONING_PARTS = ("reasoning", "thinking")  # types of content parts, which hold the thinking under their own name


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedChoice:
    """One choice. With an `error` there is no answer. dropped: names of fields that could not be read."""

    text: str = ""
    reasoning: str | None = None
    error: str = ""
    is_prompt_filtered: bool = False
    finish_reason: str = ""
    is_refusal: bool = False
    tokens: SpelledTokens = field(default_factory=lambda: SpelledTokens(None))
    prompt_token_ids: tuple[int, ...] | None = None
    n_tokens: int | None = None
    dropped: tuple[str, ...] = ()


def answers(body: Mapping[str, Any], error: str = "") -> list[LoggedChoice]:
    """Return the choices of a response in order; at least one, with the error if there is none.

    `error` is the log's own error of the call. Raises InvalidInput, without the file's name, for a body that is no
    response.
    """
    choices = objects(body.get("choices"), "choices")
    failure = error or error_words(body)
    if failure or not choices:
        is_filtered = refuses_prompt(body.get("error"))
        return [
            LoggedChoice(error=failure or "The log holds no answer to this request.", is_prompt_filtered=is_filtered)
        ]
    beside = SideFields()
    usage = beside.read("usage", mapping, body.get("usage"), "usage") or {}
    n_tokens = count(usage.get("completion_tokens")) if len(choices) == 1 else None
    prompt_ids = beside.read("prompt_token_ids", tokens.read_ids, body.get("prompt_token_ids"), "prompt_token_ids")
    ordered = sorted(choices, key=lambda choice: whole(choice.get("index")) or 0)
    return [_answer(choice, prompt_ids, n_tokens, beside.dropped) for choice in ordered]


def read_usage(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a body's token usage, {} if unreadable, which `answers` reports."""
    usage = body.get("usage")
    return usage if isinstance(usage, Mapping) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """A server's own counts of one call. None: not reported.

    n_tokens: of the answer, thinking included; n_reasoning of them are the thinking. n_cached of the prompt's were read
    from a cache.
    """

    n_prompt: int | None = None
    n_cached: int | None = None
    n_tokens: int | None = None
    n_reasoning: int | None = None


def count_usage(body: Mapping[str, Any]) -> TokenUsage:
    """Return the counts of a body's usage.

    Some servers (Grok, Gemini) count the thinking in addition to the answer: then the total says so.
    """
    usage = read_usage(body)
    prompt_details, answer_details = (
        details if isinstance(details, Mapping) else {}
        for details in (usage.get("prompt_tokens_details"), usage.get("completion_tokens_details"))
    )
    n_prompt, n_tokens, total = (count(usage.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    n_reasoning = count(answer_details.get("reasoning_tokens"))
    if n_prompt is not None and n_tokens is not None and total is not None and total > n_prompt + n_tokens:
        beside = total - n_prompt - n_tokens
        n_tokens, n_reasoning = n_tokens + beside, beside if n_reasoning is None else n_reasoning
    return TokenUsage(
        n_prompt=n_prompt,
        n_cached=count(prompt_details.get("cached_tokens")),
        n_tokens=n_tokens,
        n_reasoning=n_reasoning,
    )


def error_words(body: Mapping[str, Any]) -> str:
    """Return the error text of a body, "" if it is no error."""
    error = body.get("error")
    if isinstance(error, Mapping) and isinstance(error.get("error"), Mapping):
        error = error["error"]  # `vllm run-batch` nests it twice
    if body.get("object") == "error":
        error = body  # vLLM's own form, before 0.10
    if isinstance(error, Mapping) and error:
        words = [label(error.get(name)) for name in ("type", "message")]
        return ": ".join(word for word in words if word)[:MAX_ERROR_CHARS] or "The server gave an error without words."
    return text(error)[:MAX_ERROR_CHARS]


def refuses_prompt(error: Any) -> bool:
    """Tell whether an error, as in a body, means that the provider's filter refused the prompt."""
    if not isinstance(error, Mapping):
        return False
    inner = error.get("innererror") or error.get("inner_error")
    given = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, Mapping) else None]
    names = [plain_word(text(each)) for each in given]
    if any(name in PROMPT_REFUSALS or read_ending(name) is Ending.FILTERED for name in names):
        return True
    return any(words in text(error.get("message")).lower() for words in ABOUT_THE_PROMPT)


def count(value: Any) -> int | None:
    """Return a number of tokens, None for an invalid one."""
    number = whole(value)
    return number if number is not None and 0 <= number <= MAX_COUNT else None


def content_text(content: Any) -> str:
    """Return a message's content as text: of a list of parts, those of text."""
    if not isinstance(content, list):
        return text(content)
    parts = (part for part in content if isinstance(part, Mapping) and part.get("type") not in REASONING_PARTS)
    return "".join(text(part.get("text")) for part in parts)


def content_problem(message: Mapping[str, Any]) -> str:
    """Return why a message's content is no answer, by its type; "" if it is readable or missing."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        kinds = [name for name in MEDIA if message.get(name)] if not content else []
    elif isinstance(content, list):
        kinds = sorted({_kind(part) for part in content if not isinstance(part, Mapping)})
        if not kinds and not content_text(content):
            kinds = sorted({_kind(part) for part in content if part.get("type") not in (*REASONING_PARTS, "text")})
    else:
        kinds = [_kind(content)]
    has_other_part = bool(message.get("tool_calls") or message.get("function_call") or message.get("refusal"))
    what = "a list of " if isinstance(content, list) else ""
    return f"The answer's content is {what}{' and '.join(kinds)}, not text." if kinds and not has_other_part else ""


def _kind(part: Any) -> str:
    """Return the type of a content part: its own, else its JSON type."""
    if isinstance(part, Mapping):
        return text(part.get("type"))[:40] or "objects"
    return {str: "texts", bool: "booleans", list: "lists", type(None): "nulls"}.get(type(part), "numbers")


def message_text(message: Mapping[str, Any], *, dropped: list[str] | None = None) -> str:
    """Return a message's content, refusal and calls, without thinking, as one text.

    dropped: receives the name of calls that cannot be read.
    """
    listed = message.get("tool_calls")
    if isinstance(listed, Mapping):  # one call that is in no list
        listed = [listed] if listed else []
    if listed is not None and not isinstance(listed, list) and dropped is not None:
        dropped.append("tool_calls")
        listed = []
    calls = [call for call in rows(listed, "tool_calls") if isinstance(call, Mapping)]
    old = message.get("function_call")  # what `tool_calls` were before
    if not calls and isinstance(old, Mapping) and old:
        calls = [old]
    functions = tuple(map(as_function, calls))
    return join_parts(AnswerParts(content_text(message.get("content")), text(message.get("refusal")), functions))


def output_text(output: Any) -> str:
    """Return a stored answer as one text, from a text, any other JSON, or a message with its calls.

    The calls may come without a message, as a list, or as one old call.
    """
    if output is None or isinstance(output, str):
        return output or ""
    if isinstance(output, Mapping) and (output.get("tool_calls") or output.get("function_call")):
        return message_text(output)
    if isinstance(output, list) and output and all(isinstance(one, Mapping) and "function" in one for one in output):
        return message_text({"tool_calls": output})
    if isinstance(output, Mapping) and output.keys() == {"name", "arguments"}:
        return message_text({"function_call": output})
    return canonical_json(output).decode("utf-8", "surrogatepass")


def ending_problem(word: str, *, native: str = "", error: str = "") -> str:
    """Return why an answer that ended with this finish reason is missing, "" where it is there.

    native: the word of the server behind a gateway. error: the server's own words.
    """
    if read_ending(word) is not Ending.FAILED:
        return ""
    words = f"The server broke off the answer: it ended with {word!r}"
    words += f" ({native})" if native and native != word else ""
    return f"{words}: {error}"[:MAX_ERROR_CHARS] if error else f"{words}."[:MAX_ERROR_CHARS]


def broken_off(choice: Mapping[str, Any]) -> str:
    """Return why a choice's answer is missing by its finish reason, "" where it is there."""
    native = label(choice.get("native_finish_reason"))
    return ending_problem(text(choice.get("finish_reason")), native=native, error=error_words(choice))


def read_reasoning(message: Mapping[str, Any]) -> str | None:
    """Return a message's thinking, None if it is not stored separately.

    Tags in the answer's own text are no keeping apart. Of thinking that is kept in secret there is a summary at most.
    """
    for name in REASONING_FIELDS:
        if text(message.get(name)):
            return text(message[name])
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    thought = [_thought(part) for part in parts if isinstance(part, Mapping) and part.get("type") in REASONING_PARTS]
    return "\n".join(part for part in thought if part) if thought else None


def _thought(part: Mapping[str, Any]) -> str:
    if part.get("redacted"):
        return content_text(part.get("summary"))
    given = part.get(part["type"])
    return content_text(part.get("text") if given is None else given)


def _answer(
    choice: Mapping[str, Any], prompt_ids: tuple[int, ...] | None, n_tokens: int | None, dropped: Sequence[str]
) -> LoggedChoice:
    message = choice["message"] if isinstance(choice.get("message"), Mapping) else {}
    failure = broken_off(choice) or (error_words(choice) if choice.get("error") else "") or content_problem(message)
    if failure:
        return LoggedChoice(error=failure, finish_reason=text(choice.get("finish_reason")))
    beside = SideFields()
    # A LiteLLM gateway moves what it does not know to the side.
    moved = beside.read(MOVED, mapping, choice.get(MOVED), MOVED) or {}
    ids = beside.read("token_ids", tokens.read_ids, choice.get("token_ids") or moved.get("token_ids"))
    positions = beside.read("logprobs", tokens.positions, choice.get("logprobs"), ids)
    own_prompt_ids = beside.read("prompt_token_ids", tokens.read_ids, choice.get("prompt_token_ids"))
    words = _answer_text(choice, beside.dropped)
    if HALF_CHARACTER.search(words):
        beside.dropped.append("half a character")
    reasoning = read_reasoning(message)
    return LoggedChoice(
        text=words,
        reasoning=reasoning,
        finish_reason=text(choice.get("finish_reason")),
        is_refusal=bool(text(message.get("refusal")).strip()),
        tokens=spell_tokens(positions, text=words, reasoning=reasoning, n_counted=None if reasoning else n_tokens),
        prompt_token_ids=prompt_ids or own_prompt_ids,
        n_tokens=n_tokens if positions is None else len(positions),
        dropped=tuple(dict.fromkeys([*dropped, *beside.dropped])),
    )


def _answer_text(choice: Mapping[str, Any], dropped: list[str]) -> str:
    """Return a choice's text, or its message with every part of it."""
    if "text" in choice:
        return text(choice["text"])
    if not isinstance(choice.get("message"), Mapping):
        raise InvalidInput("a choice must have a message or a text")
    return message_text(choice["message"], dropped=dropped)
