"""Saved answers of OpenAI-compatible servers: lines, bare or wrapped, and event streams."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalboard.core.answer import split_parts
from evalboard.core.errors import InvalidInput
from evalboard.importers import batch, chat, litellm
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedRun
from tests.importers.odd_rows import told_of
from tests.importers.openai_logs import (
    RAIN,
    body,
    choice,
    entry,
    request,
    sample,
    told,
    written,
)


def only(files: list[LogFile]) -> LoggedRun:
    assert chat.recognises(files)
    (run,) = chat.read(files)
    return run


def saved(case_id: str, text: str = "Rain.", **fields: Any) -> dict[str, Any]:
    """A line with request and response."""
    return {"custom_id": case_id, "request": request(), "response": body(choice(text)), **fields}


def read_lines(folder: Path, *rows: dict[str, Any]) -> LoggedRun:
    return only([written(folder, "log.jsonl", rows)])


def test_a_line_gives_prompt_settings_answer_and_who_served_it(tmp_path: Path) -> None:
    row = saved(
        "p-1",
        request=request(max_completion_tokens=9, api_key="s3cret"),
        response=body(choice("Rain", entry("Rain", -0.1, ("Rain", -0.1), ("The", -2.0)), token_ids=[7])),
        response_headers=[["X-Evalboard-Backend", "blue"], ["Set-Cookie", "s3cret"]],
        url="http://host:1/v1/chat/completions",
        started_at="2026-11-21T02:13:03+00:00",
        latency_s=1.5,
    )
    run = read_lines(tmp_path, row)
    assert (run.model, run.detail, run.status, run.base_url) == ("acme", "ids", "finished", "http://host:1/v1")
    assert run.sampling == {"temperature": 0, "seed": 42, "max_tokens": 9}
    assert [(case.id, list(case.messages)) for case in run.cases] == [("p-1", RAIN)]
    (response,) = run.responses
    assert (response.text, response.seed, response.seconds, response.n_tokens) == ("Rain", 42, 1.5, 1)
    assert (response.served_by.key, response.served_by.system_fingerprint) == ("blue", "fp-1")
    assert run.finished_at is not None
    assert run.finished_at.second == 4
    assert run.scorers == ()
    assert "s3cret" not in repr(run)


def test_the_same_case_again_is_the_next_repeat_and_choices_are_repeats(tmp_path: Path) -> None:
    both = body(choice("second", index=1), choice("first"))
    run = read_lines(tmp_path, saved("a", response=both), saved("b"), saved("a", "third"))
    assert told(run) == [("a", 1, "first"), ("a", 2, "second"), ("a", 3, "third"), ("b", 1, "Rain.")]


def test_the_logs_own_repeats_are_kept_gaps_and_all(tmp_path: Path) -> None:
    rows = [saved("a", "3", repeat=3), saved("a", "1", repeat=1), saved("b", "1", repeat=1)]
    assert told(read_lines(tmp_path, *rows)) == [("a", 1, "1"), ("a", 3, "3"), ("b", 1, "1")]
    rows = [saved("a", "1", repeat=1_000_000), saved("a", "0", repeat=0)]
    assert told(read_lines(tmp_path, *rows)) == [("a", 1, "0"), ("a", 2, "1")]


def test_errors_are_missing_with_their_words(tmp_path: Path) -> None:
    error = {"error": {"message": "too long", "type": "BadRequestError"}}
    run = read_lines(
        tmp_path,
        saved("ok"),
        saved("a", response=error, status_code=400),
        saved("b", response={"object": "error", "message": "no such model", "type": "NotFoundError"}),
        saved("c", response=None, error="connection reset"),
        saved("d", response="<html>Bad gateway</html>", status_code=502),
        saved("e", response=body(choices=[])),
        saved("f", response=body({"index": 0, "error": {"message": "filtered"}})),
    )
    assert {one.case_id: one.error for one in run.responses} == {
        "ok": "",
        "a": "HTTP 400: BadRequestError: too long",
        "b": "NotFoundError: no such model",
        "c": "connection reset",
        "d": "HTTP 502: <html>Bad gateway</html>",
        "e": "The log holds no answer to this request.",
        "f": "filtered",
    }
    assert run.status == "incomplete"
    failed = read_lines(tmp_path, saved("a", response=error))
    assert (failed.status, failed.failure) == ("failed", "BadRequestError: too long")


def test_models_are_runs_of_their_own_and_a_misspelt_one_stays_with_the_first(tmp_path: Path) -> None:
    rows = [
        saved("a", "one"),
        {"custom_id": "a", "request": request(model="nope"), "response": {"error": "no such model"}},
        saved("a", "two", request=request(model="other")),
    ]
    runs = chat.read([written(tmp_path, "log.jsonl", rows)])
    assert [(run.model, told(run)) for run in runs] == [
        ("acme", [("a", 1, "one"), ("a", 2, "!")]),
        ("other", [("a", 1, "two")]),
    ]


def test_cases_without_a_name_are_called_by_their_prompt_however_it_is_written(tmp_path: Path) -> None:
    parts = [{"role": "user", "content": [{"type": "text", "text": RAIN[0]["content"]}], "name": None}]
    rows = [{"request": request(), "response": body()}, {"request": request(messages=parts), "response": body()}]
    run = read_lines(tmp_path, *rows)
    assert [repeat for _, repeat, _ in told(run)] == [1, 2]
    assert run.cases[0].id.startswith("prompt-")
    again = read_lines(tmp_path, rows[1])
    assert (again.cases, again.slug) == (run.cases, run.slug)


def test_bare_answers_are_called_by_their_place_and_the_run_says_so(tmp_path: Path) -> None:
    run = read_lines(tmp_path, body(), body(choice("Sun.")))
    assert told(run) == [("line-1", 1, "Rain."), ("line-2", 1, "Sun.")]
    assert "place in the log" in run.notes[0]
    assert run.cases[0].messages == ()


def test_settings_that_differ_are_not_the_runs(tmp_path: Path) -> None:
    run = read_lines(tmp_path, saved("a"), saved("b", request=request(seed=43, top_p=0.9)))
    assert run.sampling == {"temperature": 0}
    assert [one.seed for one in run.responses] == [42, 43]
    assert [note for note in run.notes if "differs" in note] == [
        "top_p differs between requests, and is not among the run's settings."
    ]


def test_tool_calls_are_told_apart_and_refusals_are_text(tmp_path: Path) -> None:
    def calling(arguments: str) -> dict[str, Any]:
        call = {"id": "random", "function": {"name": "find", "arguments": arguments}}
        return choice(message={"content": None, "tool_calls": [call]})

    refusing = choice(message={"content": None, "refusal": "No."})
    rows = [
        saved(name, response=body(one)) for name, one in zip("abc", [calling("1"), calling("2"), refusing], strict=True)
    ]
    one, two, three = (text for _, _, text in told(read_lines(tmp_path, *rows)))
    assert (one, three) == ('[{"arguments":"1","name":"find"}]', "No.")
    assert one != two


FIND = {"name": "find", "arguments": "1"}
FOUND = '[{"arguments":"1","name":"find"}]'


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        ({"content": "\n\n", "tool_calls": [{"id": "x", "function": FIND}]}, FOUND),
        ({"content": "Wait.", "tool_calls": [{"function": FIND}]}, f'{{"content":"Wait.","tool_calls":{FOUND}}}'),
        ({"content": "Wait.", "function_call": FIND}, f'{{"content":"Wait.","tool_calls":{FOUND}}}'),
        ({"content": None, "function_call": FIND, "tool_calls": []}, FOUND),
        ({"content": None, "function_call": FIND, "tool_calls": [{"function": FIND}]}, FOUND),
        ({"content": "Hm.", "refusal": "No."}, '{"content":"Hm.","refusal":"No."}'),
        ({"content": "Hm.", "refusal": None, "function_call": None, "tool_calls": None}, "Hm."),
        ({"content": [{"type": "text", "text": "Hm."}], "refusal": ""}, "Hm."),
    ],
)
def test_no_part_of_an_answer_displaces_another(tmp_path: Path, message: dict[str, Any], kept: str) -> None:
    assert told(read_lines(tmp_path, saved("a", response=body(choice(message=message))))) == [("a", 1, kept)]


@pytest.mark.parametrize("word", ["error", "NETWORK_ERROR", "abort", "insufficient_system_resource", "networkError"])
def test_an_answer_that_the_server_broke_off_is_missing_with_its_reason(tmp_path: Path, word: str) -> None:
    broken = choice("The ca", finish_reason=word, native_finish_reason="lost")
    run = read_lines(tmp_path, saved("a"), saved("b", response=body(broken)))
    assert told(run) == [("a", 1, "Rain."), ("b", 1, "!")]
    assert run.responses[1].error == f"The server broke off the answer: it ended with {word!r} (lost)."
    assert (run.responses[1].finish_reason, run.status) == (word, "incomplete")


THOUGHT = {"role": "assistant", "content": "Blue."}


@pytest.mark.parametrize(
    ("message", "reasoning"),
    [
        pytest.param({**THOUGHT, "reasoning_content": "Sky?"}, "Sky?", id="vLLM, DeepSeek, LiteLLM"),
        pytest.param({**THOUGHT, "reasoning": "Sky?", "reasoning_content": None}, "Sky?", id="OpenRouter, newer vLLM"),
        pytest.param(
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Sky?"}]},
                    {"type": "text", "text": "Blue."},
                ]
            },
            "Sky?",
            id="parts, as Mistral gives them",
        ),
        pytest.param({**THOUGHT, "reasoning_content": "", "reasoning": None}, None, id="nothing is apart"),
    ],
)
def test_what_a_model_thought_stays_apart_from_its_answer(
    tmp_path: Path, message: dict[str, Any], reasoning: str | None
) -> None:
    [response] = read_lines(tmp_path, saved("a", response=body(choice(message=message)))).responses
    assert (response.text, response.reasoning) == ("Blue.", reasoning)


def test_tags_in_an_answer_are_not_guessed_to_be_thinking(tmp_path: Path) -> None:
    [response] = read_lines(tmp_path, saved("a", "<think>Sky?</think>Blue.")).responses
    assert (response.text, response.reasoning) == ("<think>Sky?</think>Blue.", None)


def test_streamed_thinking_is_joined(tmp_path: Path) -> None:
    parts = [{"reasoning_content": "Sk"}, {"reasoning_content": "y?"}, {"content": "Blue."}]
    chunks = [
        {"id": "s", "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
        for delta, end in zip(parts, (None, None, "stop"), strict=True)
    ]
    [response] = only([written(tmp_path, "a.sse", sse(*chunks))]).responses
    assert (response.text, response.reasoning) == ("Blue.", "Sky?")


def test_an_old_completion_keeps_its_prompt_and_says_how_it_was_sent(tmp_path: Path) -> None:
    logprobs = {"tokens": [" Paris"], "token_logprobs": [-0.2], "top_logprobs": [{" Paris": -0.2, " the": -2.0}]}
    answer = {"index": 0, "text": " Paris", "logprobs": logprobs, "finish_reason": "length"}
    asked = {"model": "acme", "prompt": "The capital of France is", "logprobs": 2}
    run = read_lines(tmp_path, {"custom_id": "a", "request": asked, "response": body(answer, object="text_completion")})
    assert (run.responses[0].text, run.detail) == (" Paris", "tokens")
    assert run.cases[0].messages == ({"role": "user", "content": "The capital of France is"},)
    assert "logprobs" not in run.sampling
    assert any("without a chat template" in note for note in run.notes)


def sse(*chunks: dict[str, Any] | str) -> str:
    return "".join(f"data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in chunks)


def chunk(text: str = "", finish: str | None = None, name: str = "s1", **fields: Any) -> dict[str, Any]:
    tokens = {"content": [entry(text, -0.5)]} if text else None
    choices = [{"index": 0, "delta": {"content": text}, "logprobs": tokens, "finish_reason": finish}]
    return {"id": name, "object": "chat.completion.chunk", "model": "acme", "choices": choices, **fields}


LAST = {"id": "s1", "object": "chat.completion.chunk", "choices": [], "system_fingerprint": "fp-9", "usage": None}


def test_a_stream_is_put_together_and_its_last_chunk_names_the_fingerprint(tmp_path: Path) -> None:
    stream = sse(chunk("Ra"), chunk("in", "stop"), LAST, "[DONE]", chunk("Sun", "stop", "s2"), "[DONE]")
    run = only([written(tmp_path, "a.sse", ": a comment\nevent: message\n" + stream)])
    assert [
        (text, one.served_by.system_fingerprint) for (_, _, text), one in zip(told(run), run.responses, strict=True)
    ] == [
        ("Rain", "fp-9"),
        ("Sun", ""),
    ]
    assert [position.token for position in run.responses[0].positions or ()] == [b"Ra", b"in"]


def test_a_stream_without_an_end_is_missing(tmp_path: Path) -> None:
    files = [
        written(tmp_path, "cut.sse", sse(chunk("Ra"))),
        written(tmp_path, "error.sse", sse(chunk("Ra"), {"error": {"message": "engine died"}})),
        written(tmp_path, "whole.sse", sse(chunk("Rain", "stop"))),
    ]
    assert [one.error for one in only(files).responses] == [
        "The stream breaks off before the answer ends.",
        "engine died",
        "",
    ]


def test_chunks_in_lines_are_a_stream_too_even_where_two_are_mixed(tmp_path: Path) -> None:
    rows = [chunk("Ra"), chunk("Su", name="s2"), chunk("in", "stop"), chunk("n", "stop", name="s2")]
    assert [text for _, _, text in told(read_lines(tmp_path, *rows))] == ["Rain", "Sun"]


def test_streamed_tool_calls_are_joined(tmp_path: Path) -> None:
    def part(**function: str) -> dict[str, Any]:
        delta = {"tool_calls": [{"index": 0, "function": function}]}
        return {"id": "s", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}

    end = {"id": "s", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    stream = sse(part(name="find", arguments='{"q"'), part(arguments=":1}"), end)
    ((_, _, text),) = told(only([written(tmp_path, "a.sse", stream)]))
    assert json.loads(text) == [{"name": "find", "arguments": '{"q":1}'}]


def part(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "s", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def called(name: str | None = None, arguments: Any = "", **fields: Any) -> dict[str, Any]:
    return part(tool_calls=[{"function": {"name": name, "arguments": arguments}, **fields}])


A, B = {"name": "a", "arguments": "[1]"}, {"name": "b", "arguments": "[2]"}


@pytest.mark.parametrize(
    ("parts", "kept"),
    [
        ([part(content="Wait."), called("a", "[", index=0, id="x"), called(None, "1]", index=0)], ("Wait.", [A])),
        ([called("a", "[1]", index=1, id="x"), called("b", "[2]", index=2, id="y")], ("", [A, B])),
        ([called("a", "[1]", index=0, id="x"), called("b", "[2]", index=0, id="y")], ("", [A, B])),
        ([called("a", "[", index=0, id="x"), called(None, "1]", index=0, id="y")], ("", [A])),
        ([called("a", "[", index=0, id="x"), called("a", "1]", index=0, id="x")], ("", [A])),
        ([called("a", "[", id="x"), called(None, "1]"), called("b", "[2]", id="y")], ("", [A, B])),
        ([called("a", "[", id="x"), called("b", "[2]", id="y"), called("a", "1]", id="x")], ("", [A, B])),
        ([called("a", "[1]"), called("b", "[2]")], ("", [A, B])),
        ([called("a", "[1]"), called("a", "[1]")], ("", [A, A])),
        ([called("a"), called("b", "[2]")], ("", [{"name": "a", "arguments": ""}, B])),
        ([called("a", {"x": 1}, index=0)], ("", [{"name": "a", "arguments": '{"x": 1}'}])),
        (
            [part(content="Wait."), part(function_call={"name": "a"}), part(function_call=A | {"name": ""})],
            ("Wait.", [A]),
        ),
    ],
)
def test_streamed_calls_are_told_apart_however_they_are_counted(
    tmp_path: Path, parts: list[dict[str, Any]], kept: tuple[str, list[dict[str, Any]]]
) -> None:
    stream = sse(*parts, part("tool_calls"), "[DONE]")
    ((_, _, text),) = told(only([written(tmp_path, "a.sse", stream)]))
    assert (split_parts(text).content, list(split_parts(text).calls)) == kept


def test_a_stream_that_ends_in_an_error_is_missing(tmp_path: Path) -> None:
    stream = sse(part(content="The ca"), part("error"), "[DONE]")
    [response] = only([written(tmp_path, "a.sse", stream)]).responses
    assert response.error == "The server broke off the answer: it ended with 'error'."


def test_a_file_may_be_a_list_or_one_object_over_many_lines(tmp_path: Path) -> None:
    rows = [saved("a"), saved("b")]
    assert told(only([written(tmp_path, "list.json", json.dumps(rows, indent=1))])) == told(read_lines(tmp_path, *rows))
    assert told(only([written(tmp_path, "one.json", json.dumps(rows[0], indent=1))])) == [("a", 1, "Rain.")]


def test_a_long_first_line_is_recognised_by_its_beginning(tmp_path: Path) -> None:
    long = saved("a", response=body(choice("R" * 100_000)))
    rows = [{"custom_id": "a", "request": request(), "response": long["response"]}]
    log = written(tmp_path, "log.jsonl", rows)
    assert chat.recognises([log])
    assert not batch.recognises([log])
    assert not litellm.recognises([log])


@pytest.mark.parametrize(
    ("content", "place", "words"),
    [
        ('{"choices": []}\n{nonsense', "line 2", "not JSON"),
        (json.dumps(saved("a")) + "\n[]", "line 2", "must be a JSON object"),
        (json.dumps(saved("a")) + '\n{"x": 1}', "line 2", "neither a response"),
        (json.dumps(saved("a" * 201)), "line 1", "custom_id must be 1 to 200"),
        (json.dumps(saved("a\u2028b")), "line 1", "control character"),
        (json.dumps(saved("a", request={"messages": {}})), "line 1", "messages must be a list"),
        (json.dumps(saved("a", request=request(messages=[{"role": "user", "content": "\0"}]))), "line 1", "NUL"),
        (json.dumps(saved("a", response=body({"message": 3}))), "line 1", "a message or a text"),
        (json.dumps(saved("a", request={"prompt": ["one", "two"]})), "line 1", "2 prompts"),
        (json.dumps(saved("a")) + "\n" + json.dumps(saved("a", request=request(messages=[]))), "", ""),
        (
            json.dumps(saved("a")) + "\n" + json.dumps(saved("a", request={"prompt": "Sun?"})),
            "line 2",
            "another prompt",
        ),
        ("data: {nonsense\n", "line 1", "not JSON"),
        ("data: [DONE]\n", "", "holds no answer"),
    ],
)
def test_what_cannot_be_read_is_named_by_file_and_line(tmp_path: Path, content: str, place: str, words: str) -> None:
    log = written(tmp_path, "odd.jsonl", content)
    if not words:
        assert len(chat.read([log])[0].cases) == 1  # a line without its prompt takes nothing from the case
        return
    ((name, problem),) = told_of(chat.read, [log]).items()
    assert name == "odd.jsonl"
    assert place in problem
    assert words in problem


def test_a_prompt_that_the_provider_refused_is_told_from_other_errors(tmp_path: Path) -> None:
    refused = {"error": {"message": "Blocked.", "code": "content_policy_violation"}}
    rows = [saved("a"), saved("b", response=refused), saved("c", response={"error": {"message": "Gone."}})]
    (run,) = chat.read([written(tmp_path, "log.jsonl", "\n".join(map(json.dumps, rows)))])
    assert [each.is_prompt_filtered for each in run.responses] == [False, True, False]


def test_an_odd_line_is_missing_under_its_own_case_and_the_others_are_read(tmp_path: Path) -> None:
    odd = saved("b", response={"choices": [{"index": 0, "message": 7}]})
    log = written(tmp_path, "odd.jsonl", "\n".join(json.dumps(row) for row in (saved("a"), odd, saved("c"))))
    (run,) = chat.read([log])
    assert [(each.case_id, bool(each.error)) for each in run.responses] == [("a", False), ("b", True), ("c", False)]
    assert run.responses[1].error == "It cannot be read (line 2: a choice must have a message or a text)."
    assert run.status == "incomplete"


SMALL = [
    saved("a", response_headers=[["x-litellm-model-id", "m"]], repeat=1, latency_s=1.0, url="http://h/v1"),
    saved("a", response=body(choice("x", entry("x", -1.0, ("x", -1.0)), token_ids=[3]))),
    saved("b", response={"error": {"message": "m"}}),
    chunk("x", "stop"),
]


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(path for name, child in inside for path in paths(child, (*here, name)))]


def outcome(read: Callable[[list[LogFile]], list[LoggedRun]], log: LogFile) -> str | list[str]:
    """What comes of a log: "read", or the names of the files that were refused."""
    try:
        runs = read([log])
    except InvalidInput as refused:
        return list(refused.fields)
    return "read" if any(run.responses for run in runs) else "nothing"


odd = st.sampled_from(
    [None, True, -1, 0, 10**400, 1e308, "", "\0", "\ud800", [], [[]], [None], {}, {"a": 1}, "http://["]
)


@given(st.data())
def test_a_log_with_anything_anywhere_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    rows = json.loads(json.dumps(SMALL))
    path = data.draw(st.sampled_from(paths(rows)[1:]))
    holder = rows
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = data.draw(odd)
    log = written(tmp_path_factory.getbasetemp(), "mutated.jsonl", rows)
    for reader in (chat, litellm):
        reader.recognises([log])
        assert outcome(reader.read, log) in ("read", ["mutated.jsonl"])


def test_the_real_logs_of_two_stacks_have_their_tokens_fingerprints_and_ties() -> None:
    found = {}
    for name in ("chat_fp32", "chat_bf16_conc8"):
        run = only([sample(f"openai_chat/{name}.jsonl")])
        positions = [one for response in run.responses for one in response.positions or ()]
        tops = [sorted((value for _, value in one.alternatives), reverse=True)[:2] for one in positions]
        ties = sum(len(top) == 2 and top[0] == top[1] for top in tops)
        (fingerprint,) = {one.served_by.system_fingerprint for one in run.responses}
        found[name] = (len(run.responses), run.detail, run.slug, fingerprint, len(positions), ties)
    slug = found["chat_fp32"][2]
    assert found == {
        "chat_fp32": (4, "ids", slug, "vllm-0.32.0-ac2590de", 154, 0),
        "chat_bf16_conc8": (4, "ids", slug, "vllm-0.32.0-bfec4654", 155, 14),
    }


def test_three_of_four_real_answers_part() -> None:
    sides = [
        {one.case_id: one for one in only([sample(f"openai_chat/{name}.jsonl")]).responses}
        for name in ("chat_fp32", "chat_bf16_conc8")
    ]
    ids = [
        {case: [one.token_id for one in response.positions or ()] for case, response in side.items()} for side in sides
    ]
    assert sum(ids[0][case] != ids[1][case] for case in ids[0]) == 3


def test_the_real_edge_cases() -> None:
    run = only([sample("openai_chat/edge_cases.jsonl")])
    by_case = {(one.case_id, one.repeat): one for one in run.responses}
    assert Counter(bool(one.error) for one in run.responses) == {False: 10, True: 2}
    assert {case for case, repeat in by_case if repeat == 2} == {"n2-sampled"}
    as_ids = by_case["tokens-as-ids", 1].positions or ()
    assert b"".join(one.token for one in as_ids).decode() == by_case["tokens-as-ids", 1].text
    parrots = by_case["emoji-partial-utf8", 1].positions or ()
    assert [(one.token, one.token_id) for one in parrots[:3]] == [(b"", 10813), (b"", 116), ("🦜".encode(), 246)]
    assert by_case["no-logprobs", 1].positions is None
    assert [one.alternatives for one in by_case["logprobs-no-top", 1].positions or ()] == [()] * 24
    assert (by_case["system-multi-turn", 1].positions or ())[-1].token == b"<|im_end|>"
    assert "max_model_len" in by_case["http-400", 1].error


def test_the_real_stream() -> None:
    (response,) = only([sample("openai_chat/stream.sse")]).responses
    assert response.served_by.system_fingerprint == "vllm-0.32.0-ac2590de"
    assert (len(response.positions or ()), response.n_prompt_tokens, response.finish_reason) == (12, 36, "length")


def test_an_answer_that_comes_again_with_its_id_is_a_copy_and_no_repeat(tmp_path: Path) -> None:
    one, other = saved("a"), saved("b")
    run = read_lines(tmp_path, one, other, one, other, one)
    assert told(run) == [("a", 1, "Rain."), ("b", 1, "Rain.")]
    assert any(note.startswith("3 answers came again") for note in run.notes)
    shared = [saved(case, response=body(id="chatcmpl-0")) for case in ("a", "b", "a")]
    assert len(read_lines(tmp_path, *shared).responses) == 3  # an id of several cases names no answer


@pytest.mark.parametrize("name", ["question_id", "task_id", "data_index", "index"])
def test_ids_and_times_by_the_names_that_people_use(tmp_path: Path, name: str) -> None:
    row = {name: 7, "last_run_at": "2026-11-20T10:00:00Z", "duration_ms": 2500}
    run = read_lines(tmp_path, row | {"request": request(), "response": body()})
    assert run.cases[0].id == "7"
    assert run.started_at is not None
    assert run.finished_at is not None
    assert (run.finished_at - run.started_at).total_seconds() == 2.5


def test_a_body_of_the_responses_api_says_when_it_was_made(tmp_path: Path) -> None:
    content = [{"type": "output_text", "text": "Rain."}]
    made = {"object": "response", "created_at": 1_795_000_000, "status": "completed", "model": "acme"}
    run = read_lines(tmp_path, made | {"id": "resp_1", "output": [{"type": "message", "content": content}]})
    assert run.started_at == datetime(2026, 11, 18, 11, 6, 40, tzinfo=UTC)


def test_a_vendor_before_its_own_model_makes_no_other_model(tmp_path: Path) -> None:
    names = ("anthropic/claude-9", "claude-9")
    rows = [saved(name, request=request(model=name), response=body(model=name)) for name in names]
    assert read_lines(tmp_path, *rows).model == "claude-9"
    assert read_lines(tmp_path, saved("a", request=request(model="openai/gpt-oss-20b"))).model == "openai/gpt-oss-20b"
