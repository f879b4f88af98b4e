"""What stands beside the answers of a log, and is of another kind than tools write, costs itself alone."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from evalboard.importers import inspect_ai, lm_eval, promptfoo
from evalboard.importers.field_values import drop_odd
from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from tests.importers import inspect_log
from tests.recorded import LOGS

Written = Callable[[str, bytes], LogFile]
NOTE = "These fields of the log cannot be read and were left out: {}."


def spoil(document: dict[str, Any], name: str) -> bytes:
    """Return a document with a side field of another kind; what is around it is made where it is not there."""
    *path, last = name.split(".")
    holder = document
    for part in path:
        if not isinstance(holder.get(part), dict):
            holder[part] = {}
        holder = holder[part]
    holder[last] = 7
    return json.dumps(document).encode()


@pytest.mark.parametrize("name", inspect_ai.SIDE_FIELDS)
def test_of_inspect(written: Written, name: str) -> None:
    log = inspect_log.log(inspect_log.sample())
    [run] = read_logs([written("log.json", spoil(json.loads(json.dumps(log)), name))])[1]
    assert len(run.responses) == 1
    assert NOTE.format(name) in run.notes


@pytest.mark.parametrize("name", promptfoo.SIDE_FIELDS)
def test_of_promptfoo(written: Written, name: str) -> None:
    document = json.loads((LOGS / "promptfoo" / "out_fp32.json").read_text())
    [run] = read_logs([written("out.json", spoil(document, name))])[1]
    assert len(run.responses) == 12
    assert NOTE.format(name) in run.notes


@pytest.mark.parametrize("name", lm_eval.SIDE_FIELDS)
def test_of_lm_eval(written: Written, name: str) -> None:
    [results] = (LOGS / "lm_eval").glob("results_*.json")
    [samples] = (LOGS / "lm_eval").glob("samples_*.jsonl")
    spoiled = written(results.name, spoil(json.loads(results.read_text()), name))
    [run] = read_logs([spoiled, LogFile(samples.name, samples)])[1]
    assert len(run.responses) == 20
    assert NOTE.format(name) in run.notes


def test_what_is_there_and_what_is_null_stays() -> None:
    document = {"a": {"b": [1]}, "c": None, "d": "x"}
    assert drop_odd(document, {"a": dict, "a.b": list, "c": dict, "d": (str, dict), "e.f": dict}) == []
    assert document == {"a": {"b": [1]}, "c": None, "d": "x"}
    assert drop_odd(document, {"a": list, "a.b": dict, "d": dict}) == [NOTE.format("a, d")]
    assert document == {"c": None}
