"""Anthropic's messages, alone and in batches: parts, endings, requests, and what has no message."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from evalboard.core.answer import split_parts
from evalboard.core.errors import InvalidInput
from evalboard.core.trace import Ending, find_ending
from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from evalboard.importers.records import LoggedResponse, LoggedRun

Real = Callable[[str], LogFile]
Written = Callable[[str, bytes], LogFile]
REQUESTS, RESULTS = "anthropic_batch/requests.jsonl", "anthropic_batch/results.jsonl"
TIDES = "What makes the tides?"


@pytest.fixture
def batch(real: Real) -> LoggedRun:
    name, [run] = read_logs([real(RESULTS), real(REQUESTS)])
    assert name == "batch"
    return run


def answer_to(run: LoggedRun, case_id: str) -> LoggedResponse:
    [response] = [each for each in run.responses if each.case_id == case_id]
    return response


def test_a_batch_with_its_requests_has_prompts_and_settings(batch: LoggedRun) -> None:
    assert (batch.tool, batch.model, batch.status) == ("Anthropic Message Batches", "claude-small-1", "incomplete")
    assert batch.sampling == {"temperature": 0, "max_tokens": 64, "stop": ["\n\n"]}
    cases = {case.id: case for case in batch.cases}
    asked = {"role": "user", "content": TIDES}
    assert cases["tide-1"].messages == ({"role": "system", "content": "Answer in one sentence."}, asked)
    assert cases["tide-2"].messages[0] == cases["tide-1"].messages[0]
    [tool] = cases["harbour-1"].tools
    assert (tool["type"], tool["function"]["name"]) == ("function", "tide_table")
    assert tool["function"]["parameters"]["required"] == ["harbour"]


def test_texts_thinking_and_calls_are_parts_of_one_answer(batch: LoggedRun) -> None:
    thought = answer_to(batch, "tide-2")
    assert thought.text == "About every twelve hours and twenty-five minutes."
    assert thought.reasoning == "Twice a day, a little later each time."
    assert (thought.n_prompt_tokens, thought.n_tokens, thought.request_id) == (121, 17, "msg_02")
    assert thought.served_by.model == "claude-small-1-20260901"
    called = split_parts(answer_to(batch, "harbour-1").text)
    assert called.content == "I look it up."
    assert called.calls == ({"name": "tide_table", "arguments": {"day": "today", "harbour": "Bergen"}},)


@pytest.mark.parametrize(
    ("case_id", "problem"),
    [
        ("harbour-2", "overloaded_error: Overloaded"),
        ("harbour-3", "The batch expired before this request was sent."),
        ("harbour-4", "The batch was canceled before this request was sent."),
    ],
)
def test_what_has_no_message_is_missing(batch: LoggedRun, case_id: str, problem: str) -> None:
    assert answer_to(batch, case_id).error == problem


@pytest.mark.parametrize(
    ("word", "ending"),
    [
        ("end_turn", Ending.COMPLETE),
        ("stop_sequence", Ending.COMPLETE),
        ("tool_use", Ending.COMPLETE),
        ("max_tokens", Ending.CUT),
        ("model_context_window_exceeded", Ending.CUT),
        ("refusal", Ending.REFUSED),
    ],
)
def test_every_ending_is_of_the_closed_list(written: Written, word: str, ending: Ending) -> None:
    [response] = read_one(written, result(stop_reason=word)).responses
    assert find_ending(response.finish_reason, text=response.text) is ending


def test_a_paused_turn_has_an_unknown_ending(written: Written) -> None:
    [response] = read_one(written, result(stop_reason="pause_turn")).responses
    assert find_ending(response.finish_reason, text=response.text) is Ending.UNKNOWN


def test_results_alone_say_that_prompts_are_unknown(real: Real) -> None:
    _, [run] = read_logs([real(RESULTS)])
    assert all(case.messages == () for case in run.cases)
    assert any("The file of the requests is missing" in note for note in run.notes)


def test_requests_may_be_one_object(real: Real, written: Written) -> None:
    listed = [json.loads(line) for line in real(REQUESTS).path.read_text().splitlines()]
    _, [alone] = read_logs([written("create.json", json.dumps({"requests": listed}).encode())])
    assert (alone.tool, len(alone.cases), alone.responses) == ("Anthropic Message Batches", len(listed), ())
    files = [real(RESULTS), written("create.json", json.dumps({"requests": listed}, indent=1).encode())]
    [with_results] = read_logs(files)[1]
    assert with_results.cases == read_logs([real(RESULTS), real(REQUESTS)])[1][0].cases


def test_messages_in_lines_are_answers(written: Written) -> None:
    lines = [json.dumps(message(id=f"msg_{n}")) for n in range(2)]
    name, [run] = read_logs([written("messages.jsonl", "\n".join(lines).encode())])
    assert (name, run.model, [each.text for each in run.responses]) == ("chat", "claude-small-1", ["High."] * 2)
    request = {"model": "claude-small-1", "system": "Be brief.", "messages": [{"role": "user", "content": TIDES}]}
    row = {"request": request, "response": message()}
    _, [wrapped] = read_logs([written("calls.jsonl", json.dumps(row).encode())])
    assert [each["role"] for each in wrapped.cases[0].messages] == ["system", "user"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"content": "High."}, "line 1: content must be a list"),
        ({"content": ["High."]}, "line 1: content[0] must be an object"),
    ],
)
def test_what_is_no_message_is_named(written: Written, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_one(written, result(**changes))
    assert refused.value.fields == {"results.jsonl": problem}


def test_a_result_of_a_kind_that_is_not_known_is_missing(written: Written) -> None:
    [response] = read_one(written, {"custom_id": "a", "result": {"type": "postponed"}}).responses
    assert response.error == "The request ended as 'postponed', without a message."


def read_one(written: Written, line: dict[str, Any]) -> LoggedRun:
    _, [run] = read_logs([written("results.jsonl", json.dumps(line).encode())])
    return run


def result(**changes: Any) -> dict[str, Any]:
    return {"custom_id": "a", "result": {"type": "succeeded", "message": message(**changes)}}


def message(**changes: Any) -> dict[str, Any]:
    fields = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-small-1",
        "stop_reason": "end_turn",
    }
    return fields | {"content": [{"type": "text", "text": "High."}], "usage": {"output_tokens": 2}} | changes
