"""Convert Anthropic's Messages API to chat completions: messages, requests, and lines of batches."""

from collections.abc import Mapping
from typing import Any

from evalboard.importers.completions import count, error_words
from evalboard.importers.field_values import mapping, objects, text

_THINKING = "thinking"
_CALL = "tool_use"  # that a caller was to answer; a server's own tools are part of how it came to its answer
_INPUT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
# Why a request of a batch has no message.
_ENDS = {
    "canceled": "The batch was canceled before this request was sent.",
    "expired": "The batch expired before this request was sent.",
}


def is_message(body: Mapping[str, Any]) -> bool:
    """Tell whether a body is an answer of the Messages API."""
    return body.get("type") == "message" and "choices" not in body and isinstance(body.get("content"), list)


def as_completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message as a chat completion of one choice. Raises InvalidInput, without the file's name."""
    blocks = objects(body.get("content"), "content")
    made = [each for each in blocks if each.get("type") == _CALL]
    called = [{"function": {"name": each.get("name"), "arguments": each.get("input")}} for each in made]
    parts = [each for each in blocks if each.get("type") in ("text", _THINKING)]
    message = {"role": "assistant", "content": parts, "tool_calls": called}
    completion = {name: body[name] for name in ("id", "model") if name in body}
    usage = body.get("usage")  # another type is passed on, for the reader to report
    if isinstance(usage, Mapping):
        sent = [n for name in _INPUT_TOKENS if (n := count(usage.get(name))) is not None]
        usage = {"prompt_tokens": sum(sent) if sent else None, "completion_tokens": usage.get("output_tokens")}
    choice = {"index": 0, "finish_reason": body.get("stop_reason"), "message": message}
    return completion | {"usage": usage, "choices": [choice]}


def as_request(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as one of chat completions. Raises InvalidInput, without the file's name."""
    messages = objects(given.get("messages"), "messages")
    if given.get("system"):
        messages = [{"role": "system", "content": given["system"]}, *messages]
    tools = [_tool(tool) for tool in objects(given.get("tools"), "tools") if "input_schema" in tool]
    return {**given, "messages": messages, "tools": tools, "stop": given.get("stop_sequences")}


def is_result(line: Mapping[str, Any]) -> bool:
    """Tell whether a line, or its beginning, is of a batch's results."""
    return "custom_id" in line and isinstance(line.get("result"), Mapping) and "type" in line["result"]


def is_request(line: Mapping[str, Any]) -> bool:
    """Tell whether a line is a request of a batch."""
    return "custom_id" in line and isinstance(line.get("params"), Mapping)


def as_result(line: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a line of a batch's results to OpenAI's form. Raises InvalidInput, without the file's name."""
    result = line["result"]
    kind = text(result.get("type"))
    if kind == "succeeded":
        body = as_completion(mapping(result.get("message"), "result.message"))
        return {"custom_id": line["custom_id"], "response": {"body": body}}
    words = error_words(result) or _ENDS.get(kind, f"The request ended as {kind[:40]!r}, without a message.")
    return {"custom_id": line["custom_id"], "response": None, "error": words}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"name": tool.get("name"), "description": tool.get("description"), "parameters": tool["input_schema"]}
    return {"type": "function", "function": {name: value for name, value in fields.items() if value is not None}}
