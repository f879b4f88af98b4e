"""One StandardLoggingPayload: what LiteLLM's logging callbacks write of one call."""

from collections.abc import Mapping
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.importers import backends, calls
from evalboard.importers.calls import LoggedCall
from evalboard.importers.completions import MAX_ERROR_CHARS
from evalboard.importers.field_values import mapping, moment, text

_EVENT = "standard_logging_object"  # the payload's place in a callback's whole event
_MARKS = (
    "litellm_call_id",
    "trace_id",
    "call_type",
    "custom_llm_provider",
    "model_group",
    "model_id",
    "api_base",
    "startTime",
    "hidden_params",
    "cache_hit",
)
_ENOUGH_MARKS = 4
_REDACTED = "redacted-by-litellm"  # in place of every text where the gateway's message logging is turned off
_OWN_IDS = ("custom_id", "case_id", "sample_id")


def is_payload(line: Mapping[str, Any]) -> bool:
    """Return whether an object is such a log, or an event that contains one."""
    return isinstance(line.get(_EVENT), Mapping) or sum(mark in line for mark in _MARKS) >= _ENOUGH_MARKS


def payload_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the payload in a log's line. Raises InvalidInput, without the file's name, if there is none."""
    if not is_payload(row):
        raise InvalidInput("is no log of a LiteLLM call")
    return mapping(row.get(_EVENT), _EVENT) or row


def read_payload(payload: Mapping[str, Any], place: str) -> LoggedCall:
    """Return the call. Raises InvalidInput, without the file's name, for what cannot be read."""
    response = payload.get("response")
    body = dict(response) if isinstance(response, Mapping) else {}
    # The gateway's `response` is null after a failure, and a text where answers are kept out of the log.
    error = _error(payload) if "choices" not in body else ""
    model = text(payload.get("model_group")) or text(payload.get("model"))
    messages = payload.get("messages")
    prompt = {"messages": messages} if isinstance(messages, list) else {"prompt": messages}
    if _is_redacted(messages):
        raise InvalidInput("holds no prompt: the gateway wrote its log with message logging turned off")
    started_at, ended_at = moment(payload.get("startTime")), moment(payload.get("endTime"))
    metadata = mapping(payload.get("metadata"), "metadata")
    own = mapping(metadata.get("requester_metadata"), "requester_metadata")
    return calls.read_call(
        place=place,
        request={**mapping(payload.get("model_parameters"), "model_parameters"), **prompt, "model": model},
        body=body,
        case_id=calls.own_id(own, _OWN_IDS),
        error=error,
        headers=_headers(payload),
        seconds=(ended_at - started_at).total_seconds() if started_at and ended_at else None,
        started_at=started_at,
        finished_at=ended_at,
        flags=("cached",) if payload.get("cache_hit") in (True, "True", "true") else (),
    )


def _error(payload: Mapping[str, Any]) -> str:
    information = mapping(payload.get("error_information"), "error_information")
    words = [text(information.get("error_class")), text(information.get("error_message"))]
    error = ": ".join(word for word in words if word) or text(payload.get("error_str"))
    return (error or "The gateway's log holds no answer.")[:MAX_ERROR_CHARS]


def _headers(payload: Mapping[str, Any]) -> dict[str, str]:
    """Return the log's facts about the backend under the names of the gateway's response headers.

    So a log and saved responses of one gateway name its backends alike.
    """
    hidden = mapping(payload.get("hidden_params"), "hidden_params")
    upstream = backends.read_headers(hidden.get("additional_headers"))
    provider, model = text(payload.get("custom_llm_provider")), text(payload.get("model"))
    is_prefixed = not provider or model.startswith(f"{provider}/")
    own = {
        "x-litellm-model-api-base": text(payload.get("api_base")) or text(hidden.get("api_base")),
        "x-litellm-model-id": text(payload.get("model_id")) or text(hidden.get("model_id")),
        "x-litellm-model-name": model if is_prefixed else f"{provider}/{model}",
        "x-litellm-model-group": text(payload.get("model_group")),
    }
    return {**upstream, **{name: value for name, value in own.items() if value}}


def _is_redacted(messages: Any) -> bool:
    return isinstance(messages, list) and any(
        isinstance(message, Mapping) and message.get("content") == _REDACTED for message in messages
    )
