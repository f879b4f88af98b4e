"""Build a call to an external server: path and JSON body, from case, sampling and endpoint.

The usual parameters are sent in full. Those that only vLLM knows are sent in full to a vLLM, whose defaults come from
the model's repository; to others only if they request something, for a neutral value requests nothing. What a server
refuses by name is left out of later calls, and reported. So is the seed if a server refuses its value.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalboard.calling.calls import DecodeRequest
from evalboard.core.profile import is_unsent
from evalboard.core.suite import is_completion
from evalboard.importers.completions import content_text

PLAIN_ROLES = ("user", "completion")  # of the one message that goes as a plain prompt
PATHS = {"chat": "/chat/completions", "completions": "/completions", "responses": "/responses"}
# Of vLLM's own parameters, the values that ask for nothing.
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "top_k": (0, -1),
    "min_p": (0,),
    "repetition_penalty": (1,),
    "min_tokens": (0,),
    "ignore_eos": (False,),
    "skip_special_tokens": (True,),
}
# The same of those that every server knows, where the server decides the temperature: some take none of them then.
NEUTRAL_BY_DEFAULT: dict[str, tuple[Any, ...]] = {
    "top_p": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
}
# The Responses API has neither these nor `stop`; where they ask for something, that is left out.
NOT_IN_RESPONSES = {"seed": (None,), "presence_penalty": (0,), "frequency_penalty": (0,)}
# Decided by the call itself, whatever an endpoint's extra body says.
OWN = frozenset({"model", "messages", "prompt", "input", "tools", "stream", "stream_options", "n", "best_of"})
# Under which of the profile's names a parameter goes, where it is called otherwise on the wire.
PROFILE_NAMES = {
    "top_logprobs": "logprobs",
    "include": "logprobs",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "reasoning": "reasoning_effort",
}
NEVER_LEFT_OUT = frozenset({"max_tokens"})  # an answer would be of any length
REFUSAL = re.compile(
    r"(?i)unknown|unrecogni[sz]ed|unsupported|not (currently )?support|(does|do)n.t support|not permitted|not allowed|"
    r"unexpected|extra[_ ](inputs|forbidden|fields)|cannot find|no such"
)
# What servers say of a number that is not in their range.
OUT_OF_RANGE = re.compile(
    r"(?i)\brange\b|\b(max|min)(imum)?\b|\bat (most|least)\b|\b(less|lower|smaller|greater|larger|higher) than\b|"
    r"\btoo (large|big|high|small|low)\b|\b(exceed|overflow|invalid|unmarshal)|int(eger)?[ _-]?(32|64)|\bbetween\b|"
    r"\b(must|should) be\b|\bpositive\b|[<>]="
)


class NotCallable(ValueError):
    """This case cannot be sent to the endpoint's API; the text says why."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server accepts: refused settings of the profile, and its name for `max_tokens`."""

    refused: frozenset[str] = frozenset()
    is_completion_limit: bool = False  # max_completion_tokens in place of max_tokens
    is_plain_limit: bool = False  # max_tokens in place of a profile's max_completion_tokens
    is_litellm: bool = False  # whose cache is switched off by a field of the body


@dataclass(frozen=True, slots=True)
class Built:
    """One call. `left_out`: settings of the profile that it does not send; `seed`: the one that it sends.

    is_vllm: it has all fields for a vLLM. is_uncached: it tells a LiteLLM not to answer from its cache.
    """

    path: str
    body: dict[str, Any]
    left_out: tuple[str, ...]
    is_vllm: bool
    is_uncached: bool = False

    @property
    def seed(self) -> int | None:
        return self.body.get("seed")


def build(
    request: DecodeRequest, *, api: str, model: str, extra_body: Mapping[str, Any], dialect: Dialect, is_vllm: bool
) -> Built:
    """Return the call for a case. Raises NotCallable."""
    settings = dict(request.sampling)
    is_whole = "max_completion_tokens" in settings  # thinking included, whatever the suite allows an answer
    if is_whole:
        settings["max_tokens"] = settings.pop("max_completion_tokens")
    wanted = _wanted(settings, in_full=is_vllm)
    left_out = [name for name in wanted if name in dialect.refused]
    wanted = {name: value for name, value in wanted.items() if name not in dialect.refused}
    if "reasoning_tags" in settings:  # for our own engine; external servers split thinking themselves
        left_out.append("reasoning_tags")
    if api == "responses":
        left_out += [name for name, none in NOT_IN_RESPONSES.items() if wanted.get(name) not in (None, *none)]
        left_out += ["stop"] if "stop" in wanted else []
        wanted = {name: value for name, value in wanted.items() if name not in (*NOT_IN_RESPONSES, "stop")}
    body: dict[str, Any] = {"model": model, **_prompt(request, api)}
    body |= _as_sent(wanted, api, dialect, is_whole=is_whole)
    if is_vllm and api != "responses" and "return_token_ids" not in dialect.refused:
        body["return_token_ids"] = True
    is_uncached = dialect.is_litellm and "cache" not in dialect.refused
    if is_uncached:
        body["cache"] = {"no-cache": True}
    decided = set(settings) | dialect.refused
    constants = {name: value for name, value in extra_body.items() if PROFILE_NAMES.get(name, name) not in decided}
    body |= {name: value for name, value in constants.items() if name not in OWN}
    return Built(PATHS[api], body, tuple(dict.fromkeys(left_out)), is_vllm, is_uncached)


def needs_completions(api: str) -> str:
    """Return why a completion cannot be sent to an endpoint of this API, and what to do."""
    return (
        f"The case is a completion, a text without a chat template, and the endpoint's API ({api}) applies one. Add an "
        "endpoint whose API is completions."
    )


def learn(dialect: Dialect, built: Built, words: str) -> Dialect | None:
    """Return a dialect extended by a refusal's text; None if it names no parameter of the call.

    A complaint of the seed's range refuses the seed too: each call has another, and leaving it out asks for a sample
    all the same. words: the whole body of the answer 400, 403 or 422, as text. They may write a name as `topP`,
    `Top-P` or "top p".
    """
    spellings = {name: _spelling(name) for name in built.body if name not in OWN}
    quoted = [name for name, each in spellings.items() if re.search(rf"""(?i)["'`]{each}["'`]""", words)]
    named = quoted or [name for name, each in spellings.items() if re.search(rf"(?i)\b{each}\b", words)]
    if not REFUSAL.search(words) and not (named == ["seed"] and OUT_OF_RANGE.search(words)):
        return None
    if "max_tokens" in named and not dialect.is_completion_limit:
        return replace(dialect, is_completion_limit=True)
    if "max_completion_tokens" in named and not dialect.is_completion_limit and not dialect.is_plain_limit:
        return replace(dialect, is_plain_limit=True)
    refused = {PROFILE_NAMES.get(name, name) for name in named} - NEVER_LEFT_OUT - dialect.refused
    return replace(dialect, refused=dialect.refused | refused) if refused else None


def _spelling(name: str) -> str:
    """Return a pattern of how words may write a parameter's name."""
    return re.escape(name).replace("logprobs", "log_probs?").replace("_", "[ _-]?")


def _wanted(settings: Mapping[str, Any], *, in_full: bool) -> dict[str, Any]:
    """The settings that are to be sent, by the profile's names."""
    wanted = {}
    is_default = "temperature" in settings and is_unsent("temperature", settings["temperature"])
    neutral = NEUTRAL | NEUTRAL_BY_DEFAULT if is_default else NEUTRAL
    for name, value in settings.items():
        is_idle = value in neutral.get(name, ()) and not in_full
        if name != "reasoning_tags" and not is_idle and not is_unsent(name, value) and value not in (None, [], ()):
            wanted[name] = list(value) if isinstance(value, tuple) else value
    return wanted


def _as_sent(wanted: Mapping[str, Any], api: str, dialect: Dialect, *, is_whole: bool) -> dict[str, Any]:
    """The settings by the names that the API has for them."""
    sent = {name: value for name, value in wanted.items() if name not in ("logprobs", "max_tokens", "reasoning_effort")}
    k = wanted.get("logprobs")
    if k is not None:
        if api == "chat":
            sent |= {"logprobs": True, "top_logprobs": k}
        elif api == "completions":
            sent["logprobs"] = k
        else:
            sent |= {"top_logprobs": k, "include": ["message.output_text.logprobs"]}
    if "max_tokens" in wanted:
        is_renamed = dialect.is_completion_limit or (is_whole and api == "chat" and not dialect.is_plain_limit)
        name = "max_completion_tokens" if is_renamed else "max_tokens"
        sent["max_output_tokens" if api == "responses" else name] = wanted["max_tokens"]
    if "reasoning_effort" in wanted:
        effort = wanted["reasoning_effort"]
        sent |= {"reasoning": {"effort": effort}} if api == "responses" else {"reasoning_effort": effort}
    if api == "responses":
        sent["store"] = False
    return sent


def _prompt(request: DecodeRequest, api: str) -> dict[str, Any]:
    messages = [dict(message) for message in request.messages]
    if api == "completions":
        return {"prompt": _plain_prompt(request, messages)}
    if is_completion(messages):
        raise NotCallable(needs_completions(api))
    if not messages:
        raise NotCallable(f"The case has no messages, and the endpoint's API ({api}) takes nothing else.")
    if api == "chat":
        return {"messages": messages, **({"tools": list(request.tools)} if request.tools else {})}
    tools = [_flat_tool(tool) for tool in request.tools or []]
    items = [item for message in messages for item in _input_items(message)]
    return {"input": items, **({"tools": tools} if tools else {})}


def _plain_prompt(request: DecodeRequest, messages: list[dict[str, Any]]) -> str | list[int]:
    if request.prompt_token_ids is not None:
        return list(request.prompt_token_ids)
    if request.tools:
        raise NotCallable("The case has tools, and the endpoint's API (completions) takes a plain prompt alone.")
    if len(messages) != 1 or messages[0].get("role") not in PLAIN_ROLES or set(messages[0]) - {"role", "content"}:
        raise NotCallable(
            "The endpoint's API (completions) takes one plain prompt, and this case is not one message of a user."
        )
    return _text(messages[0].get("content"))


def _input_items(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message's items for the Responses API, where tool calls and results are separate items."""
    role, called = message.get("role"), message.get("tool_calls") or []
    if role == "tool" and set(message) <= {"role", "content", "tool_call_id", "name"} and message.get("tool_call_id"):
        output = _text(message.get("content"))
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": output}
        return
    others = {"role", "content", "tool_calls"} if role == "assistant" else {"role", "content"}
    if role not in ("system", "developer", "user", "assistant") or set(message) - others:
        raise NotCallable("The case has a message that the endpoint's API (responses) has no form for.")
    if message.get("content") or not called:
        yield {"role": role, "content": _input_content(message.get("content"))}
    yield from map(_function_call, called)


def _function_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, Mapping) or not call.get("id"):
        raise NotCallable("The case has a call of a tool without an id or a function, which the Responses API needs.")
    arguments = function.get("arguments") or {}
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"type": "function_call", "call_id": call["id"], "name": function.get("name"), "arguments": written}


def _input_content(content: Any) -> str | list[dict[str, Any]]:
    """Return a message's content for the Responses API, where images are `input_image`."""
    if not isinstance(content, list) or not any(part.get("type") == "image_url" for part in content):
        return _text(content)
    return [
        {
            "type": "input_image",
            "image_url": part["image_url"]["url"],
            "detail": part["image_url"].get("detail", "auto"),
        }
        if part["type"] == "image_url"
        else {"type": "input_text", "text": part["text"]}
        for part in content
    ]


def _text(content: Any) -> str:
    """Return a message's content, of which every part must be text."""
    parts = content if isinstance(content, list) else [content]
    if not all(isinstance(part, str) or (isinstance(part, Mapping) and part.get("type") == "text") for part in parts):
        raise NotCallable("The case holds more than text, and the endpoint's API is sent text alone.")
    return content_text(content)


def _flat_tool(tool: Any) -> Any:
    """Return a tool in the Responses API's form: the fields of `function` next to the type."""
    if isinstance(tool, Mapping) and isinstance(tool.get("function"), Mapping):
        return {"type": "function", **tool["function"]}
    return tool
