"""The Batch API's files: results alone, or beside the requests that they answer."""

from pathlib import Path
from typing import Any

import pytest

from evalboard.importers import batch, chat
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedRun
from tests.importers.odd_rows import told_of
from tests.importers.openai_logs import RAIN, body, choice, request, sample, told, written

ERROR = {"error": {"message": "no such model", "type": "NotFoundError", "code": 404}}


def asked(custom_id: str, **fields: Any) -> dict[str, Any]:
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions", "body": request(**fields)}


def answered(custom_id: str, text: str = "Rain.") -> dict[str, Any]:
    response = {"status_code": 200, "request_id": "r", "body": body(choice(text))}
    return {"id": "batch_req_1", "custom_id": custom_id, "response": response, "error": None}


def failed(custom_id: str) -> dict[str, Any]:
    response = {"status_code": 404, "request_id": "r", "body": None}
    return {"id": "vllm-1", "custom_id": custom_id, "response": response, "error": ERROR}


def only(files: list[LogFile]) -> LoggedRun:
    assert batch.recognises(files)
    assert not chat.recognises(files)
    (run,) = batch.read(files)
    return run


def with_requests(folder: Path, requests: list[dict[str, Any]], results: list[dict[str, Any]]) -> LoggedRun:
    return only([written(folder, "output.jsonl", results), written(folder, "input.jsonl", requests)])


def test_both_files_give_prompts_settings_and_the_requests_order(tmp_path: Path) -> None:
    run = with_requests(tmp_path, [asked("a"), asked("b")], [answered("b", "two"), answered("a", "one")])
    assert told(run) == [("a", 1, "one"), ("b", 1, "two")]
    assert [list(case.messages) for case in run.cases] == [RAIN, RAIN]
    assert (run.sampling, run.title, run.tool) == ({"temperature": 0, "seed": 42}, "output", "OpenAI Batch API")
    assert run.responses[0].seed == 42
    assert run.notes == ()


def test_results_alone_are_read_with_a_note(tmp_path: Path) -> None:
    run = only([written(tmp_path, "output.jsonl", [answered("a")])])
    assert (told(run), run.sampling, run.cases[0].messages) == ([("a", 1, "Rain.")], {}, ())
    assert "prompts and sampling settings are unknown" in run.notes[0]


def test_failed_expired_and_unanswered_requests_are_missing(tmp_path: Path) -> None:
    expired = {"id": "batch_req_2", "custom_id": "c", "response": None, "error": {"message": "expired", "code": "x"}}
    requests = [asked(name) for name in "abcd"]
    run = with_requests(tmp_path, requests, [failed("a"), answered("b"), expired])
    assert [one.error for one in run.responses] == ["HTTP 404: NotFoundError: no such model", "", "expired"]
    assert [case.id for case in run.cases] == ["a", "b", "c", "d"]
    assert (run.status, run.tool) == ("incomplete", "vllm run-batch")
    unanswered = with_requests(tmp_path, requests[:2], [answered("b")])
    assert (told(unanswered), len(unanswered.cases), unanswered.status) == ([("b", 1, "Rain.")], 2, "incomplete")


@pytest.mark.parametrize(
    ("ids", "cases"),
    [(["a", "b"], ["a", "b"]), (["a#1", "a#2"], ["a"]), (["a:1", "a:2"], ["a:1", "a:2"]), (["a", "a:1"], ["a", "a:1"])],
)
def test_requests_alone_are_cases_by_the_ids_of_their_results(tmp_path: Path, ids: list[str], cases: list[str]) -> None:
    run = only([written(tmp_path, "input.jsonl", [asked(name) for name in ids])])
    assert [case.id for case in run.cases] == cases
    assert all(case.messages for case in run.cases)
    assert (run.responses, run.status, run.sampling) == ((), "incomplete", {"temperature": 0, "seed": 42})


def test_openais_file_of_errors_belongs_to_the_run(tmp_path: Path) -> None:
    files = [written(tmp_path, "output.jsonl", [answered("a")]), written(tmp_path, "errors.jsonl", [failed("b")])]
    assert told(only(files)) == [("a", 1, "Rain."), ("b", 1, "!")]


@pytest.mark.parametrize(
    ("ids", "is_known", "found"),
    [
        (["p#2", "p#1", "q#1"], True, [("p", 1), ("p", 2), ("q", 1)]),
        (["p:0", "p:1"], True, [("p", 1), ("p", 2)]),
        (["p", "p#2"], True, [("p", 1), ("p", 2)]),
        (["year:1999"], True, [("year:1999", 1)]),
        (["p#1", "p#3"], True, [("p#1", 1), ("p#3", 1)]),
        (["p#1", "p#3"], False, [("p", 1), ("p", 2)]),
        (["math:1", "math:2"], False, [("math:1", 1), ("math:2", 1)]),
        (["#1", "a#b"], True, [("#1", 1), ("a#b", 1)]),
    ],
)
def test_repeats_are_read_out_of_ids_where_they_mean_that(
    tmp_path: Path, ids: list[str], is_known: bool, found: list[tuple[str, int]]
) -> None:
    results = [answered(custom_id) for custom_id in ids]
    run = (
        with_requests(tmp_path, list(map(asked, ids)), results)
        if is_known
        else only([written(tmp_path, "output.jsonl", results)])
    )
    assert sorted((case_id, repeat) for case_id, repeat, _ in told(run)) == found
    is_read = {case_id for case_id, _ in found} != set(ids)
    assert any("n-th repeat" in note for note in run.notes) == is_read


def test_ids_of_one_stem_with_two_prompts_are_two_cases(tmp_path: Path) -> None:
    other = asked("math:2", messages=[{"role": "user", "content": "Write about sun."}])
    run = with_requests(tmp_path, [asked("math:1"), other], [answered("math:1"), answered("math:2")])
    assert [case.id for case in run.cases] == ["math:1", "math:2"]


@pytest.mark.parametrize(
    ("requests", "results", "words"),
    [
        ([asked("a"), asked("a")], [answered("a")], "custom_id 'a' is that of input.jsonl, line 1 too"),
        ([asked("a")], [answered("b")], "two batches"),
        ([asked("a"), {"custom_id": "b"}], [answered("a")], "line 2: is no request of a batch"),
        ([asked("a")], [answered("a"), {"custom_id": "b"}], "line 2: is no result of a batch"),
        ([asked("a")], [answered("a"), {**answered("a"), "custom_id": {}}], "line 2: custom_id must be"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    tmp_path: Path, requests: list[dict[str, Any]], results: list[dict[str, Any]], words: str
) -> None:
    files = [written(tmp_path, "input.jsonl", requests), written(tmp_path, "output.jsonl", results)]
    assert words in str(told_of(batch.read, files))


def test_the_real_batch_has_one_failed_line() -> None:
    run = only([sample(f"vllm_run_batch/batch_{name}.jsonl") for name in ("input", "output")])
    assert (len(run.cases), len(run.responses), run.status, run.detail) == (5, 5, "incomplete", "ids")
    assert [(one.case_id, one.error) for one in run.responses if one.error] == [
        ("p-bad-model", "HTTP 404: NotFoundError: The model `not-there` does not exist. Valid aliases: smol.")
    ]
    assert {one.served_by.system_fingerprint for one in run.responses if not one.error} == {"vllm-0.32.0-ac2590de"}
    assert run.sampling == {"temperature": 0, "top_p": 1, "seed": 42, "max_tokens": 32}
