"""One sample of an Inspect log: a case, and its response and scores in one epoch."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evalboard.core.answer import AnswerParts, as_function, join_parts
from evalboard.core.errors import InvalidInput
from evalboard.importers import backends, tokens
from evalboard.importers import calls as openai_calls
from evalboard.importers.completions import ending_problem, read_reasoning
from evalboard.importers.field_values import SideFields, mapping, moment, number, objects, rows, shortened, text, whole
from evalboard.importers.inspect_events import (
    Attachments,
    SampleCalls,
    final_output,
    find_calls,
    first_choice,
    raw_answer,
    sent_messages,
    text_of,
)
from evalboard.importers.records import LoggedCase, LoggedResponse, LoggedScore
from evalboard.importers.spelling import spell_tokens

MAX_EPOCHS = 1000

NO_RAW_CALL = "no raw model call is kept, so what else the server said is unknown; log with --log-model-api"
NO_ANSWER = "the log has no answer of it, only what it was scored"
NO_CALL = "no model call gave the output, so who served it is unknown"
SEVERAL_CALLS = (
    "several model calls were made; the case is what the first one sent, the response what the last one gave"
)
SEVERAL_CHOICES = "the model gave several choices; the first one is kept"
NOT_ONLY_TEXT = "the prompt holds more than text, which is left out"

# As Inspect's own metrics read a value: correct, partly correct, incorrect, no answer.
_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


@dataclass(frozen=True, slots=True)
class ReadSample:
    """`sampling` is what the answering call's config says was sent; `remarks` are the constants above."""

    case: LoggedCase
    response: LoggedResponse
    sampling: Mapping[str, Any]
    remarks: tuple[str, ...]


def read_sample(sample: Mapping[str, Any], *, base_url: str, sampling: Mapping[str, Any]) -> ReadSample:
    """Return the content of one sample. sampling: the eval's, which its calls override.

    Raises InvalidInput, without the file's name.
    """
    case_id = openai_calls.own_id(sample, ("id",))
    if not case_id:
        raise InvalidInput("a sample has no id")
    one = _opened(sample)
    messages, is_all_text = _prompt(one)
    case = LoggedCase(
        id=case_id,
        messages=messages,
        target=_target(sample.get("target")),
        tools=_tools(one),
        input=openai_calls.read_input(_input(one), messages),
    )
    own = {**sampling, **read_sampling(one.answer.get("config"))}
    response = _response(one, case_id, base_url=base_url, seed=own.get("seed"))
    return ReadSample(case, response, own, tuple(_remarks(one, is_all_text=is_all_text)))


def read_sampling(config: Any) -> dict[str, Any]:
    """Return the sent sampling of a generate config, by the OpenAI API's names."""
    given = mapping(config, "config")
    renamed = {"stop": given.get("stop_seqs"), "n": given.get("num_choices")}
    return openai_calls.read_sampling({**given, **renamed})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A sample with its output, first choice, answering call and raw answer; each empty if missing.

    Each is empty where the sample has none.
    """

    sample: Mapping[str, Any]
    attachments: Attachments
    calls: SampleCalls
    output: Mapping[str, Any]
    choice: Mapping[str, Any]
    answer: Mapping[str, Any]
    raw: Mapping[str, Any]


def _opened(sample: Mapping[str, Any]) -> _Opened:
    attachments = Attachments(sample)
    output = mapping(sample.get("output"), "output")
    if not (first_choice(output) or output.get("error") or sample.get("error")) and (final := final_output(sample)):
        sample = {**sample, "output": {**output, **final}}
    calls = find_calls(sample, attachments)
    answer, output = calls.answer or {}, mapping(sample.get("output"), "output")
    return _Opened(
        sample=sample,
        attachments=attachments,
        calls=calls,
        output=output,
        choice=first_choice(output),
        answer=answer,
        raw=raw_answer(answer),
    )


def _response(one: _Opened, case_id: str, *, base_url: str, seed: Any) -> LoggedResponse:
    repeat, error = whole(one.sample.get("epoch")), _error(one)
    if repeat is None or not 1 <= repeat <= MAX_EPOCHS:
        raise InvalidInput(f"sample {case_id}: epoch must be a whole number from 1 to {MAX_EPOCHS:,}")
    beside = SideFields()
    usage = beside.read("usage", mapping, one.output.get("usage"), "output.usage") or {}
    # A raw answer is of any shape, whatever API the server has.
    raw_usage = one.raw["usage"] if isinstance(one.raw.get("usage"), Mapping) else {}
    body = one.raw or {"model": one.output.get("model")}
    token_ids = beside.read("token_ids", tokens.read_ids, _token_ids(first_choice(one.raw)))
    positions = None if error else beside.read("logprobs", tokens.positions, one.choice.get("logprobs"), token_ids)
    answer, reasoning = ("", None) if error else (_text(one), _reasoning(one))
    spelled = spell_tokens(positions, text=answer, reasoning=reasoning)
    return LoggedResponse(
        case_id=case_id,
        repeat=repeat,
        text=answer,
        reasoning=reasoning,
        error=error,
        finish_reason=text(one.choice.get("stop_reason")),
        positions=spelled.positions,
        trace_reason=spelled.reason,
        n_reasoning_tokens=spelled.n_reasoning_tokens,
        prompt_token_ids=beside.read("prompt_token_ids", tokens.read_ids, one.raw.get("prompt_token_ids")),
        n_tokens=_first(raw_usage.get("completion_tokens"), usage.get("output_tokens")),
        n_prompt_tokens=_first(raw_usage.get("prompt_tokens"), usage.get("input_tokens")),
        seed=whole(seed),
        request_id=text(one.output.get("response_id")) or text(one.raw.get("id")),
        seconds=number(one.output.get("time")),
        answered_at=_answered_at(one),
        served_by=backends.served_by(headers={}, body=body, base_url=base_url),
        scores={} if error else read_scores(one.sample),
        flags=tuple(sorted({*backends.flags({}, body), *_flags(one)})),
        dropped=tuple(beside.dropped),
    )


def _answered_at(one: _Opened) -> datetime | None:
    """Return when the answer came; an event's `timestamp` is the time of its request."""
    times = (one.answer.get("completed"), one.answer.get("timestamp"), one.sample.get("completed_at"))
    return next((at for value in times if (at := moment(value)) is not None), None)


def _prompt(one: _Opened) -> tuple[tuple[Mapping[str, Any], ...], bool]:
    """Return the messages of the case's prompt, and whether they are only text."""
    put_back = one.attachments.put_back
    if one.calls.first is not None:
        given = sent_messages(one.calls.first, one.sample, one.attachments)
    elif one.sample.get("messages"):
        given = list(_before_answer(rows(put_back(one.sample["messages"]), "messages")))
    else:
        source = put_back(one.sample.get("input"))
        given = [{"role": "user", "content": source}] if isinstance(source, str) else rows(source, "input")
    messages = objects(given, "messages")
    is_all_text = all(
        not isinstance(message.get("content"), list)
        or all(isinstance(part, Mapping) and part.get("type") == "text" for part in message["content"])
        for message in messages
    )
    return openai_calls.prompt({"messages": [_message(message) for message in messages]}), is_all_text


def _input(one: _Opened) -> Any:
    """Return the dataset's input of the case: a text, else role and text of each non-instruction message."""
    given = one.sample.get("input")
    if not isinstance(given, list):
        return one.attachments.put_back(given)
    own = [
        [message.get("role"), one.attachments.put_back(text_of(message.get("content")))]
        for message in given
        if isinstance(message, Mapping) and message.get("role") not in ("system", "developer")
    ]
    return own[0][1] if len(own) == 1 else own


def _before_answer(messages: list[Any]) -> Iterator[Any]:
    """Yield the messages before the first that the model wrote, ignoring examples in the prompt."""
    for place, message in enumerate(messages):
        is_written = isinstance(message, Mapping) and message.get("role") == "assistant"
        if is_written and (message.get("source") == "generate" or place == len(messages) - 1):
            return
        yield message


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return one of Inspect's messages in the OpenAI API's form, with only its text."""
    fields: dict[str, Any] = {"role": text(message.get("role")) or "user", "content": text_of(message.get("content"))}
    if calls := _tool_calls(message.get("tool_calls")):
        fields["tool_calls"] = calls
    if text(message.get("tool_call_id")):
        fields["tool_call_id"] = message["tool_call_id"]
    return fields


def _tool_calls(listed: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": text(call.get("id")),
            "type": "function",
            "function": {
                "name": text(call.get("function")),
                "arguments": json.dumps(call.get("arguments"), ensure_ascii=False),
            },
        }
        for call in objects(listed, "tool_calls")
    ]


def _tools(one: _Opened) -> tuple[Mapping[str, Any], ...]:
    listed = objects(one.attachments.put_back((one.calls.first or {}).get("tools")), "tools")
    names = ("name", "description", "parameters")
    return tuple(
        {"type": "function", "function": {name: tool[name] for name in names if tool.get(name) is not None}}
        for tool in listed
        if text(tool.get("name"))
    )


def _target(target: Any) -> Any:
    """Return a text or a list of accepted texts, None if the sample has none."""
    if isinstance(target, list):
        return [one for one in target if isinstance(one, str)] or None
    return text(target) or None


def _text(one: _Opened) -> str:
    put_back = one.attachments.put_back
    message = mapping(one.choice.get("message"), "message")
    # Old versions wrote no `completion`.
    content = text(put_back(one.output.get("completion"))) or text_of(put_back(message.get("content")))
    calls = _tool_calls(put_back(message.get("tool_calls")))
    return join_parts(AnswerParts(content=content, calls=tuple(map(as_function, calls))))


def _reasoning(one: _Opened) -> str | None:
    message = mapping(one.choice.get("message"), "message")
    return None if read_reasoning(message) is None else read_reasoning(one.attachments.put_back(message))


def _error(one: _Opened) -> str:
    """Return why the response is missing, "" where it is there."""
    if one.sample.get("invalidation"):
        reason = text(mapping(one.sample["invalidation"], "invalidation").get("reason"))
        return shortened(f"This sample was declared invalid: {reason or 'no reason is given'}.")
    if one.sample.get("error"):
        return shortened(text(mapping(one.sample["error"], "error").get("message")) or "The sample failed.")
    if one.output.get("error"):
        return shortened(text(one.output["error"]) or "The model call failed.")
    if not one.choice:
        return "" if one.sample.get("scores") else "The sample holds no answer."
    return ending_problem(text(one.choice.get("stop_reason")))


def _flags(one: _Opened) -> Iterator[str]:
    if one.answer.get("cache") == "read":
        yield "cached"
    if one.sample.get("model_fallbacks") or one.output.get("fallback"):
        yield "fallback"
    if one.sample.get("error_retries") or one.answer.get("retries"):
        yield "retried"


def _remarks(one: _Opened, *, is_all_text: bool) -> Iterator[str]:
    choices = one.output.get("choices")
    if isinstance(choices, list) and len(choices) > 1:
        yield SEVERAL_CHOICES
    if one.calls.n > 1:
        yield SEVERAL_CALLS
    if one.calls.answer is None:
        yield NO_CALL if one.choice else NO_ANSWER
    elif not one.raw:
        yield NO_RAW_CALL
    if not is_all_text:
        yield NOT_ONLY_TEXT


def _token_ids(choice: Mapping[str, Any]) -> Any:
    # LiteLLM moves vLLM's field.
    moved = choice.get("provider_specific_fields")
    if choice.get("token_ids") is None and isinstance(moved, Mapping):
        return moved.get("token_ids")
    return choice.get("token_ids")


def _first(*values: Any) -> int | None:
    return next((value_read for value in values if (value_read := whole(value)) is not None and value_read >= 0), None)


def read_scores(sample: Mapping[str, Any]) -> dict[str, LoggedScore]:
    """Return a sample's scores by scorer; a score object gives one per key, `scorer.key`.

    Raises InvalidInput, without the file's name.
    """
    scores = {}
    for scorer, score in mapping(sample.get("scores"), "scores").items():
        given = mapping(score, f"scores.{scorer[:80]}")
        for name, value in _single(scorer, given.get("value")):
            scores[name] = LoggedScore(_as_number(value), _words(value, given))
    return scores


def in_order(names: Sequence[str], results: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the scorers' names, the main one first: the log's headline, else the first of its results.

    `found` are the names in the order in which samples had them, `results` is the log's. Raises InvalidInput, without
    the file's name.
    """
    listed = [mapping(results.get("headline"), "results.headline"), *objects(results.get("scores"), "results.scores")]
    for entry in listed:
        scorer, name = text(entry.get("scorer")), text(entry.get("name") or entry.get("score"))
        for candidate in (f"{scorer}.{name}", name, scorer):
            if candidate in names:
                return (candidate, *(other for other in names if other != candidate))
    return tuple(names)


def _single(scorer: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"{scorer}.{key}", item) for key, item in value.items())
    else:
        yield scorer, value


def _as_number(value: Any) -> float | None:
    """Return a score as a number, None if it is no number."""
    if isinstance(value, str):
        value = _LETTERS.get(value, _WORDS.get(value.lower(), value))
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _words(value: Any, score: Mapping[str, Any]) -> str:
    """Return the scorer's value, with its explanation or the answer that it read."""
    words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    why = text(score.get("explanation")) or text(score.get("answer"))
    return shortened(f"{words}: {why}" if why else words)
