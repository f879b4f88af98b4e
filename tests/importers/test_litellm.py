"""A LiteLLM gateway's logs, and answers saved with its headers: who answered is what they are for."""

from pathlib import Path
from typing import Any

import pytest

from evalboard.importers import chat, litellm
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedRun
from tests.importers.odd_rows import told_of
from tests.importers.openai_logs import RAIN, body, choice, entry, request, sample, told, written

START = 1_795_227_600.25


def payload(text: str = "Rain.", **fields: Any) -> dict[str, Any]:
    """What a logging callback writes of one call, in the order in which it does."""
    return {
        "id": "chatcmpl-1",
        "litellm_call_id": "call-1",
        "trace_id": "",
        "call_type": "acompletion",
        "cache_hit": None,
        "status": "success",
        "custom_llm_provider": "hosted_vllm",
        "startTime": START,
        "endTime": START + 1.5,
        "model": "smol",
        "metadata": {"user_api_key_hash": "s3cret", "requester_metadata": None},
        "model_group": "smol-eval",
        "model_id": "e1db",
        "api_base": "http://10.0.0.1:8101/v1/chat/completions",
        "messages": RAIN,
        "response": body(choice(text), model="smol-eval"),
        "model_parameters": {"temperature": 0, "seed": 42, "extra_headers": {"Authorization": "s3cret"}},
        "hidden_params": {"additional_headers": {"llm_provider-x-ms-region": "West", "set-cookie": "s3cret"}},
        "error_information": {"error_class": "", "error_message": ""},
        **fields,
    }


def failure(**fields: Any) -> dict[str, Any]:
    error = {"error_class": "Timeout", "error_message": "no answer in 60 s", "traceback": "…"}
    return payload(response=None, status="failure", error_information=error, **fields)


def only(files: list[LogFile]) -> LoggedRun:
    assert litellm.recognises(files)
    (run,) = litellm.read(files)
    return run


def read_lines(folder: Path, *rows: dict[str, Any]) -> LoggedRun:
    log = written(folder, "gateway.jsonl", rows)
    assert not chat.recognises([log])
    return only([log])


def test_a_log_says_which_deployment_answered_though_the_body_does_not(tmp_path: Path) -> None:
    run = read_lines(tmp_path, payload())
    (response,) = run.responses
    served = response.served_by
    assert (run.model, run.tool, run.sampling) == ("smol-eval", "LiteLLM", {"temperature": 0, "seed": 42})
    assert (served.key, served.key_from) == ("http://10.0.0.1:8101/v1 e1db", "litellm")
    assert (served.model, served.system_fingerprint) == ("hosted_vllm/smol", "fp-1")
    assert served.parts["llm_provider-x-ms-region"] == "West"
    assert (response.seconds, response.text, response.seed) == (1.5, "Rain.", 42)
    assert list(run.cases[0].messages) == RAIN
    assert "s3cret" not in repr(run)


def test_a_log_and_a_saved_answer_name_a_backend_alike(tmp_path: Path) -> None:
    headers = [
        ["X-LiteLLM-Model-Api-Base", "http://10.0.0.1:8101/v1"],
        ["x-litellm-model-id", "e1db"],
        ["x-litellm-model-name", "hosted_vllm/smol"],
        ["x-litellm-version", "1.106.2"],
    ]
    row = {"request": request(model="smol-eval"), "response": body(model="smol-eval"), "response_headers": headers}
    saved = only([written(tmp_path, "saved.jsonl", [row])])
    logged = read_lines(tmp_path, payload())
    assert saved.tool == "LiteLLM 1.106.2"
    ours, theirs = saved.responses[0].served_by, logged.responses[0].served_by
    assert (ours.key, ours.key_from, ours.model) == (theirs.key, theirs.key_from, theirs.model)
    assert saved.cases == logged.cases


def test_token_ids_that_the_gateway_moved_are_found(tmp_path: Path) -> None:
    moved = choice("Rain", entry("Rain", -0.1), provider_specific_fields={"token_ids": [7]})
    run = read_lines(tmp_path, payload(response=body(moved)))
    assert run.detail == "ids"
    assert [one.token_id for one in run.responses[0].positions or ()] == [7]


def test_the_callers_own_id_is_the_cases(tmp_path: Path) -> None:
    named = (payload(metadata={"requester_metadata": {"sample_id": "fact-1"}}) for _ in range(2))
    assert told(read_lines(tmp_path, *named)) == [("fact-1", 1, "Rain."), ("fact-1", 2, "Rain.")]


def test_cache_hits_are_flagged(tmp_path: Path) -> None:
    assert [one.flags for one in read_lines(tmp_path, payload(cache_hit=True), payload(cache_hit=False)).responses] == [
        ("cached",),
        (),
    ]


def test_an_attempt_that_was_tried_again_is_no_missing_response(tmp_path: Path) -> None:
    other = [{"role": "user", "content": "Write about sun."}]
    run = read_lines(
        tmp_path,
        failure(trace_id="t1"),
        payload("second try", trace_id="t1"),
        failure(trace_id="t2", messages=other),
        failure(trace_id="", messages=other),
    )
    assert [(one.text, one.error, one.flags) for one in run.responses] == [
        ("second try", "", ("retried",)),
        ("", "Timeout: no answer in 60 s", ()),
        ("", "Timeout: no answer in 60 s", ()),
    ]
    assert run.status == "incomplete"
    assert run.notes == ("1 failed attempts were tried again by the gateway and answered; those are kept.",)


def test_model_groups_are_runs_and_other_calls_are_left_out_with_a_note(tmp_path: Path) -> None:
    files = [
        written(tmp_path, "1.json", [payload()]),
        written(tmp_path, "2.json", [{"standard_logging_object": payload(model_group="large")}]),
        written(tmp_path, "3.json", [payload(call_type="aembedding", response={"data": []})]),
    ]
    assert litellm.recognises(files)
    runs = litellm.read(files)
    assert [(run.model, len(run.responses)) for run in runs] == [("smol-eval", 1), ("large", 1)]
    assert "1 calls of other kinds" in runs[0].notes[0]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"x": 1}, "line 2: is no log of a LiteLLM call"),
        (payload(messages=[{"role": "user", "content": "redacted-by-litellm"}]), "line 2: holds no prompt"),
        (payload(hidden_params=[]), "line 2: hidden_params must be an object"),
    ],
)
def test_what_is_no_log_of_a_call_is_refused(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    files = [written(tmp_path, "gateway.jsonl", [payload(), row])]
    assert words in told_of(litellm.read, files)["gateway.jsonl"]


def test_the_real_proxys_answers_were_all_of_the_stack_that_should_serve() -> None:
    run = only([sample("litellm/proxy.jsonl")])
    (served,) = {(one.served_by.key, one.served_by.model) for one in run.responses}
    assert served[0].startswith("http://127.0.0.1:8101/v1 e1db857db922")
    assert served[1] == "hosted_vllm/smol"
    assert (run.model, run.tool, run.detail, len(run.responses)) == ("smol-eval", "LiteLLM 1.106.2", "ids", 5)
    assert {one.served_by.system_fingerprint for one in run.responses} == {"vllm-0.32.0-ac2590de"}
    assert {one.flags for one in run.responses} == {()}
