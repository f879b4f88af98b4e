"""Calls to a server of others over real sockets: what comes back of answers, and what of everything that breaks."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from evalboard.calling.calls import CallOutcome, DecodeRequest, EndpointRefused, EndpointRests, FailedCall
from evalboard.core.answer import AnswerParts, split_parts
from evalboard.core.trace import Failed
from tests.nightly import few
from tests.scripted import (
    Received,
    Reply,
    ScriptedServer,
    cut,
    drip,
    hang,
    html,
    huge,
    ok,
    redirect,
    refusing,
    reset,
    rotating,
    status,
    truncated_json,
    unknown_parameter,
)
from tests.scripted_answers import Answerer
from tests.servers import free_port
from tests.waiting import wait_until
from tests.worker.openai_cases import SAMPLING, answered, decode, failed, opened, questions
from worker.engines.openai import OpenAIEngine

CASE = questions(1)[0]


def test_an_answer_is_read_as_a_log_of_it_would_be() -> None:
    before = datetime.now(UTC)
    with ScriptedServer(ok(headers={"X-Request-Id": "req-7", "X-Evalboard-Backend": "blue"}, seed=42)) as server:
        (outcome,) = decode(server)
    response, call = answered(outcome).response, answered(outcome).call
    (received,) = server.requests
    assert received.path == "/v1/chat/completions"
    assert received.body["model"] == "their-model"
    assert (response.case_id, response.repeat, response.flags) == ("", 1, ())
    assert response.text == received.good["choices"][0]["message"]["content"]
    assert (response.finish_reason, response.seed, response.n_tokens, response.n_prompt_tokens) == ("stop", 42, 8, 5)
    positions = response.positions
    assert positions is not None
    assert [position.token.decode() for position in positions] == [word + " " for word in response.text.split()]
    assert {len(position.alternatives) for position in positions} == {2}
    assert not positions.has_ids
    assert (response.served_by.key, response.served_by.key_from) == ("blue", "x-evalboard-backend")
    assert before <= call.started_at <= call.ended_at <= datetime.now(UTC)
    assert call.started_at.tzinfo is not None
    assert call.model_dump(exclude={"started_at", "ended_at"}) == {
        "n_tries": 1,
        "status": 200,
        "response_id": received.good["id"],
        "request_id": "req-7",
        "seed_echoed": 42,
        "system_fingerprint": "fp-a",
        "backend": "blue",
        "backend_from": "x-evalboard-backend",
        "model_reported": "their-model",
        "n_tokens": 8,
        "n_prompt_tokens": 5,
        "n_reasoning_tokens": None,
        "n_cached_tokens": None,
        "left_out": (),
        "dropped": (),
        "clock_ahead": None,
        "worker_ahead": None,  # nobody has heard the database
    }


def test_the_date_of_an_answer_says_how_far_the_servers_clock_is_unless_a_cache_gave_it() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    with ScriptedServer([ok(headers={"Date": later}), ok(headers={"Date": later, "Age": "3600"})]) as server:
        seen = [answered(outcome).call.clock_ahead for outcome in decode(server, questions(2))]
    [(low, high)] = [each for each in seen if each is not None]
    assert 3590 < low < 3600.1 < high + 0.2 < 3610


def test_a_vllm_is_known_by_its_list_of_models_and_gives_token_ids() -> None:
    with ScriptedServer(answerer=Answerer(is_vllm=True)) as server:
        (outcome,) = decode(server)
    response = answered(outcome).response
    assert server.looks == ["/v1/models"]
    assert server.requests[0].body["return_token_ids"] is True
    assert server.requests[0].body["top_k"] == 0
    assert response.positions is not None
    assert response.positions.has_ids
    assert response.prompt_token_ids == (1, 2, 3, 4, 5)


def test_a_vllm_behind_a_gateway_is_known_by_its_fingerprint_and_asked_again_in_full() -> None:
    """Its first answer may be decoded by the model's own top_k, which the profile did not say."""
    with ScriptedServer(answerer=Answerer(fingerprint="vllm-0.32.0-ac2590de")) as server:
        outcomes = decode(server, questions(3))
    assert ["top_k" in received.body for received in server.requests] == [False, True, True, True]
    for outcome in outcomes:
        assert (answered(outcome).call.n_tries, answered(outcome).response.flags) == (1, ())


@pytest.mark.parametrize("api", ["completions", "responses"])
def test_the_other_apis_give_the_same_shape(api: str) -> None:
    with ScriptedServer() as server:
        (outcome,) = decode(server, api=api)
    response, call = answered(outcome).response, answered(outcome).call
    assert server.requests[0].path == f"/v1/{api}"
    assert (len(response.text.split()), response.finish_reason, call.n_tokens, call.n_prompt_tokens) == (
        8,
        "stop",
        8,
        5,
    )
    assert response.positions is not None
    assert len(response.positions) == 8
    if api == "responses":
        assert (response.reasoning, response.seed, call.left_out) == ("It thought.", None, ("seed",))


def test_an_answer_of_the_responses_api_that_was_cut_says_so() -> None:
    with ScriptedServer() as server:
        (outcome,) = decode(server, questions(1, max_tokens=3), api="responses")
    assert (answered(outcome).response.finish_reason, answered(outcome).call.n_tokens) == ("length", 3)


def test_reasoning_and_missing_logprobs_are_no_failure() -> None:
    message = {"role": "assistant", "content": "4", "reasoning_content": "2 and 2"}
    body = {"id": "a", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    with ScriptedServer(Reply(body)) as server:
        (outcome,) = decode(server)
    response, call = answered(outcome).response, answered(outcome).call
    assert (response.text, response.reasoning, response.positions) == ("4", "2 and 2", None)
    assert (call.seed_echoed, call.n_tokens, call.backend_from) == (None, None, "base_url")


def test_a_case_that_cannot_be_sent_is_refused_and_the_others_are_not() -> None:
    system = DecodeRequest(case_index=1, messages=[{"role": "system", "content": "Hm."}], sampling=SAMPLING)
    with ScriptedServer() as server:
        first, second = decode(server, [CASE, system], api="completions")
    answered(first)
    assert (failed(second).code, len(server.requests)) == ("call_refused", 1)


def saying(content: Any, **fields: Any) -> Reply:
    """An answer whose message holds this content."""
    message = {"role": "assistant", "content": content, **fields}
    return ok(choices=[{"index": 0, "message": message, "finish_reason": "stop"}])


def streamed(*deltas: Mapping[str, Any], end: str | None = None, kind: str = "text/event-stream") -> Reply:
    """A stream that nobody asked for; end: its finish reason, None where it has none."""
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    choices += [{"index": 0, "delta": {}, "finish_reason": end}] if end else []
    chunks = [json.dumps({"id": f"c-{n}", "choices": [choice]}) for n, choice in enumerate(choices)]
    content = "".join(f"data: {chunk}\n\n" for chunk in chunks) + ("data: [DONE]\n\n" if end else "")
    return Reply(content.encode(), headers={"Content-Type": kind})


RAIN_CHOICE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Rain."}}
RAIN = {"choices": [RAIN_CHOICE]}
RAIN_JSON = json.dumps(RAIN).encode()
# What each fault ends as, and after how many calls.
WITHOUT_REASON = {"choices": [{"index": 0, "finish_reason": None, "message": {"role": "assistant", "content": "Half"}}]}
FAULTS: dict[str, tuple[Reply, str, int, str]] = {
    "html with 200": (html(), "not_json", 1, "begins: <!doctype html>"),
    "an empty answer": (Reply(b""), "not_json", 1, "empty"),
    "truncated json": (truncated_json(), "cut_short", 1, "ends in its middle"),
    "a list": (Reply(b"[1]"), "no_answer", 1, "no object"),
    "no choices": (Reply({"id": "a", "choices": []}), "no_answer", 1, "no choice"),
    "choices of another kind": (Reply({"choices": "none"}), "no_answer", 1, "cannot be read"),
    "an answer in sound": (saying(None, audio={"id": "a", "transcript": "Rain."}), "no_answer", 1, "content is audio"),
    "bare texts in a list": (saying(["Rain."]), "no_answer", 1, "a list of texts"),
    "parts of an unknown type": (saying([{"type": "hologram", "data": "…"}]), "no_answer", 1, "hologram"),
    "content that is an object": (saying({"answer": "Rain."}), "no_answer", 1, "content is objects"),
    "an error with 200": (Reply({"error": {"message": "out of luck"}}), "call_refused", 1, "out of luck"),
    "an error with 200 and a number of none": (
        Reply({"choices": [{**RAIN_CHOICE, "error": {"message": "out", "code": 600}}]}),
        "call_failed",
        8,
        "out",
    ),
    "an error with 200 and the first number of one": (
        Reply({"choices": [{**RAIN_CHOICE, "error": {"message": "out", "code": 400}}]}),
        "call_refused",
        1,
        "It answered 200 with an error: out",
    ),
    "an error with 200 and a word for a number": (
        Reply({"choices": [{**RAIN_CHOICE, "error": {"message": "out", "code": "gone", "status": "413"}}]}),
        "call_refused",
        1,
        "out",
    ),
    "an error with 200 and a power for a number": (
        Reply({"choices": [{**RAIN_CHOICE, "error": {"message": "out", "code": "4¹³", "status": 413}}]}),
        "call_refused",
        1,
        "out",
    ),
    "a choice that is a text": (Reply({"choices": ["Rain."]}), "no_answer", 1, "cannot be read"),
    "an error's own field": (
        Reply({"message": "Out of luck."}, status=410),
        "call_refused",
        1,
        "It answered 410: Out of",
    ),
    "an error's detail": (Reply({"detail": "Out of luck."}, status=410), "call_refused", 1, "It answered 410: Out of"),
    "an error's message": (
        Reply({"error": {"message": "Out of\x00luck."}}, status=410),
        "call_refused",
        1,
        "It answered 410: Out of luck.",
    ),
    "an error in HTML": (Reply(b"<b>Gone</b>", status=410), "call_refused", 1, "It answered 410: <b>Gone</b>"),
    "JSON that is no error": (Reply({"error": None, "a": 1}, status=410), "call_refused", 1, '{"error": null, "a": 1}'),
    "a safety word of another status": (status(400, words="Bad safety setting."), "call_refused", 1, "safety"),
    "a filter's word of another status": (status(410, code="content_filter"), "call_refused", 1, "It answered 410"),
    "no JSON of no type": (
        Reply(b"Rain.", headers={"Content-Type": ""}),
        "not_json",
        1,
        "calls itself nothing and begins: Rain.",
    ),
    "an error within a choice": (ok(choices=[{"error": {"message": "gone"}}]), "call_failed", 8, "gone"),
    "a refusal within a choice": (ok(choices=[{"error": {"code": "413"}}]), "call_refused", 1, "without words"),
    "a stream without an end": (streamed({"content": "Ra"}), "cut_short", 8, "breaks off"),
    "no finish reason": (ok(**WITHOUT_REASON), "no_answer", 1, "does not say why it ended"),
    "a long answer": (huge(), "too_large", 1, "104,857,700 bytes"),
    "a long answer, packed": (huge(40 * 2**20, is_packed=True), "too_large", 1, "32 MiB"),
    "packed and damaged": (
        Reply(b"no gzip", headers={"Content-Encoding": "gzip"}),
        "not_json",
        1,
        "cannot be unpacked",
    ),
    "packed by what was not wanted": (Reply(b"??", headers={"Content-Encoding": "br"}), "not_json", 1, "br"),
    "a comment before the object": (Reply(b": waiting\n\n" + RAIN_JSON), "not_json", 1, "begins: : waiting"),
    "another encoding": (Reply(RAIN_JSON.replace(b"Rain", b"\xfcber")), "not_json", 1, "is no JSON"),
    "a task that was taken for later": (
        Reply({"id": "t-1", "status": "queued"}, status=202),
        "no_answer",
        1,
        "no choice",
    ),
    "a refusal of this case": (status(400, words="Bad tools."), "call_refused", 1, "Bad tools."),
    "413": (status(413), "call_refused", 1, "It answered 413"),
    "too long a prompt": (
        status(400, words="This model's maximum context length is 4096 tokens."),
        "prompt_too_long",
        1,
        "4096",
    ),
    "too long an answer": (
        status(400, words="max_tokens=5000 cannot be greater than max_model_len=1024.", param="max_tokens"),
        "call_refused",
        1,
        "max_model_len=1024",
    ),
    "a moderated prompt": (status(403, words="Your input was flagged."), "prompt_filtered", 1, "flagged"),
    "a filtered prompt": (status(400, code="content_filter"), "prompt_filtered", 1, "It answered 400"),
    "a prompt that a policy forbids": (
        status(422, innererror={"code": "ResponsibleAIPolicyViolation"}),
        "prompt_filtered",
        1,
        "It answered 422",
    ),
    "429 for ever": (status(429, {"Retry-After": "0"}), "call_failed", 8, "Tried 4 times. It answered 429"),
    "429 for ever, without a word of when": (status(429), "call_failed", 8, "Tried 4 times. It answered 429"),
    "503 for ever": (status(503), "call_failed", 8, "Tried 4 times. It answered 503"),
    "resets for ever": (reset(), "call_failed", 8, "Tried 4 times. "),
    "cut in the middle for ever": (cut(), "cut_short", 8, "within the answer"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_as_its_code_and_never_as_an_answer(name: str) -> None:
    """Of a server that answers other cases: what may have been the server's fault is asked again in four more tries."""
    reply, code, n_calls, words = FAULTS[name]
    with ScriptedServer(for_case_1(reply)) as server:
        _, outcome = decode(server, questions(2))
    assert failed(outcome).code == code
    assert words in failed(outcome).detail
    assert sum(received.prompt == "Question 1?" for received in server.requests) == n_calls


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(RAIN), id="one choice and nothing else"),
        pytest.param(Reply(RAIN, status=201), id="201"),
        pytest.param(Reply(RAIN, status=206), id="206"),
        pytest.param(Reply(b"\xef\xbb\xbf" + RAIN_JSON), id="a byte order mark"),
        pytest.param(Reply(b"\n\n  \n" + RAIN_JSON), id="blank lines before it"),
        pytest.param(Reply(RAIN_JSON.replace(b'{"choices"', b'{"id": "a", "id": "b", "choices"')), id="a key twice"),
        pytest.param(
            Reply({"choices": [{**RAIN_CHOICE, "index": 1, "message": {"content": "Snow."}}, RAIN_CHOICE]}),
            id="the second choice first",
        ),
        pytest.param(ok(**RAIN, usage={"prompt_tokens": 5.0, "completion_tokens": 2.0}), id="counts with a point"),
        pytest.param(ok(**RAIN, usage=None, system_fingerprint=None), id="nulls"),
        pytest.param(
            saying([{"type": "text", "text": "Rain."}, {"type": "reference", "reference_ids": ["d1"]}]),
            id="a reference beside the text",
        ),
    ],
)
def test_what_only_looks_odd_is_an_answer(reply: Reply) -> None:
    with ScriptedServer(reply) as server:
        outcome = answered(*decode(server))
    assert (outcome.response.text, outcome.response.finish_reason) == ("Rain.", "stop")
    assert (outcome.call.n_tries, outcome.call.dropped) == (1, ())


def for_case_1(reply: Reply) -> Callable[[Received], Reply]:
    """A server that fails at one case and answers the others."""
    return lambda received: reply if received.prompt == "Question 1?" else ok()


PASSING = (
    *(status(429, {"Retry-After": "0"}), status(429), status(503), status(408), reset(), cut()),
    status(429, {"Retry-After-Ms": "3"}),
    status(400, code="rate_limit_exceeded"),
    status(403, code="Rate-Limit-Exceeded"),
    status(400, type="overloaded_error"),
    Reply({"error": {"message": "busy", "code": "429"}}),
    Reply({"error": {"message": "busy", "status": 503}}),
    Reply({"error": {"message": "busy", "type": "server_error"}}),
    Reply({"error": "The model is overloaded, try again later."}),
    Reply({"choices": [{"index": 0, "error": {"code": "service_unavailable", "message": "busy"}}]}),
    Reply({"choices": [{"index": 0, "error": {"code": 400, "type": "rate_limited"}, "finish_reason": "stop"}]}),
    Reply(b'data: {"choices": [{"index": 0, "delta": {"content": "Ra"}}]}\n\ndata: {"error": {"code": 502}}\n\n'),
)


@pytest.mark.parametrize("first", PASSING)
def test_what_passes_is_tried_again_and_the_answer_is_marked(first: Reply) -> None:
    with ScriptedServer([first, ok()]) as server:
        (outcome,) = decode(server)
    assert (answered(outcome).response.flags, answered(outcome).call.n_tries) == (("retried",), 2)


def broken_off(word: str, **fields: Any) -> Reply:
    message = {"role": "assistant", "content": "The ca"}
    return Reply(
        {"id": "a", "model": "m", "choices": [{"index": 0, "finish_reason": word, "message": message} | fields]}
    )


@pytest.mark.parametrize(
    ("api", "first"),
    [
        ("chat", broken_off("error")),
        ("chat", broken_off("Network-Error", error={"code": 502, "message": "gone"})),
        ("chat", broken_off("insufficient_system_resource")),
        (
            "responses",
            Reply({"object": "response", "status": "failed", "output": [], "error": {"code": "server_error"}}),
        ),
        ("responses", Reply({"object": "response", "status": "cancelled", "output": []})),
    ],
)
def test_an_answer_that_the_server_broke_off_is_asked_again(api: str, first: Reply) -> None:
    with ScriptedServer([first, ok()]) as server:
        (outcome,) = decode(server, api=api)
    assert (answered(outcome).call.n_tries, answered(outcome).response.flags) == (2, ("retried",))


def test_what_is_always_broken_off_is_missing_and_the_others_are_answered() -> None:
    def script(received: Received) -> Reply:
        return broken_off("error") if "Question 1?" in str(received.body) else ok()

    with ScriptedServer(script) as server:
        first, second, third = decode(server, questions(3))
    assert (answered(first).response.error, answered(third).response.error) == ("", "")
    assert failed(second).code == "call_failed"
    assert failed(second).detail.endswith("The server broke off the answer: it ended with 'error'.")


@pytest.mark.parametrize(
    ("reply", "dropped"),
    [
        (ok(usage=[3]), ("usage",)),
        (ok(usage="three"), ("usage",)),
        (saying("Rain.", tool_calls="none"), ("tool_calls",)),
        (saying("Rain \ud83d."), ("half a character",)),
        (ok(choices=[{"finish_reason": "stop", "message": {"content": "a"}, "logprobs": [-0.5]}]), ("logprobs",)),
        (
            ok(
                choices=[
                    {"finish_reason": "stop", "text": "a", "logprobs": {"content": [{"token": 1}]}, "token_ids": 7}
                ]
            ),
            ("token_ids", "logprobs"),
        ),
        (ok(error={}), ()),  # as some write that there is none
        (saying("Rain.", annotations={"deep": [[[{"a": float("nan")}]]]}), ()),
    ],
)
def test_what_cannot_be_read_beside_an_answer_is_dropped_and_named(reply: Reply, dropped: tuple[str, ...]) -> None:
    with ScriptedServer(reply) as server:
        outcome = answered(*decode(server))
    assert outcome.response.text
    assert outcome.call.dropped == outcome.response.dropped == dropped


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
def test_a_stream_that_nobody_asked_for_is_read(kind: str) -> None:
    called = {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}}]}
    reply = streamed(
        {"role": "assistant", "content": "I "}, {"content": [{"text": "look."}]}, called, end="stop", kind=kind
    )
    with ScriptedServer(reply) as server:
        response = answered(*decode(server)).response
    assert split_parts(response.text) == AnswerParts("I look.", calls=({"name": "look", "arguments": "{}"},))
    assert (response.finish_reason, response.dropped) == ("stop", ())


def test_a_stream_of_the_responses_api_is_read_by_its_last_event() -> None:
    message = {"type": "message", "content": [{"type": "output_text", "text": "Rain."}]}
    whole = {"object": "response", "status": "completed", "output": [message]}
    events = [{"type": "response.created", "response": {"object": "response", "status": "in_progress", "output": []}}]
    events += [{"type": "response.output_text.delta", "delta": "Ra"}, {"type": "response.completed", "response": whole}]
    content = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    with ScriptedServer(Reply(content.encode())) as server:
        assert answered(*decode(server, api="responses")).response.text == "Rain."


def test_calls_next_to_words_are_kept() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "capital", "arguments": '{"city": "Oslo"}'}}
    message = {"role": "assistant", "content": "Let me look.", "tool_calls": [call]}
    with ScriptedServer(broken_off("tool_calls", message=message)) as server:
        (outcome,) = decode(server)
    parts = split_parts(answered(outcome).response.text)
    assert (parts.content, parts.calls) == ("Let me look.", (call["function"],))


def test_a_gateways_word_for_a_failure_behind_it_is_taken() -> None:
    """OpenRouter answers 200, and gives the status of the server behind it in the body."""
    behind = Reply({"error": {"code": 502, "message": "Provider returned error"}})
    with ScriptedServer([behind, ok()]) as server:
        (outcome,) = decode(server)
    assert answered(outcome).call.n_tries == 2


def test_a_servers_wish_is_waited_out_up_to_a_minute() -> None:
    wishes = [{"Retry-After": "7"}, {"Retry-After": "60"}, {"x-ratelimit-reset-requests": "59.9s"}]
    waits: list[float] = []
    with ScriptedServer([*(status(429, wish) for wish in wishes), ok()]) as server:
        (outcome,) = decode(server, waits=waits)
    assert answered(outcome).call.n_tries == 4
    asked = [wait for n, wait in enumerate(waits) if n == 0 or wait != pytest.approx(waits[n - 1], abs=1.0)]
    assert asked == [7.0, 60.0]  # the third is the same minute


@pytest.mark.parametrize("number", [429, 503])
def test_for_a_longer_wish_the_endpoint_rests_as_long(number: int) -> None:
    with ScriptedServer(status(number, {"Retry-After": "900"})) as server, opened(server, concurrency=1) as engine:
        with pytest.raises(EndpointRests, match="It asks to be left alone for 900 seconds") as rests:
            list(engine.decode(questions(3)))
        assert (rests.value.seconds, len(server.requests)) == (900.0, 1)


def test_nobody_there_is_tried_again_and_then_the_endpoint_rests() -> None:
    with ScriptedServer() as server:
        server.base_url = f"http://127.0.0.1:{free_port()}/v1"
        with pytest.raises(EndpointRests, match="Connection refused"):
            decode(server)


@pytest.mark.parametrize("reply", [hang(), drip(), ok(seconds=30)])
def test_a_call_ends_with_its_time_wherever_it_is(reply: Reply) -> None:
    with ScriptedServer(for_case_1(reply)) as server:
        _, outcome = decode(server, questions(2), response_seconds=1.5)
    assert failed(outcome).code == "timeout"
    assert sum(received.prompt == "Question 1?" for received in server.requests) == 2


def test_an_answer_that_does_not_begin_in_time_is_not_waited_for_to_its_end() -> None:
    with ScriptedServer(for_case_1(hang())) as server:
        _, outcome = decode(server, questions(2), first_byte_seconds=0.5)
    assert (failed(outcome).code, failed(outcome).detail) == ("timeout", "No answer began within 0.5 seconds.")


def test_a_failure_of_an_outage_is_asked_again_and_answered() -> None:
    """The first case fails at every try while the server is away for four calls."""
    with ScriptedServer(rotating(5, status(503), ok())) as server:
        outcomes = decode(server, questions(6))
    assert [answered(outcome).case_index for outcome in outcomes] == [0, 1, 2, 3, 4, 5]


def test_what_fails_twice_while_others_are_answered_is_the_cases_own() -> None:
    def script(received: Received) -> Reply:
        return status(500) if received.prompt == "Question 0?" else ok(seconds=0.05)

    with ScriptedServer(script) as server:
        first, *others = decode(server, questions(60), concurrency=4)
    assert failed(first).code == "call_failed"
    assert all(map(answered, others))
    assert sum(received.prompt == "Question 0?" for received in server.requests) == 8


def decode_through_rests(engine: OpenAIEngine, requests: Sequence[DecodeRequest]) -> list[CallOutcome]:
    """Return one outcome a case: what has none when the endpoint rests is asked again, as the queue does."""
    outcomes: dict[int, CallOutcome] = {}
    while left := [request for request in requests if request.case_index not in outcomes]:
        with suppress(EndpointRests):
            for outcome in engine.decode(left):
                outcomes[outcome.case_index] = outcome
    return list(outcomes.values())


BUSY = status(429, {"Retry-After": "0.001"})
OUTAGES = {
    "429, then dead": (BUSY, reset()),
    "429, then 502": (BUSY, status(502)),
    "dead, then 429": (reset(), BUSY),
    "502, then 429": (status(502), BUSY),
    "429 without a wish, then dead": (status(429), reset()),
}


@pytest.mark.parametrize("concurrency", few([8, 1]))
@pytest.mark.parametrize("name", few(OUTAGES, 3))
def test_throttling_beside_an_outage_loses_no_case(name: str, concurrency: int) -> None:
    """Forty answers, forty calls of each fault, then answers. After a rest what is not answered is asked again."""
    first, second = OUTAGES[name]

    def script(received: Received) -> Reply:
        is_first, is_second = 40 < received.number <= 80, 80 < received.number <= 120
        return first if is_first else second if is_second else ok()

    waits: list[float] = []
    with ScriptedServer(script) as server, opened(server, concurrency=concurrency, waits=waits) as engine:
        outcomes = decode_through_rests(engine, questions(120))
    assert all(map(answered, outcomes))


@pytest.mark.parametrize("fault", [reset(), status(502)], ids=["dead", "502"])
def test_a_case_that_was_throttled_until_an_outage_is_not_lost(fault: Reply) -> None:
    """The endpoint answers others while it puts one case off; then nothing is answered for twelve calls."""
    n_before: list[int] = []

    def script(received: Received) -> Reply:
        n_first = sum(request.prompt == "Question 0?" for request in list(server.requests))
        if received.prompt == "Question 0?" and n_first <= 3:
            return replace(BUSY, seconds=0.1)
        if not n_before and received.prompt != "Question 0?":
            return ok()
        n_before.append(received.number)
        return fault if len(n_before) <= 12 else ok()

    with ScriptedServer(script) as server, opened(server, concurrency=2, waits=[]) as engine:
        outcomes = decode_through_rests(engine, questions(300))
    assert all(map(answered, outcomes))


def test_calls_that_are_put_off_use_up_no_try() -> None:
    waits: list[float] = []
    with ScriptedServer([BUSY] * 9 + [ok()]) as server:
        (outcome,) = decode(server, waits=waits)
    assert answered(outcome).call.n_tries == 10


def test_a_case_that_times_out_in_an_outage_is_not_written_off() -> None:
    """Another case is answered after the try began; then the server is away."""
    gone = threading.Event()

    def script(received: Received) -> Reply:
        if received.prompt == "Question 1?" and not gone.is_set():
            return hang()
        if len(server.requests) in range(3, 6):
            gone.set()
            return reset()
        return ok()

    with (
        ScriptedServer(script) as server,
        opened(server, concurrency=2, response_seconds=1.0, waits=[]) as engine,
    ):
        outcomes = decode_through_rests(engine, questions(2))
    assert all(map(answered, outcomes))


def test_a_failed_call_keeps_what_it_knew() -> None:
    told = {"X-Request-Id": "req-7", "X-Evalboard-Backend": "bf16-b", "Retry-After": "0"}
    with ScriptedServer(for_case_1(status(503, told))) as server:
        _, outcome = decode(server, questions(2))
    assert isinstance(outcome, FailedCall)
    call = outcome.call
    assert (call.status, call.request_id, call.backend, call.n_tries) == (503, "req-7", "bf16-b", 4)
    assert call.backend_from == "x-evalboard-backend"
    assert call.started_at <= call.ended_at


def test_a_failed_call_without_an_answer_says_when_it_was_made() -> None:
    with ScriptedServer(for_case_1(reset())) as server:
        _, outcome = decode(server, questions(2))
    assert isinstance(outcome, FailedCall)
    assert (outcome.call.status, outcome.call.request_id, outcome.call.backend) == (None, "", "")


def test_calls_say_that_no_cache_may_answer() -> None:
    with ScriptedServer() as server:
        decode(server, headers={"X-Portkey-Cache-Force-Refresh": "false"})
        decode(server)
    own, given = (received.headers for received in server.requests[::-1])
    assert (own["cache-control"], own["x-portkey-cache-force-refresh"]) == ("no-cache", "true")
    assert given["x-portkey-cache-force-refresh"] == "false"  # as the endpoint says


def test_a_litellm_that_answers_from_its_cache_is_told_not_to_and_asked_again() -> None:
    def script(received: Received) -> Reply:
        cached = {} if "cache" in received.body else {"x-litellm-cache-key": "k"}
        return ok(headers={"x-litellm-version": "1.106", **cached})

    with ScriptedServer(script) as server:
        outcomes = decode(server, questions(3))
    assert [answered(outcome).response.flags for outcome in outcomes] == [(), (), ()]
    assert [received.body.get("cache") for received in server.requests] == [None, *[{"no-cache": True}] * 3]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (status(401, words="Incorrect API key provided."), "Incorrect API key"),
        (status(402, words="Insufficient credits."), "Insufficient credits"),
        (status(403, words="No access to this project."), "No access"),
        (status(404, words="The model `their-model` does not exist."), "does not exist"),
        (redirect("http://127.0.0.1:1/v1"), "redirects are not followed"),
    ],
)
def test_a_refusal_that_hits_every_call_ends_all_of_them(reply: Reply, words: str) -> None:
    with ScriptedServer(reply) as server, pytest.raises(EndpointRefused, match=words):
        decode(server, questions(50), concurrency=4)
    assert len(server.requests) <= 4


@pytest.mark.parametrize("number", [401, 402, 403, 404])
def test_a_refusal_after_an_answer_is_that_cases_own_and_asked_again_once(number: int) -> None:
    with ScriptedServer(for_case_1(status(number))) as server:
        first, second, third = decode(server, questions(3))
    assert (answered(first).case_index, answered(third).case_index) == (0, 2)
    assert failed(second).code == "call_refused"
    assert [received.prompt for received in server.requests].count("Question 1?") == 2


def test_a_refusal_that_passes_costs_no_case() -> None:
    with ScriptedServer([ok(), status(404), ok()]) as server:
        assert len([answered(outcome) for outcome in decode(server, questions(3))]) == 3


def test_a_server_that_refuses_all_after_it_has_answered_rests() -> None:
    script = [ok(), ok(), status(401, words="The key has expired.")]
    with ScriptedServer(script) as server, opened(server) as engine:
        outcomes = []
        with pytest.raises(EndpointRests, match="The key has expired") as rests:
            outcomes.extend(engine.decode(questions(50)))
        assert [answered(outcome).case_index for outcome in outcomes] == [0, 1]
        assert (rests.value.code, rests.value.seconds, rests.value.n_failures) == ("call_refused", 30.0, 5)
        assert len(server.requests) == 2 + 5 + 1  # five refusals, and a call that was answered before


def test_of_work_that_has_answers_no_refusal_ends_all() -> None:
    with ScriptedServer(status(401)) as server:
        with opened(server) as engine, pytest.raises(EndpointRests) as rests:
            list(engine.decode(questions(2), is_answered=True))
        assert (rests.value.code, len(server.requests)) == ("call_refused", 3)


def test_parameters_that_are_refused_are_left_out_once_and_for_all() -> None:
    with ScriptedServer(refusing("top_k", "seed")) as server:
        outcomes = decode(server, questions(5, top_k=20))
    assert len(server.requests) == 7  # the first case taught both
    for outcome in outcomes:
        call, response = answered(outcome).call, answered(outcome).response
        assert (set(call.left_out), call.n_tries) == ({"top_k", "seed"}, 1)
        assert (response.seed, response.flags) == (None, ())


def test_a_parameter_that_a_plan_does_not_include_is_left_out_and_no_key_is_blamed() -> None:
    def script(received: Received) -> Reply:
        if "logprobs" in received.body:
            return status(403, words="You are not allowed to request logprobs from this model.")
        return ok()

    with ScriptedServer(script) as server:
        outcomes = decode(server, questions(3))
    assert {answered(outcome).call.left_out for outcome in outcomes} == {("logprobs",)}
    assert len(server.requests) <= 4


def test_a_check_takes_a_403_that_names_a_parameter_for_its_answer() -> None:
    """It asks for one thing at a time, so that this call alone is refused, also where nothing was answered yet."""

    def script(received: Received) -> Reply:
        return status(403, words="You are not allowed to request logprobs.") if "logprobs" in received.body else ok()

    with ScriptedServer(script) as server, opened(server, learns=False) as engine:
        (outcome,) = engine.decode(questions(1))
        assert (failed(outcome).code, len(server.requests)) == ("call_refused", 1)
        assert "not allowed to request logprobs" in failed(outcome).detail
    with (
        ScriptedServer(status(403, words="No access.")) as server,
        opened(server, learns=False) as engine,
        pytest.raises(EndpointRefused, match="No access"),
    ):
        list(engine.decode(questions(1)))


def test_parameters_that_are_refused_to_many_calls_at_once_are_learnt_by_all() -> None:
    with ScriptedServer(refusing("seed", "logprobs", "max_tokens")) as server:
        outcomes = decode(server, questions(40), concurrency=8)
        assert {answered(outcome).call.left_out for outcome in outcomes} <= {("seed", "logprobs"), ("logprobs", "seed")}
        assert server.requests[-1].body["max_completion_tokens"] == 32
    assert len(server.requests) <= 40 + 3 * 8


def test_a_parameter_that_is_refused_though_it_was_left_out_refuses_the_case() -> None:
    with ScriptedServer(unknown_parameter("seed")) as server:
        (outcome,) = decode(server)
    assert (failed(outcome).code, len(server.requests)) == ("call_refused", 2)


def test_who_answers_and_from_where_is_read_of_each_answer() -> None:
    cached = ok(headers={"x-litellm-cache-key": "k", "x-litellm-model-id": "d-1"})
    script = rotating(3, cached, ok(system_fingerprint="fp-b", headers={"x-litellm-attempted-fallbacks": "1"}))
    with ScriptedServer(script) as server:
        outcomes = decode(server, questions(4))
    assert [answered(outcome).response.flags for outcome in outcomes] == [("cached",)] * 2 + [("fallback",)] * 2
    assert [answered(outcome).call.system_fingerprint for outcome in outcomes] == ["fp-a", "fp-a", "fp-b", "fp-b"]
    assert [answered(outcome).call.backend_from for outcome in outcomes][::3] == ["litellm", "system_fingerprint"]


def test_five_failed_tries_in_a_row_let_the_endpoint_rest() -> None:
    with ScriptedServer(status(500)) as server, opened(server) as engine:
        outcomes = []
        with pytest.raises(EndpointRests, match=r"^It answered 500") as rests:
            outcomes.extend(engine.decode(questions(10)))
        assert (rests.value.seconds, engine.n_failures) == (30.0, 5)
        assert not outcomes  # nobody knows whose failures they were: all are still to be asked
        assert len(server.requests) == 5


def test_after_a_rest_one_call_alone_is_tried() -> None:
    with ScriptedServer(status(500)) as server, opened(server, concurrency=8, n_failures=6) as engine:
        with pytest.raises(EndpointRests) as rests:
            list(engine.decode(questions(10)))
        assert (rests.value.seconds, engine.n_failures, len(server.requests)) == (120.0, 7, 1)


def test_a_rested_endpoint_that_answers_is_called_as_ever() -> None:
    with ScriptedServer(ok(seconds=0.2)) as server, opened(server, concurrency=4, n_failures=6) as engine:
        outcomes = list(engine.decode(questions(12)))
        assert (len(outcomes), engine.n_failures) == (12, 0)
        assert server.most_at_once > 1


def test_answers_between_failures_keep_the_circuit_closed() -> None:
    def every_third_fails_for_ever(received: Received) -> Reply:
        return status(500) if int(received.prompt.split()[1].rstrip("?")) % 3 == 2 else ok()

    with ScriptedServer(every_third_fails_for_ever) as server, opened(server) as engine:
        outcomes = sorted(engine.decode(questions(9)), key=lambda outcome: outcome.case_index)
        assert [type(outcome).__name__ for outcome in outcomes] == ["Answered", "Answered", "FailedCall"] * 3
        assert engine.n_failures == 0


def test_calls_in_flight_are_as_many_as_wanted_and_connections_live_on() -> None:
    taken = 0

    def counted() -> Any:
        nonlocal taken
        for request in questions(60):
            taken += 1
            yield request

    with ScriptedServer(ok(seconds=0.05)) as server, opened(server, concurrency=6) as engine:
        for n_seen, _ in enumerate(engine.decode(counted()), start=1):
            assert taken - n_seen <= 6 + 4  # read ahead by no more than what keeps the threads busy
        assert len(server.requests) == 60
        assert 2 <= server.most_at_once <= 6
        assert server.n_connections < 30  # one lives on from call to call, unless the machine stalls for seconds
    wait_until(lambda: server.n_open_connections == 0)


def test_among_faults_each_case_ends_once_and_with_its_own_answer() -> None:
    faults = (status(503), reset(), cut(), html(), status(429, {"Retry-After": "0"}), truncated_json())

    def every_fifth_fails(received: Received) -> Reply:
        return faults[received.number // 5 % len(faults)] if received.number % 5 == 0 else ok()

    requests = questions(400)
    with ScriptedServer(every_fifth_fails) as server, opened(server, concurrency=8) as engine:
        outcomes = sorted(engine.decode(requests), key=lambda outcome: outcome.case_index)
        expected = [
            server.answerer.answer("/v1/chat/completions", {"messages": one.messages, **SAMPLING}) for one in requests
        ]
    assert [outcome.case_index for outcome in outcomes] == list(range(400))
    n_failed = 0
    for outcome, body in zip(outcomes, expected, strict=True):
        if isinstance(outcome, Failed):
            n_failed += 1
            assert outcome.code in ("not_json", "cut_short")
        else:
            assert answered(outcome).response.text == body["choices"][0]["message"]["content"]
    assert 0 < n_failed < 80


@pytest.mark.parametrize("reply", [hang(), status(503, {"Retry-After": "3000"})])
def test_an_abort_ends_waits_at_once_and_leaves_the_engine_usable(
    monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    monkeypatch.setattr("evalboard.calling.client.LONGEST_WAIT_SECONDS", 3600.0)  # what is not called off hangs
    with ScriptedServer(rotating(3, ok(), reply)) as server, opened(server, concurrency=2) as engine:
        decoding = engine.decode(questions(20))
        assert len({answered(next(decoding)).case_index for _ in range(2)}) == 2
        wait_until(lambda: len(server.requests) >= 3)
        threading.Timer(0.1, engine.abort).start()
        assert list(decoding) == []
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("endpoint-call")]
        server.script = ok()
        engine._not_before = 0.0
        assert len(list(engine.decode(questions(3)))) == 3


def test_an_abort_without_a_decode_does_nothing() -> None:
    with ScriptedServer() as server, opened(server) as engine:
        engine.abort()
        assert len(list(engine.decode(questions(2)))) == 2
        engine.abort()
    engine.stop()


def test_a_decode_that_nobody_reads_to_its_end_is_called_off() -> None:
    with ScriptedServer(rotating(2, ok(), hang())) as server, opened(server, concurrency=3) as engine:
        decoding = engine.decode(questions(9))
        next(decoding)
        decoding.close()  # type: ignore[attr-defined]
        server.script = ok()
        assert len(list(engine.decode(questions(2)))) == 2
