"""Which format a log is in: found out by its files, or named."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers.files import LogFile
from evalboard.importers.formats import FORMATS, read_logs
from tests.importers import batch_log, inspect_log
from tests.importers.zips import zip_of
from tests.recorded import LOGS

TIME = "2026-11-20T10-00-00.123456"
Written = Callable[[str, bytes], LogFile]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    def write(name: str, content: bytes) -> LogFile:
        (tmp_path / name).write_bytes(content)
        return LogFile(name, tmp_path / name)

    return write


# The files of a real log in each format, and how many responses it holds.
REAL = {
    "inspect": (12, ["inspect/fp32_baseline.eval"]),
    "lm_eval": (20, ["lm_eval/results_*.json", "lm_eval/samples_*.jsonl"]),
    "promptfoo": (12, ["promptfoo/out_fp32.json"]),
    "batch": (5, ["vllm_run_batch/batch_input.jsonl", "vllm_run_batch/batch_output.jsonl"]),
    "litellm": (5, ["litellm/proxy.jsonl"]),
    "scores": (4, ["scored_lines/sentences.jsonl"]),
    "chat": (4, ["openai_chat/chat_fp32.jsonl"]),
    "rollouts": (4, ["rollouts/plain_fp32.jsonl"]),
}


def test_every_format_has_a_real_log() -> None:
    assert REAL.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", REAL)
def test_a_real_log_is_recognised_and_read(name: str) -> None:
    n_responses, patterns = REAL[name]
    paths = [path for pattern in patterns for path in LOGS.glob(pattern)]
    found, runs = read_logs([LogFile(path.name, path) for path in paths])
    assert len(paths) == len(patterns)
    assert (found, sum(len(run.responses) for run in runs)) == (name, n_responses)


def test_a_log_is_recognised_and_what_is_named_is_taken_as_named(written: Written) -> None:
    log = written("output.jsonl", batch_log.output({"sky": "blue"}))
    assert read_logs([log])[0] == "batch"
    assert read_logs([log], format="batch")[0] == "batch"
    with pytest.raises(InvalidInput) as refused:
        read_logs([log], format="inspect")
    assert "output.jsonl" in refused.value.fields


CHOICE = {"index": 0, "message": {"role": "assistant", "content": "Blue."}, "finish_reason": "stop"}
SUBTASKS = {"results": {"sky": {"alias": "sky", "acc,none": 1.0}}, "group_subtasks": {}, "configs": {}, "n-shot": {}}
PROMPTFOO = {"evalId": "eval-1", "results": {"version": 3, "prompts": [], "results": []}, "config": {}}
RESULT = {"testIdx": 0, "promptIdx": 0, "response": {"output": "Blue."}}
BATCH_BODY = {"model": "m", "messages": []}
PAYLOAD = {"litellm_call_id": "1", "trace_id": "1", "call_type": "completion", "api_base": "", "response": {}}
HEADERS = {"x-litellm-version": "1.80"}
# Each format's files as their beginnings may look; those of more than one line are cut where a head ends.
SHAPES = {
    "inspect": [
        json.dumps(inspect_log.log(inspect_log.sample())),
        inspect_log.packed(inspect_log.log(inspect_log.sample())),
        zip_of({"samples/1.json": b"{}", "header.json": b"{}"}),
        zip_of({"_journal/start.json": b"{}"}),
    ],
    "lm_eval": [
        json.dumps(SUBTASKS),
        json.dumps({"results": {f"task-{n}": {"alias": f"task-{n}"} for n in range(3000)}, "configs": {}}),
        json.dumps({"doc_id": 0, "doc": {}, "arguments": {}, "resps": [["Blue."]]}),
        json.dumps({"doc_id": 0, "doc": {"text": "x" * 100_000}, "arguments": {}}),
        json.dumps({"doc_id": 0, "doc": "x" * 100_000, "arguments": {}}),
    ],
    "promptfoo": [json.dumps(PROMPTFOO), json.dumps(PROMPTFOO, indent=1), json.dumps(RESULT)],
    "batch": [
        batch_log.output({"sky": "Blue."}),
        json.dumps({"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": BATCH_BODY}),
        json.dumps({"custom_id": "a", "params": {"model": "m", "max_tokens": 9, "messages": []}}),
        json.dumps({"requests": [{"custom_id": "a", "params": {"model": "m", "max_tokens": 9, "messages": []}}]}),
        json.dumps({"custom_id": "a", "result": {"type": "expired"}}),
    ],
    "scores": [
        json.dumps({"answer": "Blue."}),
        json.dumps({"prompt": "Which colour has the sky?", "answer": "Blue."}),
        json.dumps({"id": 1, "question": "Which colour has the sky?", "answer": None, "scores": {"right": True}}),
    ],
    "litellm": [json.dumps(PAYLOAD), json.dumps({"response": {"choices": [CHOICE]}, "response_headers": HEADERS})],
    "chat": [
        json.dumps({"id": "a", "choices": [CHOICE]}),
        json.dumps({"doc_id": "a", "request": BATCH_BODY, "response": {"choices": [CHOICE]}}),
        json.dumps({"id": "a", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "Blue."}]}),
        json.dumps({"object": "response", "status": "completed", "output": []}),
        'data: {"id": "a", "choices": [{"index": 0, "delta": {"content": "Blue."}}]}\n\n',
    ],
    "rollouts": [json.dumps({"prompt_ids": [1], "completion_ids": [2, 3], "logprobs": [-0.5, -0.25]})],
}
NAMES = {
    "inspect": ["2026-11-20T10-00-00+00-00_sky_abc.eval", "log.json"],
    "lm_eval": ["results.json", f"results_{TIME}.json", "samples_sky.jsonl", f"samples_sky_{TIME}.jsonl"],
    "promptfoo": ["results.json", "output.json", "out.jsonl"],
    "batch": ["batch_input.jsonl", "batch_output.jsonl", "batch_abc_output.jsonl"],
    "litellm": ["proxy.jsonl"],
    "scores": ["scores.jsonl"],
    "chat": ["chat.jsonl", "answer.sse", "responses.json"],
    "rollouts": ["rollouts.jsonl", "1.jsonl"],
}


def test_every_format_has_shapes_and_names() -> None:
    assert SHAPES.keys() == NAMES.keys() == FORMATS.keys()


@pytest.mark.parametrize(("expected", "place"), [(name, at) for name in SHAPES for at in range(len(SHAPES[name]))])
def test_a_format_is_recognised_by_content_under_every_name(written: Written, expected: str, place: int) -> None:
    shape = SHAPES[expected][place]
    content = shape if isinstance(shape, bytes) else shape.encode()
    for name in ["no-name", *(name for names in NAMES.values() for name in names)]:
        file = written(name, content)
        fitting = [each for each, reader in FORMATS.items() if reader.recognises([file])]
        # An answer with a gateway's headers, or with tokens, is one of its raw kind too.
        assert fitting[:1] == [expected], name
        assert set(fitting[1:]) <= ({"chat"} if expected == "litellm" else set()), name


@pytest.mark.parametrize(("format_name", "words"), [("auto", "No known format fits notes.txt"), ("xls", "one of: ")])
def test_what_no_format_fits_is_said(written: Written, format_name: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_logs([written("notes.txt", b"Dear diary")], format=format_name)
    assert words in refused.value.fields["format"]
    assert "inspect, lm_eval" in refused.value.fields["format"]


@pytest.mark.parametrize("content", [b"", b"\0" * 5000, b"\xff\xfe{", b"PK\x03\x04", b"[" * 5000, b"{}\n{}\n"])
def test_recognising_never_raises(written: Written, content: bytes) -> None:
    """Whatever the file, it is of no format, or its reader says what is wrong with it."""
    with pytest.raises(InvalidInput):
        read_logs([written("log.jsonl", content)])


@pytest.mark.parametrize("name", [name for name in REAL if name not in ("inspect", "promptfoo")])
def test_a_damaged_first_line_costs_itself_alone(written: Written, name: str) -> None:
    _, patterns = REAL[name]
    files = []
    for path in (path for pattern in patterns for path in sorted(LOGS.glob(pattern))):
        lines = path.read_bytes().splitlines(keepends=True)
        damaged = lines[0][: len(lines[0]) // 2] + b"\n" + b"".join(lines[1:])
        files.append(written(path.name, damaged if path.suffix == ".jsonl" else path.read_bytes()))
    fitting, runs = read_logs(files)
    assert fitting == name
    assert any("line 1: is not JSON" in note for run in runs for note in run.notes)
