"""Convert an answer of OpenAI's Responses API to a chat completion, which `completions` reads."""

from collections.abc import Iterator, Mapping
from typing import Any

from evalboard.core.trace import Ending, read_ending
from evalboard.importers.field_values import objects, text

# Why an answer ended before its time, by the words of chat completions.
_REASONS = {"max_output_tokens": "length", "max_tokens": "length"}
_CALLS = ("function_call", "custom_tool_call")
_AS_THEY_ARE = ("id", "model", "system_fingerprint", "provider", "extra_fields", "seed", "prompt_token_ids")


def is_response(body: Mapping[str, Any]) -> bool:
    """Tell whether a body is one of the Responses API."""
    return body.get("object") == "response" or ("choices" not in body and isinstance(body.get("output"), list))


def as_completion(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body as a chat completion: with one choice, or none for an error.

    Raises InvalidInput, without the file's name, for an invalid body.
    """
    usage = body.get("usage")
    completion = {name: body[name] for name in _AS_THEY_ARE if name in body}
    completion["created"] = body.get("created_at")
    completion["usage"] = usage  # another type is passed on, for the reader to report
    if isinstance(usage, Mapping):
        counts = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "total_tokens": "total_tokens"}
        counts |= {f"{name}_details": f"{theirs}_details" for name, theirs in counts.items() if name != theirs}
        completion["usage"] = {name: usage.get(theirs) for name, theirs in counts.items()}
    status = text(body.get("status"))
    if body.get("error"):
        return completion | {"error": body["error"]}
    output = objects(body.get("output"), "output")
    return completion | {"choices": [_choice(output, _finish_reason(body, status, output))]}


def messages(given: Any) -> list[dict[str, Any]]:
    """Convert the request's `input` to chat messages. Raises InvalidInput if it is neither form."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    items = objects(given, "input")
    return [{name: _content(value) for name, value in item.items() if name != "type"} for item in items]


def _content(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kinds = ("input_text", "output_text")
    return [
        {"type": "text", "text": part.get("text")} if isinstance(part, Mapping) and part.get("type") in kinds else part
        for part in value
    ]


def _finish_reason(body: Mapping[str, Any], status: str, output: list[Mapping[str, Any]]) -> str | None:
    if status == "incomplete":
        details = body.get("incomplete_details")
        reason = text(details.get("reason")) if isinstance(details, Mapping) else ""
        return _REASONS.get(reason, reason) or None
    if read_ending(status) is Ending.FAILED:
        return status
    if status != "completed":  # still being made when it was written down
        return None
    return "tool_calls" if any(item.get("type") in _CALLS for item in output) else "stop"


def _choice(output: list[Mapping[str, Any]], finish_reason: str | None) -> dict[str, Any]:
    parts = [
        part
        for item in output
        if item.get("type") == "message"
        for part in objects(item.get("content"), "output.content")
    ]
    called = [
        {"function": {name: item[name] for name in ("name", "arguments", "input") if name in item}}
        for item in output
        if item.get("type") in _CALLS
    ]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(text(part.get("text")) for part in parts if part.get("type") == "output_text"),
        "refusal": "".join(text(part.get("refusal")) for part in parts) or None,
        "tool_calls": called,
    }
    thought = [words for item in output if item.get("type") == "reasoning" for words in _thoughts(item)]
    if thought:
        message["reasoning"] = "\n".join(thought)
    given = [part["logprobs"] for part in parts if part.get("logprobs") is not None]
    entries = [_entry(entry) for each in given if isinstance(each, list) for entry in each]
    odd = next((each for each in given if not isinstance(each, list)), None)  # for the reader to report
    logprobs = odd if odd is not None else {"content": entries} if entries else None
    return {"index": 0, "finish_reason": finish_reason, "message": message, "logprobs": logprobs}


def _thoughts(item: Mapping[str, Any]) -> Iterator[str]:
    """Return the model's thinking: the text if given, else its summary."""
    for name in ("content", "summary"):
        words = [text(part.get("text")) for part in objects(item.get(name), f"output.{name}")]
        if any(words):
            yield from words
            return


def _entry(entry: Any) -> Any:
    """Return a token, by its text if its bytes are an empty list, like its alternatives."""
    if not isinstance(entry, Mapping):
        return entry
    others = entry.get("top_logprobs")
    listed = [_bare(other) for other in others] if isinstance(others, list) else others
    return {**_bare(entry), "top_logprobs": listed}


def _bare(entry: Any) -> Any:
    if isinstance(entry, Mapping) and entry.get("token") and not entry.get("bytes"):
        return {**entry, "bytes": None}
    return entry
