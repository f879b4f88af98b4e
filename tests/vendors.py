"""Vendors of one model: scripted servers, one for each fault that a vendor card names, and answers without a server."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from evalboard.core.probes import ProbeExchange, complete_parameters, plan_calls
from evalboard.core.probes.vendor_calls import TOOL_NAME, list_codes, place_in_group
from tests.scripted import Received, Reply, status, unknown_parameter
from tests.scripted_answers import Answerer

N_WORDS = 30
BOOKING = re.compile(r"book a table (\w+) for (\d+) at the restaurant (.+) on (\w+) at (\d+):(\d+)")
Change = Callable[[Received, dict[str, Any]], dict[str, Any] | Reply]


def count_tokens(text: str) -> int:
    """Count as the model's own tokenizer: words, and each sign that is no letter."""
    return len(re.findall(r"[^\W\d_]+|\S", text))


def good_body(received: Received) -> dict[str, Any]:
    """Return what an honest vendor answers: tools, schemas, long prompts and plain texts."""
    body: dict[str, Any] = json.loads(json.dumps(received.good))
    request, prompt = received.body, received.prompt
    choice = body["choices"][0]
    body["usage"]["prompt_tokens"] = 7 + count_tokens(prompt)
    wanted = request.get("tool_choice", "auto")
    booking = BOOKING.search(prompt)
    if request.get("tools") and wanted != "none" and (booking or isinstance(wanted, Mapping)):
        seat, guests, name, day, hour, minute = booking.groups() if booking else ("inside", 2, "Elm", "friday", 18, 0)
        arguments = {
            "restaurant": name,
            "guests": int(guests),
            "day": str(day).lower(),
            "time": {"hour": int(hour), "minute": int(minute)},
            "outside": seat == "outside",
        }
        call_tool(choice, json.dumps(arguments))
    elif request.get("response_format"):
        city = {"city": prompt.split()[-1].strip("."), "continent": "one", "is_capital": False, "rivers": ["long"]}
        say(choice, json.dumps(city))
    elif code := re.search(r"The code word is (\w+)", prompt):
        say(choice, code.group(1))
    return body


def say(choice: dict[str, Any], text: str) -> None:
    choice |= {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}


def call_tool(choice: dict[str, Any], arguments: str) -> None:
    call = {"id": "call-1", "type": "function", "function": {"name": "book_table", "arguments": arguments}}
    choice |= {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}


def as_stream(body: Mapping[str, Any]) -> bytes:
    """Return a whole answer as the events of a stream, a few characters in each."""
    choice = body["choices"][0]
    text = choice["message"]["content"] or ""
    start = {"id": body["id"], "object": "chat.completion.chunk", "model": body["model"], "created": 1}
    start["system_fingerprint"] = body["system_fingerprint"]
    deltas = [{"role": "assistant", "content": ""}, *({"content": text[at : at + 7]} for at in range(0, len(text), 7))]
    chunks = [{**start, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**start, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def vendor(change: Change = lambda received, body: body) -> Callable[[Received], Reply]:
    """Return the script of a vendor. change: what it does to an honest answer."""

    def script(received: Received) -> Reply:
        answer = change(received, good_body(received))
        if isinstance(answer, Reply):
            return answer
        if received.body.get("stream"):
            return Reply(as_stream(answer), headers={"Content-Type": "text/event-stream"})
        return Reply(answer)

    return script


def replaying(received: Received, **changes: Any) -> dict[str, Any]:
    """Return the honest answer to the call with other fields; a field of None is left out."""
    asked = {name: value for name, value in {**received.body, **changes}.items() if value is not None}
    return good_body(Received(received.number, received.path, received.headers, asked, received.good))


def breaks_arguments(received: Received, body: dict[str, Any]) -> dict[str, Any]:
    """Leave out a field of the arguments in two of three tool calls."""
    for call in body["choices"][0]["message"].get("tool_calls", []) if received.number % 3 else []:
        arguments = json.loads(call["function"]["arguments"])
        del arguments["time"]
        call["function"]["arguments"] = json.dumps(arguments)
    return body


def drops_tool_choice(received: Received, body: dict[str, Any]) -> dict[str, Any]:
    return replaying(received, tool_choice=None) if "tool_choice" in received.body else body


def ignores_format(received: Received, body: dict[str, Any]) -> dict[str, Any]:
    return replaying(received, response_format=None) if "response_format" in received.body else body


def counts_otherwise(received: Received, body: dict[str, Any]) -> dict[str, Any]:
    body["usage"]["prompt_tokens"] = 7 + len(received.prompt.encode()) // 4
    return body


def cuts_prompts(received: Received, body: dict[str, Any]) -> dict[str, Any]:
    """Keep the last 2,000 tokens of a prompt, and say nothing."""
    if count_tokens(received.prompt) > 2000:
        body["usage"]["prompt_tokens"] = 2000
        say(body["choices"][0], "unknown")
    return body


def is_8_bit(received: Received, body: dict[str, Any]) -> dict[str, Any]:
    """Move every logprob by about 0.4 nats, as a rough quantisation does; the texts mostly stay."""
    for place, entry in enumerate((body["choices"][0].get("logprobs") or {}).get("content") or []):
        for at, other in enumerate(entry["top_logprobs"]):
            other["logprob"] -= 0.4 * (1 if (place + at) % 2 else -1)
    return body


def streams_otherwise(received: Received, body: dict[str, Any]) -> dict[str, Any]:
    if received.body.get("stream"):
        message = body["choices"][0]["message"]
        message["content"] = (message["content"] or "").strip().replace(" ", "")
    return body


def falls_back(received: Received, body: dict[str, Any]) -> dict[str, Any]:
    """Have another model answer one call of eight."""
    return body | ({"model": "paint-mini", "system_fingerprint": "fp-mini"} if received.number % 8 == 0 else {})


def refuses_tools(received: Received, body: dict[str, Any]) -> dict[str, Any] | Reply:
    if "tools" in received.body:
        return status(400, words="This model has no tools.", param="tools", code="unsupported")
    return unknown_parameter("response_format") if "response_format" in received.body else body


class Paint(Answerer):
    """The model that all vendors serve."""

    def __init__(self) -> None:
        super().__init__(n_tokens=N_WORDS)


# By fault: what a vendor does, and the rows of the card that name it.
FAULTY: dict[str, tuple[Change, set[str]]] = {
    "arguments": (breaks_arguments, {"tool_arguments"}),
    "tool-choice": (drops_tool_choice, {"tool_choice"}),
    "tokenizer": (counts_otherwise, {"prompt_tokens"}),
    "context": (cuts_prompts, {"context"}),
    "eight-bit": (is_8_bit, {"answers"}),
    "stream": (streams_otherwise, {"stream"}),
    "format": (ignores_format, {"json_schema"}),
    "fallback": (falls_back, {"one_model"}),
}


# --- without a server

PARAMETERS = complete_parameters("vendor", {})
ARGUMENTS = json.dumps(
    {"restaurant": "Elm", "guests": 2, "day": "friday", "time": {"hour": 18, "minute": 0}, "outside": False}
)
CITY = json.dumps({"city": "Lyon", "continent": "Europe", "is_capital": False, "rivers": ["Rhône"]})


def honest(call: ProbeExchange) -> ProbeExchange:
    """Answer as a vendor without a fault."""
    seen = replace(call, text=f"text {call.prompt}", finish_reason="stop", n_prompt_tokens=9 + call.prompt, seconds=0.5)
    seen = replace(seen, model="paint-1b", system_fingerprint="fp-a", n_tokens=4)
    if call.group == "counted":
        return replace(seen, finish_reason="length", n_tokens=1)
    if call.group in ("tool", "named"):
        return replace(seen, tool_calls=((TOOL_NAME, ARGUMENTS),), finish_reason="tool_calls")
    if call.group in ("short", "long"):
        n_sentences = 350 if call.group == "long" else 10 if place_in_group(call) % 2 else 110
        return replace(seen, text=list_codes()[place_in_group(call)], n_prompt_tokens=20 + 12 * n_sentences)
    return replace(seen, text=CITY) if call.group == "schema" else seen


def without_choice(call: ProbeExchange) -> ProbeExchange:
    return replace(honest(call), tool_calls=(), finish_reason="stop") if call.group == "named" else with_none(call)


def with_none(call: ProbeExchange) -> ProbeExchange:
    return replace(honest(call), tool_calls=((TOOL_NAME, ARGUMENTS),)) if call.group == "none" else honest(call)


def vendor_calls(change: Callable[[ProbeExchange], ProbeExchange] = lambda call: call) -> list[ProbeExchange]:
    """Return the calls of a probe with the answers of an honest vendor. change: what becomes of each."""
    planned = plan_calls("vendor", PARAMETERS, ())
    return [change(honest(replace(call, is_remote=True))) for call in planned]
