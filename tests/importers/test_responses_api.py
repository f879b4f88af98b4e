"""Answers of the Responses API are read as the chat completions that they amount to."""

from pathlib import Path
from typing import Any

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers import chat
from evalboard.importers.completions import LoggedChoice, answers
from evalboard.importers.responses_api import as_completion, is_response
from tests.importers.openai_logs import written


def token(text: str, logprob: float, *others: tuple[str, float], raw: list[int] | None = None) -> dict[str, Any]:
    listed = [{"token": other, "bytes": [], "logprob": value} for other, value in others]
    return {"token": text, "bytes": [] if raw is None else raw, "logprob": logprob, "top_logprobs": listed}


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "status": "completed", "content": list(parts)}


def words(text: str, *logprobs: dict[str, Any]) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": list(logprobs)}


def response(*output: Any, **fields: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_760_000_000,
        "status": "completed",
        "error": None,
        "model": "gpt-5",
        "output": list(output),
        "usage": {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14},
        **fields,
    }


def read(body: dict[str, Any]) -> LoggedChoice:
    assert is_response(body)
    (answer,) = answers(as_completion(body))
    return answer


def test_text_reason_tokens_and_usage_are_where_chat_completions_have_them():
    body = response(message(words("Rain.", token("Rain", -0.25, ("Rain", -0.25), ("The", -2.0)), token(".", 0.0))))
    completion = as_completion(body)
    assert (completion["id"], completion["model"], completion["created"]) == ("resp_1", "gpt-5", 1_760_000_000)
    counts = {name: n for name, n in completion["usage"].items() if n is not None}
    assert counts == {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
    answer = read(body)
    assert (answer.text, answer.finish_reason, answer.reasoning) == ("Rain.", "stop", None)
    assert answer.tokens.positions is not None
    # The bytes that this API leaves out are those of the text.
    assert [position.token for position in answer.tokens.positions] == [b"Rain", b"."]
    assert answer.tokens.positions[0].alternatives == ((b"Rain", -0.25), (b"The", -2.0))


def test_half_a_character_stays_without_bytes():
    answer = read(response(message(words("🌧", token("", -1.0), token("🌧", -1.0, raw=[240, 159, 140, 167])))))
    assert answer.tokens.positions is not None
    assert [position.token for position in answer.tokens.positions] == [b"", "🌧".encode()]


def test_parts_are_joined_and_a_refusal_is_an_answer():
    assert read(response(message(words("It "), words("rains.")))).text == "It rains."
    assert read(response(message({"type": "refusal", "refusal": "No."}))).text == "No."


def test_thinking_is_kept_apart_in_its_own_words_or_their_summary():
    summary = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Looked up."}]}
    own = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Look up, then."}]}
    answer = read(response(summary, own, message(words("Rain."))))
    assert (answer.text, answer.reasoning) == ("Rain.", "Looked up.\nLook up, then.")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "content_filter"),
        ({"status": "incomplete", "incomplete_details": None}, ""),
        ({"status": "in_progress"}, ""),
    ],
)
def test_why_it_ended_is_said_in_the_words_of_chat_completions(fields: dict[str, Any], reason: str):
    assert read(response(message(words("Ra")), **fields)).finish_reason == reason


def test_calls_of_tools_are_told_apart_by_their_content():
    called = {"type": "function_call", "name": "add", "arguments": '{"a": 1}', "call_id": "c"}
    answer = read(response(called))
    assert (answer.text, answer.finish_reason) == ('[{"arguments":"{\\"a\\": 1}","name":"add"}]', "tool_calls")


def test_words_next_to_a_call_are_kept_with_it():
    called = {"type": "custom_tool_call", "name": "run", "input": "ls", "call_id": "c"}
    answer = read(response(message(words("Wait.")), called))
    assert answer.text == '{"content":"Wait.","tool_calls":[{"arguments":"ls","name":"run"}]}'
    assert answer.finish_reason == "tool_calls"


def test_a_failed_response_has_no_answer():
    failed = response(status="failed", error={"code": "server_error", "message": "Out of luck."})
    assert read(failed).error == "Out of luck."
    assert read(response(status="cancelled")).error == "The server broke off the answer: it ended with 'cancelled'."


@pytest.mark.parametrize("output", ["text", [5], [message("no object")]])  # type: ignore[arg-type]
def test_what_is_no_output_is_refused(output: Any):
    with pytest.raises(InvalidInput):
        as_completion(response() | {"output": output})


def test_saved_responses_are_imported_bare_and_with_their_requests(tmp_path: Path):
    body = response(message(words("Rain.")), system_fingerprint="fp-1")
    parts = [{"role": "user", "content": [{"type": "input_text", "text": "What falls?"}]}]
    wrapped = {
        "custom_id": "p-1",
        "request": {"model": "gpt-5", "input": parts, "temperature": 0, "max_output_tokens": 9},
        "response": body,
    }
    for row, n_messages in ((body, 0), (wrapped, 1)):
        file = written(tmp_path, "log.jsonl", [row])
        assert chat.recognises([file])
        (run,) = chat.read([file])
        (answer,) = run.responses
        assert (answer.text, answer.n_prompt_tokens, answer.request_id) == ("Rain.", 11, "resp_1")
        assert (run.model, answer.served_by.system_fingerprint) == ("gpt-5", "fp-1")
        assert [len(case.messages) for case in run.cases] == [n_messages]
    assert run.cases[0].messages == ({"role": "user", "content": "What falls?"},)
    assert run.sampling == {"temperature": 0, "max_tokens": 9}
