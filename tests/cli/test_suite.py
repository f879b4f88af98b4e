"""`evalboard suite push` and `try`, `evalboard follow`, and what a run would take."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from runs.models import FollowRecord, RunRecord, SuiteVersionRecord, TrialRecord
from runs.suites import TRIALS
from tests import build

Call = Callable[..., "CompletedProcess[str]"]

CASES = [{"id": "sky", "prompt": "Which?", "target": "blue"}, {"id": "a/b", "prompt": "Hva?", "target": "rød"}]
SUITE: dict[str, Any] = {"slug": "colours", "title": "Colours", "scorer": {"kind": "exact"}, "cases": CASES}
MAPPING = {
    "scorer": {"kind": "exact"},
    "case": {"id": {"field": "key"}, "prompt": {"field": "question"}, "target": {"field": "gold"}},
}


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str], str]:
    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


Write = Callable[[str, str], str]


def test_a_document_is_stored_once(evalboard: Call, written: Write) -> None:
    file = written("any.json", json.dumps(SUITE))
    first, again = evalboard("suite", "push", file), evalboard("suite", "push", file)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("colours v1 stored: 2 cases. http://")
    assert (again.returncode, again.stdout.startswith("colours v1 was there already")) == (0, True)


def test_lines_take_the_files_name_for_a_slug(evalboard: Call, written: Write) -> None:
    lines = "\n".join(json.dumps(line) for line in ({"suite": {"scorer": {"kind": "exact"}}}, *CASES))
    body = json.loads(evalboard("suite", "push", written("My Colours.jsonl", lines), "--json").stdout)
    assert (body["slug"], body["version"], body["n_cases"]) == ("my-colours", 1, 2)


def test_slug_and_title_can_be_given(evalboard: Call, written: Write) -> None:
    evalboard("suite", "push", written("any.json", json.dumps(SUITE)), "--slug", "shades", "--title", "Shades of it")
    stored = SuiteVersionRecord.objects.select_related("suite").get()
    assert (stored.suite.slug, stored.title) == ("shades", "Shades of it")


def test_another_tools_rows_are_read_by_a_mapping(evalboard: Call, written: Write) -> None:
    rows = written("rows.jsonl", json.dumps({"key": "sky", "question": "Which?", "gold": "blue"}))
    done = evalboard("suite", "push", rows, "--mapping", written("mapping.json", json.dumps(MAPPING)))
    assert (done.returncode, done.stderr) == (0, "")
    assert SuiteVersionRecord.objects.get().cases.get().content["target"] == "blue"


def test_a_mapping_that_ships_is_known_by_its_name(evalboard: Call, written: Write) -> None:
    rows = written("rows.jsonl", json.dumps({"key": "sky"}))
    by_name = evalboard("suite", "push", rows, "--mapping", "short")
    assert (by_name.returncode, "rows" in by_name.stderr) == (64, True)
    unknown = evalboard("suite", "push", rows, "--mapping", "nothing")
    assert "one of bfcl, short" in unknown.stderr


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", "{", "not a JSON document"),
        ("a.json", "[]", "A suite is a JSON object"),
        ("a.json", json.dumps({**SUITE, "cases": [{"id": "sky", "prompt": "Which?"}]}), "cases[0].target"),
        ("a.jsonl", '{"id": 1}\n{', "line 2"),
    ],
)
def test_a_mistake_is_named_before_anything_is_sent(
    evalboard: Call, written: Write, name: str, text: str, words: str
) -> None:
    done = evalboard("suite", "push", written(name, text), EVALBOARD_URL="http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (64, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_that_is_not_there_is_64(evalboard: Call) -> None:
    done = evalboard("suite", "push", "no/such/file.json")
    assert (done.returncode, "cannot be read: No such file" in done.stderr) == (64, True)


def test_a_sheet_is_stored_by_its_columns(evalboard: Call, written: Write) -> None:
    sheet = written("towns.csv", "frage,antwort,tags\nHauptstadt von Norwegen?,Oslo,geo\n")
    done = evalboard("suite", "push", sheet, "--scorer", "contains", "--columns", "prompt=frage,target=antwort")
    assert (done.returncode, done.stderr) == (0, "")
    case = SuiteVersionRecord.objects.get().cases.get()
    assert (case.case_id, case.content["target"], case.tags) == ("row-1", "Oslo", ["geo"])
    own = evalboard("suite", "push", written("own.json", json.dumps(SUITE)), "--scorer", "contains")
    assert (own.returncode, "scorer: The file names a scorer of its own, so this one" in own.stderr) == (64, True)
    refused = evalboard("suite", "push", sheet)
    assert (refused.returncode, "columns.prompt: is not known" in refused.stderr) == (64, True)


def test_a_case_is_tried_and_nothing_is_stored(evalboard: Call, written: Write) -> None:
    build.endpoint()
    build.profile()
    file = written("towns.csv", "prompt,target\nOne,1\nTwo,2\n")

    def answer(text: str) -> None:
        lease = TRIALS.claim(TrialRecord.objects.all(), worker=build.worker(text))
        assert lease is not None
        build.answer_trial(lease, text)

    call = ("suite", "try", file, "--scorer", "number", "--endpoint", "local", "--case", "row-2")
    right = evalboard(*call, meanwhile=[("queued", lambda: answer("It is 2\x1b[2J."))])
    assert (right.returncode, right.stdout.splitlines()[0]) == (0, "Case row-2 is right: Read 2.")
    assert "It is 2\\x1b[2J." in right.stdout
    wrong = json.loads(evalboard(*call, "--json", meanwhile=[("queued", lambda: answer("3"))]).stdout)
    assert (wrong["answer"]["score"], wrong["target"], wrong["case"]) == (0, 2, "row-2")
    assert not SuiteVersionRecord.objects.exists()


@pytest.mark.nightly
def test_what_i_follow_is_listed_and_stopped(evalboard: Call) -> None:
    build.suite()
    nowhere = evalboard("follow", "suite", "colours")
    assert (nowhere.returncode, nowhere.stderr) == (0, "")
    assert nowhere.stdout.startswith("You follow suite colours.\nYou have no address yet")
    told = evalboard("follow", "--address", "https://chat.example.com/T0/secret")
    assert told.stdout == "You follow suite colours.\nEvalboard notifies you at https://chat.example.com/***cret.\n"
    assert [each["name"] for each in json.loads(evalboard("follow", "--json").stdout)] == ["colours"]
    assert evalboard("follow", "suite", "colours", "--stop").stdout.startswith("You follow nothing.")
    again = evalboard("follow", "suite", "colours", "--stop")
    assert (again.returncode, "You do not follow suite colours." in again.stderr) == (64, True)
    assert evalboard("follow", "suite", "none").returncode == 64


def test_an_estimate_starts_nothing(evalboard: Call) -> None:
    build.suite()
    build.endpoint()
    build.profile()
    done = evalboard("run", "colours", "--endpoint", "local", "--repeats", "2", "--estimate")
    assert done.stdout == "6 calls. Unknown: time and tokens (no earlier run like it on this endpoint).\n"
    assert not RunRecord.objects.exists()
    evalboard("run", "colours", "--endpoint", "local", "--notify")
    assert FollowRecord.objects.get().name == str(RunRecord.objects.get().pk)
