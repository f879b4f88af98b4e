"""Logs of Inspect AI that are damaged, or that nobody's Inspect wrote: read or refused, with the place."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalboard.core.errors import InvalidInput
from evalboard.importers import inspect_ai, json_files
from evalboard.importers.files import LogFile
from tests.importers.inspect_log import log, packed, sample
from tests.importers.odd_rows import told_of
from tests.importers.zips import zip_of

Written = Callable[[str, bytes], LogFile]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{}", "eval.task is missing"),
        (json.dumps(log() | {"samples": []}).encode(), "holds no samples"),
        (json.dumps(log() | {"samples": 7}).encode(), "samples must be a list"),
        (json.dumps(log(sample(None))).encode(), "samples[0]: a sample has no id"),
        (json.dumps(log(sample(), sample())).encode(), "samples[1]: sample 'c1' of epoch 1 stands in the log twice"),
        (json.dumps(log(sample(epoch=0))).encode(), "epoch must be a whole number from 1 to 1,000"),
        (json.dumps(log(sample(epoch=10**9))).encode(), "epoch must be a whole number from 1 to 1,000"),
        (json.dumps(log(sample(events=[7]))).encode(), "samples[0]: events[0] must be an object"),
        (json.dumps(log(shards=["a"])).encode(), "points at other logs"),
        (packed(log())[:-10], "is a zip that cannot be read"),
        (zip_of({"samples/1.json": b"{}"}), "holds neither header.json nor _journal/start.json"),
        (zip_of({"header.json": json.dumps(log()).encode(), "samples/1.json": b"{"}), "samples/1.json: is not JSON"),
    ],
)
def test_what_cannot_be_read_is_named(written: Written, content: bytes, problem: str) -> None:
    assert problem in told_of(inspect_ai.read, [written("a/log.eval", content)])["a/log.eval"]


WHOLE = log(
    sample("a", events_data={"messages": []}, model_fallbacks=[], error_retries=[]),
    results={"scores": [{"name": "includes", "scorer": "includes"}], "headline": {"scorer": "includes"}},
    error=None,
)
ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2**70,
        1e300,
        "",
        "x",
        "attachment://" + "a" * 32,
        "\ud800",
        "\0",
        [],
        [[]],
        [None],
        {},
        {"a": 1},
    ]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside, itself first."""
    keys = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in keys for place in places(item, (*path, key)))]


@settings(max_examples=300, deadline=None)
@given(changes=st.lists(st.tuples(st.sampled_from(places(WHOLE)[1:]), ODD), min_size=1, max_size=3))
def test_whatever_stands_in_a_log_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    content = copy.deepcopy(WHOLE)
    for path, value in changes:
        put(content, path, copy.deepcopy(value))
    file = LogFile("log.json", tmp_path_factory.getbasetemp() / "mutated.json")
    file.path.write_text(json.dumps(content))
    assert_read_or_refused(file)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            json_files, "parse_value", lambda text, *, where, shape: json_files.parse_slowly(text, where=where)
        )
        whole = read_or_refused(file)
    assert read_or_refused(file) == whole  # what its shape leaves out is read by nobody


@settings(max_examples=100, deadline=None)
@given(cut=st.integers(0, 400), at=st.integers(0, 3000), byte=st.integers(0, 255))
def test_whatever_bytes_an_eval_holds_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, cut: int, at: int, byte: int
) -> None:
    content = bytearray(packed(WHOLE))
    content[at % len(content)] = byte
    file = LogFile("log.json", tmp_path_factory.getbasetemp() / "mutated.eval")
    file.path.write_bytes(bytes(content[: len(content) - (cut if cut < 50 else 0)]))
    assert_read_or_refused(file)


def put(content: Any, path: tuple[Any, ...], value: Any) -> None:
    """Replace the value at a path, where an earlier change left one."""
    for key in path[:-1]:
        if not isinstance(content, dict | list) or (isinstance(content, dict) and key not in content):
            return
        if isinstance(content, list) and not (isinstance(key, int) and key < len(content)):
            return
        content = content[key]
    if isinstance(content, dict) or (
        isinstance(content, list) and isinstance(path[-1], int) and path[-1] < len(content)
    ):
        content[path[-1]] = value


def read_or_refused(file: LogFile) -> Any:
    try:
        return inspect_ai.read([file])
    except InvalidInput as refused:
        return refused.fields


def assert_read_or_refused(file: LogFile) -> None:
    inspect_ai.recognises([file])
    try:
        [run] = inspect_ai.read([file])
    except InvalidInput as refused:
        assert refused.fields.keys() == {"log.json"}  # noqa: PT017  a log that is read is as good
    else:
        assert len(run.responses) == 1
