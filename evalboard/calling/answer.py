"""Convert a server's answer to a response in the form of logs, or to a failure of case, try or run.

Answers are read by `evalboard.importers`, exactly as a log of the same call would be.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NoReturn

from evalboard.calling.calls import Answered, EndpointRefused, Exchange, FailedCall
from evalboard.calling.mask import Mask
from evalboard.calling.request import Built
from evalboard.calling.retries import TOO_MANY, passing_status, wished_seconds
from evalboard.calling.wire import CallFailed, HttpReply, TryFailed, Wire
from evalboard.contract.call import CallFacts
from evalboard.core.errors import InvalidInput
from evalboard.core.trace import ClockAhead, measure_clock
from evalboard.importers import backends, responses_api
from evalboard.importers.calls import read_call
from evalboard.importers.completions import broken_off, count_usage, ending_problem, error_words, refuses_prompt
from evalboard.importers.event_streams import BROKEN_OFF, read_stream
from evalboard.importers.field_values import shortened, text, whole
from evalboard.importers.json_files import parse_value
from evalboard.importers.records import LoggedResponse, ServedBy

# Every other call of the run would be refused as well: the key, the account, the model, the address.
FORBIDDEN, NOT_ALLOWED, BAD_GATEWAY = 403, 405, 502
WHOLE_REFUSALS = frozenset({401, 402, FORBIDDEN, 404, NOT_ALLOWED})
# What an error that is a text alone says where it may pass.
LIMITED = re.compile(r"(?i)rate[ _-]?limit|too many requests|quota")
PASSING = re.compile(LIMITED.pattern + r"|overloaded|unavailable|timed? ?out|try again|temporar")
# A 403 that is about this prompt alone, as OpenRouter's moderation says it.
ABOUT_THE_PROMPT = ("moderation", "flagged", "content policy", "content_policy", "safety")
TOO_LONG = ("context_length", "context length", "maximum context", "prompt is too long")
LOOK_SECONDS = 10.0
MAX_DETAIL_CHARS = 1000
MAX_ID_CHARS = 200
LONGEST_ERROR_BYTES = 100_000  # of a body that is looked into for ids


class CallRefused(EndpointRefused):
    """The server refuses a call by a status that ends the run only if nothing of it was answered.

    `words` are its whole answer as text where that may name a parameter, as a 403 does for one that costs more.
    """

    def __init__(self, detail: str, *, words: str = "") -> None:
        super().__init__(detail)
        self.words = words


class ParameterRefused(Exception):
    """The server refuses a call by 400 or 422. words: its whole answer, which may name a parameter."""

    def __init__(self, detail: str, *, words: str) -> None:
        super().__init__(detail)
        self.words = words


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When the last try of a call began and ended by the database's clock, and how many tries there were.

    worker_ahead: seconds by which the worker's own clock was ahead of it; None where the database was not heard.
    """

    started_at: datetime
    ended_at: datetime
    n_tries: int
    worker_ahead: float | None


def read_body(reply: HttpReply, mask: Mask, *, now: datetime) -> dict[str, Any]:
    """Return the body of an answer that is one.

    now: by which a moment is read until which the server wants to be left alone, where it does not say its own time.
    Raises TryFailed, CallFailed, ParameterRefused or EndpointRefused, with the server's words and without secrets.
    """
    if not 200 <= reply.status < 300:
        reply = _masked(reply, mask)
        error = _object_in(reply.content).get("error")
        _refuse(reply.status, reply, _words(reply, mask), now=now, error=error)
    body = _body(reply, mask)
    if body.get("error") == BROKEN_OFF:
        raise TryFailed("cut_short", BROKEN_OFF)
    for part in (body, *_choices(body)):
        if failure := error_words(part):
            status = _number(part.get("error"), "code", "status", "status_code")  # of the server behind a gateway
            status = status if status is not None and 400 <= status < 600 else None if part is not body else 400
            words = _detail(failure, mask)
            _refuse(status or BAD_GATEWAY, _masked(reply, mask), words, now=now, error=part.get("error"))
    if failure := _broken_off(body):
        wish = wished_seconds(reply.headers, now)
        raise TryFailed("call_failed", _detail(f"It answered {reply.status}. {failure}", mask), seconds=wish)
    return body


def _body(reply: HttpReply, mask: Mask) -> dict[str, Any]:
    """Return the object of an answer, or of its stream. Raises CallFailed."""
    try:
        body = mask.answer(reply.content)
    except InvalidInput:
        body = None
        with suppress(InvalidInput):
            body = read_stream(reply.content, mask.answer)
        if body is None:
            raise _no_json(_masked(reply, mask)) from None
    if not isinstance(body, dict):
        raise CallFailed("no_answer", "The answer is JSON, but no object.")
    return body


def _choices(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    choices = body["choices"] if isinstance(body.get("choices"), list) else []
    return [choice for choice in choices if isinstance(choice, Mapping)]


def _number(error: Any, *names: str) -> int | None:
    """The first of these fields of an error that is a number, or one in digits."""
    given = [error.get(name) for name in names] if isinstance(error, Mapping) else []
    numbers = [int(each) if isinstance(each, str) and each.isascii() and each.isdigit() else each for each in given]
    return next((each for each in numbers if whole(each) is not None), None)


def _broken_off(body: Mapping[str, Any]) -> str:
    """Say that the server broke off the answer, by its finish reason; "" if it did not."""
    if responses_api.is_response(body):
        return ending_problem(text(body.get("status")), error=error_words(body))
    return next((words for choice in _choices(body) if (words := broken_off(choice))), "")


def read_answer(
    case_index: int,
    reply: HttpReply,
    body: Mapping[str, Any],
    built: Built,
    timing: Timing,
    *,
    base_url: str,
    mask: Mask,
) -> Answered | FailedCall:
    """Return the response in a body, or why there is none in it."""

    def _failed(code: str, words: str) -> FailedCall:
        return failed(case_index, code, words, mask, built=built, timing=timing, reply=reply)

    headers = {name: mask.text(value) for name, value in reply.headers.items()}
    given = body
    if responses_api.is_response(body):
        body = responses_api.as_completion(body)
    try:
        call = read_call(
            place="",
            request={"model": built.body["model"], "seed": built.seed},
            body=body,
            case_id="-",
            headers=headers,
            url=base_url,
            seconds=(timing.ended_at - timing.started_at).total_seconds(),
            started_at=timing.started_at,
            finished_at=timing.ended_at,
            flags=("retried",) if timing.n_tries > 1 else (),
        )
    except InvalidInput as problem:
        return _failed("no_answer", f"The answer cannot be read: {problem.detail}")
    response = mask.response(call.responses[0])
    if _divides(call.responses[0], response):
        given = {**body, "choices": [_plain_choice(response)]}
    if response.error:
        return _failed("no_answer", response.error if body.get("choices") else "The answer holds no choice.")
    if not response.finish_reason:
        return _failed("no_answer", "The answer does not say why it ended, so that it may be part of one.")
    usage, choice = count_usage(body), body["choices"][0]
    seed = whole(body.get("seed"))
    facts = CallFacts(
        **_facts_of(headers, body, response.served_by),
        started_at=timing.started_at,
        ended_at=timing.ended_at,
        n_tries=timing.n_tries,
        status=reply.status,
        seed_echoed=whole(choice.get("seed")) if seed is None else seed,
        n_tokens=usage.n_tokens,
        n_prompt_tokens=usage.n_prompt,
        n_reasoning_tokens=usage.n_reasoning,
        n_cached_tokens=usage.n_cached,
        left_out=built.left_out,
        dropped=response.dropped,
        clock_ahead=_clock(headers, timing),
        worker_ahead=timing.worker_ahead,
    )
    return Answered(case_index=case_index, response=response, call=facts, exchange=Exchange(built.body, headers, given))


def _divides(read: LoggedResponse, masked: LoggedResponse) -> bool:
    """Tell whether parts or tokens of an answer divide a secret, so that its body still has it."""
    texts = (masked.text, masked.reasoning) != (read.text, read.reasoning)
    return texts or masked.positions is not read.positions


def _plain_choice(response: LoggedResponse) -> dict[str, Any]:
    """Return the choice that an answer is without its tokens."""
    message = {"role": "assistant", "content": response.text, "reasoning_content": response.reasoning}
    return {"index": 0, "finish_reason": response.finish_reason, "message": message}


def _clock(headers: Mapping[str, str], timing: Timing) -> ClockAhead | None:
    """Return what the header Date shows, None from a cache, whose Date is that of an earlier answer."""
    return None if "age" in headers else measure_clock(headers.get("date", ""), timing.started_at, timing.ended_at)


def failed(
    case_index: int, code: str, words: str, mask: Mask, *, built: Built, timing: Timing, reply: HttpReply | None
) -> FailedCall:
    """Return a case's failure, with a masked and shortened text, and what is known of the call.

    reply: of its last try, None without one.
    """
    if reply is None:
        headers: Mapping[str, str] = {}
        body: Mapping[str, Any] = {}
    else:
        reply = _masked(reply, mask)
        headers, body = reply.headers, _object_in(reply.content)
    facts = CallFacts(
        **_facts_of(headers, body, backends.served_by(headers=headers, body=body)),
        started_at=timing.started_at,
        ended_at=timing.ended_at,
        n_tries=timing.n_tries,
        status=None if reply is None else reply.status,
        seed_echoed=None,
        n_tokens=None,
        n_prompt_tokens=None,
        left_out=built.left_out,
        clock_ahead=_clock(headers, timing),
        worker_ahead=timing.worker_ahead,
    )
    return FailedCall(case_index, code, _detail(words, mask), facts, Exchange(built.body, headers, body))


def _facts_of(headers: Mapping[str, str], body: Mapping[str, Any], served_by: ServedBy) -> dict[str, Any]:
    """Who answered, and by which ids they will know it."""
    return {
        "response_id": _id(body.get("id")),
        "request_id": _id(next((headers[name] for name in backends.REQUEST_IDS if name in headers), "")),
        "system_fingerprint": served_by.system_fingerprint,
        "backend": served_by.key,
        "backend_from": served_by.key_from,
        "model_reported": served_by.model,
    }


def _object_in(content: bytes) -> Mapping[str, Any]:
    """The object that a body is; an empty one where it is none."""
    try:
        body = parse_value(content, where="") if len(content) <= LONGEST_ERROR_BYTES else None
    except InvalidInput:
        return {}
    return body if isinstance(body, Mapping) else {}


def lists_vllm(wire: Wire) -> bool:
    """Tell whether the server's list of models names vLLM as their owner; behind a gateway it does not."""
    try:
        reply = wire.get("/models", seconds=LOOK_SECONDS)
        body = parse_value(reply.content, where="") if reply.status == 200 else None
    except (TryFailed, CallFailed, InvalidInput):
        return False
    listed = body.get("data") if isinstance(body, dict) else None
    models = [model for model in listed if isinstance(model, dict)] if isinstance(listed, list) else []
    return any(model.get("owned_by") == "vllm" for model in models)


def _refuse(status: int, reply: HttpReply, words: str, *, now: datetime, error: Any) -> NoReturn:
    """Raise the error of a status. `status` may differ from the reply's: one in its body.

    error: the error in the body, None without one. If it says that it is temporary, that counts.
    """
    named = (
        [error.get(name) for name in ("code", "status", "status_code", "type")] if isinstance(error, Mapping) else []
    )
    if (passing := passing_status([status, *named])) is None and isinstance(error, str) and PASSING.search(error):
        passing = TOO_MANY if LIMITED.search(error) else BAD_GATEWAY
    start = f"It answered {reply.status}" if status == reply.status else f"It answered {reply.status} with an error"
    detail = _shown(f"{start}: {words}" if words else f"{start}.")
    if 300 <= status < 400:
        raise EndpointRefused(f"It answered {status}; redirects are not followed, so give the final address.")
    is_flagged = status == 403 and any(word in words.lower() for word in ABOUT_THE_PROMPT)
    if passing is not None:
        wish = wished_seconds(reply.headers, now)
        raise TryFailed("call_failed", detail, seconds=wish, is_limited=passing == TOO_MANY)
    if is_flagged or (status in (400, 403, 422) and refuses_prompt(error)):
        raise CallFailed("prompt_filtered", detail)
    raw = reply.content[:20_000].decode("utf-8", "replace")
    if status in WHOLE_REFUSALS:
        words_of_403 = raw if status == FORBIDDEN else ""
        raise EndpointRefused(detail) if status == NOT_ALLOWED else CallRefused(detail, words=words_of_403)
    if status in (400, 422):
        if any(word in raw.lower() for word in TOO_LONG):
            raise CallFailed("prompt_too_long", detail)
        raise ParameterRefused(detail, words=raw)
    raise CallFailed("call_refused", detail)


def _masked(reply: HttpReply, mask: Mask) -> HttpReply:
    """Return a reply without secrets, masked before anything is cut, so that no part of one is left."""
    content = mask.text(reply.content.decode("utf-8", "replace")).encode()
    return replace(reply, content=content, headers={name: mask.text(value) for name, value in reply.headers.items()})


def _words(reply: HttpReply, mask: Mask) -> str:
    """The server's own words, of an error body in any of the usual forms, else the body's beginning."""
    try:
        body = parse_value(reply.content, where="")
    except InvalidInput:
        body = None
    if isinstance(body, Mapping):
        words = error_words(body) or text(body.get("message")) or text(body.get("detail"))
        if words:
            return mask.text(words)  # parts that were joined
    return " ".join(reply.content[:4000].decode("utf-8", "replace").split())


def _no_json(reply: HttpReply) -> CallFailed:
    content = reply.content.strip()
    if content.startswith(b"{") and not content.endswith(b"}"):
        return CallFailed("cut_short", f"The answer is JSON that ends in its middle, after {len(content):,} bytes.")
    kind = reply.headers.get("content-type", "")[:100] or "nothing"
    start = " ".join(content[:200].decode("utf-8", "replace").split())
    words = f"The answer is no JSON; it calls itself {kind} and begins: {start}" if start else "The answer is empty."
    return CallFailed("not_json", _shown(words))


def _detail(words: str, mask: Mask) -> str:
    return _shown(mask.text(words))


def _shown(words: str) -> str:
    return shortened("".join(char if char.isprintable() else " " for char in words), MAX_DETAIL_CHARS)


def _id(value: Any) -> str:
    return "".join(char for char in text(value) if char.isprintable())[:MAX_ID_CHARS]
