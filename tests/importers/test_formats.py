"""Which format a log is in: found out by its files, or named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evalboard.core.errors import InvalidInput
from runs.importers.files import LogFile
from runs.importers.formats import FORMATS, read_logs
from tests.importers import batch_log
from tests.recorded import LOGS

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
