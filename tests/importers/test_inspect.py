"""Logs of Inspect AI: real ones as they are, and small ones written here for what those do not have."""

import json
import math
import zipfile
from collections.abc import Callable
from typing import Any

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers import inspect_ai
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedRun
from tests.importers.inspect_log import Log, log, model_event, packed, sample
from tests.importers.zips import zip_of

Real = Callable[[str], LogFile]
Written = Callable[[str, bytes], LogFile]
LONG = "Say it in the words of a sailor. " * 5


@pytest.fixture
def read(written: Written) -> Callable[[Log], LoggedRun]:
    def read_one(content: Log) -> LoggedRun:
        [run] = inspect_ai.read([written("log.json", json.dumps(content).encode())])
        return run

    return read_one


Read = Callable[[Log], LoggedRun]


def thinking(*parts: dict[str, Any], completion: str = "Paris", stop_reason: str = "stop") -> dict[str, Any]:
    """A sample whose answer has these parts."""
    message = {"id": "m1", "role": "assistant", "source": "generate"}
    message["content"] = [*parts, {"type": "text", "text": completion}]
    choice = {"message": message, "stop_reason": stop_reason}
    return sample(output={"model": "smol", "choices": [choice], "completion": completion, "response_id": "chat-1"})


@pytest.mark.parametrize(
    ("part", "reasoning"),
    [
        pytest.param({"type": "reasoning", "reasoning": "France, so…"}, "France, so…", id="plain"),
        pytest.param(
            {"type": "reasoning", "reasoning": "gAAAAB", "redacted": True, "summary": "It recalls."},
            "It recalls.",
            id="kept in secret, with a summary",
        ),
        pytest.param({"type": "reasoning", "reasoning": "gAAAAB", "redacted": True}, "", id="kept in secret"),
    ],
)
def test_reasoning_parts_are_no_part_of_the_answer(read: Read, part: dict[str, Any], reasoning: str) -> None:
    [response] = read(log(thinking(part))).responses
    assert (response.text, response.reasoning) == ("Paris", reasoning)


def test_an_attached_text_is_put_back_into_the_thinking(read: Read) -> None:
    part = {"type": "reasoning", "reasoning": "attachment://long"}
    [response] = read(log({**thinking(part), "attachments": {"long": LONG}})).responses
    assert response.reasoning == LONG


def test_an_answer_without_reasoning_has_none_apart(read: Read) -> None:
    assert read(log(sample())).responses[0].reasoning is None


@pytest.mark.parametrize(
    ("name", "fingerprint"),
    [("fp32_baseline", "vllm-0.32.0-ac2590de"), ("bf16_candidate", "vllm-0.32.0-bfec4654")],
)
def test_a_whole_real_log(real: Real, name: str, fingerprint: str) -> None:
    file = real(f"inspect/{name}.eval")
    assert inspect_ai.recognises([file])
    [run] = inspect_ai.read([file])
    assert (run.status, run.detail, run.tool, run.scorers) == (
        "finished",
        "tokens",
        "Inspect AI 0.3.285",
        ("includes",),
    )
    assert [case.id for case in run.cases] == ["fact-001", "fact-004", "fact-005", "fact-010"]
    assert {(one.case_id, one.repeat) for one in run.responses} == {
        (case.id, repeat) for case in run.cases for repeat in (1, 2, 3)
    }
    assert {one.served_by.system_fingerprint for one in run.responses} == {fingerprint}
    assert sum(one.scores["includes"].value or 0 for one in run.responses) / 12 == 0.5
    assert all(len(one.positions or ()) == one.n_tokens and one.request_id for one in run.responses)
    assert run.sampling == {"temperature": 0.0, "top_p": 1.0, "seed": 42, "max_tokens": 32}
    assert run.labels["commit"] == "b945b4a"
    assert [message["role"] for message in run.cases[0].messages] == ["system", "user"]
    assert run.notes == ()


def test_a_real_log_that_was_killed(real: Real) -> None:
    [run] = inspect_ai.read([real("inspect/killed_started.eval")])
    assert (run.status, len(run.cases), len(run.responses)) == ("incomplete", 5, 5)
    assert run.notes == ("Inspect did not end this log: it holds 5 samples, and no results.",)


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, 93])
def test_both_containers_hold_the_same(written: Written, read: Read, method: int) -> None:
    content = log(sample("a b/c"), sample(2))
    file = written("log.eval", packed(content, method=method))
    assert inspect_ai.recognises([file])
    assert inspect_ai.read([file]) == [read(content)]


def test_what_is_kept_of_a_sample(read: Read) -> None:
    run = read(log())
    [response] = run.responses
    assert (response.text, response.finish_reason, response.seed, response.seconds) == ("Paris", "stop", 7, 0.5)
    assert response.positions is not None
    assert (response.positions[0].token, response.positions[0].token_id, run.detail) == (b"Paris", 7, "ids")
    # What the call says wins over what the eval says, and what neither says is not there.
    assert run.sampling == {"temperature": 0.5, "seed": 7, "max_tokens": 32, "stop": ["\n"]}
    assert run.base_url == "http://gpu-7:8000/v1"
    assert run.labels == {"commit": "abc1234 (with local changes)", "task_version": "3", "eval_id": "E1"}
    assert run.slug == "capitals-eu"


def test_cases_stand_in_the_datasets_order_though_samples_end_in_any(read: Read) -> None:
    content = log(sample(10), sample(9), sample(11))
    assert [case.id for case in read(content).cases] == ["9", "10", "11"]
    content["eval"]["dataset"] = {"sample_ids": [11, 9, 10]}
    assert [case.id for case in read(content).cases] == ["11", "9", "10"]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        *(("C", 1.0), ("P", 0.5), ("I", 0.0), ("N", 0.0), ("Yes", 1.0), ("false", 0.0), ("0.25", 0.25)),
        *((True, 1.0), (False, 0.0), (1, 1.0), (0.75, 0.75)),
        *((7.5, 7.5), (-1, -1.0), ("7.5", 7.5), ("fluent", None), ([1, 0], None), (None, None), (math.nan, None)),
    ],
)
def test_scores_are_numbers_or_words(read: Read, value: Any, wanted: float | None) -> None:
    run = read(log(sample(scores={"grade": {"value": value, "explanation": "because"}})))
    score = run.responses[0].scores["grade"]
    assert score.value == wanted
    assert score.reason.endswith(": because")


def test_a_score_of_several_values_is_several_scores(read: Read) -> None:
    scores = {"judge": {"value": {"style": 1, "facts": 0.5}}, "includes": {"value": "I"}}
    run = read(log(sample(scores=scores)))
    assert run.scorers == ("judge.style", "judge.facts", "includes")
    assert [run.responses[0].scores[name].value for name in run.scorers] == [1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("results", "main"),
    [
        ({}, "a"),
        ({"scores": [{"name": "b", "scorer": "b"}, {"name": "a", "scorer": "a"}]}, "b"),
        ({"scores": [{"name": "x", "scorer": "c"}]}, "c.x"),
        ({"headline": {"scorer": "a", "score": "a"}, "scores": [{"name": "b", "scorer": "b"}]}, "a"),
    ],
)
def test_the_main_scorer_is_the_logs_own(read: Read, results: dict[str, Any], main: str) -> None:
    scores = {"a": {"value": 1}, "b": {"value": 0}, "c": {"value": {"x": 1}}}
    run = read(log(sample(scores=scores), results=results))
    assert run.scorers[0] == main
    assert set(run.scorers) == {"a", "b", "c.x"}


@pytest.mark.parametrize(
    ("status", "wanted"), [("error", "failed"), ("cancelled", "cancelled"), ("started", "incomplete")]
)
def test_a_log_that_did_not_end_well_says_so(read: Read, status: str, wanted: str) -> None:
    run = read(log(status=status, error={"message": "Connection refused"}, results={"total_samples": 20}))
    assert run.status == wanted
    assert run.failure == ("Connection refused" if wanted == "failed" else "")
    assert "1 of 20 samples" in run.notes[0]


@pytest.mark.parametrize(
    ("facts", "error"),
    [
        ({"error": {"message": "Timeout"}}, "Timeout"),
        ({"invalidation": {"reason": "leaked"}}, "This sample was declared invalid: leaked."),
        ({"output": {"choices": [], "error": "refused"}}, "refused"),
        ({"output": {"choices": []}, "events": [], "scores": {}}, "The sample holds no answer."),
    ],
)
def test_a_sample_without_an_answer_is_missing_and_not_wrong(read: Read, facts: dict[str, Any], error: str) -> None:
    run = read(log(sample("a"), sample("b", **facts)))
    missing = run.responses[1]
    assert (missing.error, missing.text, missing.positions, missing.scores) == (error, "", None, {})
    assert run.status == "incomplete"
    assert run.sampling["temperature"] == 0.5


def test_a_case_is_what_was_asked_where_it_was_answered(read: Read) -> None:
    failed = sample(epoch=1, error={"message": "Timeout"}, events=[], output={"choices": []}, messages=[], input="Cap")
    run = read(log(failed, sample(epoch=2)))
    assert [message["content"] for message in run.cases[0].messages] == ["Capital of France?"]
    assert not any("prompt differs" in note for note in run.notes)
    run = read(log(sample(epoch=1), sample(epoch=2, events=[model_event(input=[{"role": "user", "content": "And?"}])])))
    assert "Of 1 cases the prompt differs between epochs; the first is kept." in run.notes


def test_an_epoch_that_is_not_there_makes_a_run_incomplete(read: Read) -> None:
    content = log(sample("a", 1), sample("a", 2), sample("b", 1))
    content["eval"]["config"]["epochs"] = 2
    assert read(content).status == "incomplete"
    content["samples"].append(sample("b", 2))
    assert read(content).status == "finished"


def test_an_old_log_without_completion_pools_and_raw_calls(read: Read) -> None:
    old = sample(events=[])
    del old["output"]["completion"], old["attachments"]
    old["output"]["choices"][0]["message"]["content"] = [
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "text", "text": "Paris"},
    ]
    run = read(log(old))
    assert run.responses[0].text == "Paris"
    assert run.responses[0].served_by.system_fingerprint == ""
    assert [message["content"] for message in run.cases[0].messages] == ["Capital of France?"]
    assert any("no model call gave the output" in note for note in run.notes)


def test_texts_stored_apart_and_pools_are_put_back(read: Read) -> None:
    event = model_event("attachment://" + "b" * 32, message_id="", input=[], input_refs=[[1, 3]])
    kept = sample(
        events=[event],
        attachments={"a" * 32: LONG, "b" * 32: "Paris"},
        events_data={
            "messages": [
                {"role": "user", "content": "Of no use"},
                {"role": "system", "content": "attachment://" + "a" * 32},
                {"role": "user", "content": "Capital of France?"},
            ]
        },
    )
    run = read(log(kept))
    assert [message["content"] for message in run.cases[0].messages] == [LONG, "Capital of France?"]
    assert run.responses[0].served_by.system_fingerprint == "vllm-1"


def test_texts_put_back_have_a_bound(written: Written) -> None:
    messages = [{"role": "user", "content": "attachment://" + "a" * 32}] * 20
    bomb = sample(events=[model_event(input=messages)], attachments={"a" * 32: "x" * (1 << 20)})
    with pytest.raises(InvalidInput) as refused:
        inspect_ai.read([written("log.eval", packed(log(bomb), method=zipfile.ZIP_STORED))])
    assert "attachments come to more than" in refused.value.fields["log.eval"]


def test_of_several_calls_the_first_asks_and_the_last_answers_and_a_grader_is_none(read: Read) -> None:
    tool_call = {"id": "t1", "function": "search", "arguments": {"q": "France"}}
    first = model_event("", message_id="m0", tools=[{"name": "search", "parameters": {"type": "object"}}])
    second = model_event(
        input=[
            {"role": "user", "content": "Capital of France?"},
            {"role": "assistant", "content": "", "tool_calls": [tool_call]},
            {"role": "tool", "content": "Paris", "tool_call_id": "t1"},
        ]
    )
    grader = model_event("GRADE: C", message_id="m9", model="openai/judge", role="grader")
    grader["call"]["response"]["system_fingerprint"] = "judge"
    run = read(log(sample(events=[first, second, grader])))
    assert [message["role"] for message in run.cases[0].messages] == ["user"]
    assert run.cases[0].tools[0]["function"]["name"] == "search"
    assert run.responses[0].served_by.system_fingerprint == "vllm-1"
    assert run.notes[0].startswith("1 of 1 samples: several model calls were made")


def test_an_answer_of_tool_calls_alone_is_told_by_them(read: Read) -> None:
    one = sample()
    one["output"]["completion"] = ""
    message = one["output"]["choices"][0]["message"]
    message.update(content="", tool_calls=[{"id": "t", "function": "search", "arguments": {"q": 1}}])
    assert json.loads(read(log(one)).responses[0].text) == [{"name": "search", "arguments": '{"q": 1}'}]


def test_words_next_to_tool_calls_are_kept_with_them(read: Read) -> None:
    one = sample()
    one["output"]["completion"] = "Wait."
    one["output"]["choices"][0]["message"]["tool_calls"] = [{"id": "t", "function": "search", "arguments": {"q": 1}}]
    function = {"name": "search", "arguments": '{"q": 1}'}
    assert json.loads(read(log(one)).responses[0].text) == {"content": "Wait.", "tool_calls": [function]}


def test_an_answer_that_ended_in_an_error_is_missing(read: Read) -> None:
    one = sample()
    one["output"]["choices"][0]["stop_reason"] = "error"
    response = read(log(one)).responses[0]
    assert (response.error, response.text, response.scores) == (
        "The server broke off the answer: it ended with 'error'.",
        "",
        {},
    )


def test_answers_from_elsewhere_are_flagged(read: Read) -> None:
    kept = sample(events=[model_event(cache="read", retries=2)], model_fallbacks=[{"model": "other"}])
    assert read(log(kept)).responses[0].flags == ("cached", "fallback", "retried")


def test_settings_that_differ_are_no_settings_of_the_run(read: Read) -> None:
    other = sample("b", events=[model_event(config={"temperature": 0.9, "seed": 7})])
    run = read(log(sample("a"), other))
    assert run.sampling == {"seed": 7, "max_tokens": 32}
    assert "temperature differs between samples, and is not among the run's settings." in run.notes
    assert [one.seed for one in run.responses] == [7, 7]


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("log.json", json.dumps(log()).encode(), True),
        ("log.json", json.dumps(log(), indent=2).encode(), True),
        ("renamed.zip", zip_of({"_journal/start.json": b"{}"}), True),
        ("other.zip", zip_of({"run.json": b"{}"}), False),
        ("other.json", b'{"evalId": "x", "results": {"version": 3}}', False),
        ("log.eval", b"", False),
    ],
)
def test_logs_are_recognised_by_their_heads(written: Written, name: str, content: bytes, *, wanted: bool) -> None:
    assert inspect_ai.recognises([written(name, content)]) == wanted


def test_a_final_answer_may_stand_in_the_last_model_event_alone(read: Read) -> None:
    grader = model_event("GRADE: C", message_id="m3", role="grader")
    events = [model_event("Rome", message_id="m0"), model_event("Paris", message_id="m2"), grader]
    run = read(log(sample(output={"model": "smol", "choices": []}, events=events)))
    assert (run.responses[0].text, run.responses[0].error, run.status) == ("Paris", "", "finished")


def test_scores_stay_where_the_log_has_no_answer_of_a_sample(read: Read) -> None:
    scores = {"steps": {"value": {"solved": 1, "tries": 0.5}}}
    run = read(log(sample(output={"choices": []}, events=[], scores=scores)))
    assert run.scorers == ("steps.solved", "steps.tries")
    assert any("no answer of it, only what it was scored" in note for note in run.notes)


def test_messages_may_lie_in_the_pool_of_a_sample(read: Read) -> None:
    pool = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Capital of Peru?"}]
    event = model_event(input=[], input_refs=[[0, 2]])
    run = read(log(sample(events=[event], message_pool=pool)))
    assert [message["content"] for message in run.cases[0].messages] == ["Be short.", "Capital of Peru?"]
