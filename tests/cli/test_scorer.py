"""`evalboard scorer`: scorers of workers, what one would change, its adoption, and files to begin one with."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from types import SimpleNamespace
from typing import Any

import pytest

from evalboard.cli.scorer import _short
from evalboard.cli.scorer_files import write_program
from evalboard.core.scoring import check_spec, read_reply
from evalboard.scorers import serve
from evalboard.wording.scorers import describe_rescored
from runs.models import EndpointRecord, RunRecord
from runs.run import cancel_run
from runs.suites import push_suite, rescore_run
from tests import build, own_scorers
from tests.cli.conftest import ROOT
from tests.scripted import ScriptedServer, ok
from worker.runner import Runner

Call = Callable[..., "CompletedProcess[str]"]
TESTED = """\
Run 1 would have 100.0 points with command folded (digest) in place of exact: +33.3 from 66.7.
1 case would change. One of 3 cases is 33.3 points.
  scorer  1 case  +33.3 points

sea  +33.3  0 → 1  Blue  It is the target.
"""


@pytest.fixture
def run(transactional_db: None) -> RunRecord:
    return build.finished_run(("blue", "Blue", "blue"))


@pytest.fixture
def worker(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[Runner]:
    with own_scorers.working(settings, tmp_path) as running:
        yield running


def test_the_scorers_of_workers_are_listed(evalboard: Call, worker: Runner) -> None:
    listed = evalboard("scorer", "list")
    (kind, name, digest, n, noun) = listed.stdout.split()
    assert (kind, name, len(digest), n, noun) == ("command", "folded", 8, "1", "worker")
    (as_json,) = json.loads(evalboard("scorer", "list", "--json").stdout)
    assert as_json["digest"].startswith(digest)


def test_what_a_scorer_would_change_is_printed_once_a_worker_has_scored(
    evalboard: Call, run: RunRecord, worker: Runner
) -> None:
    meanwhile = [("scoring, 0 of 1 repeats. All responses are there.", worker.work)]
    tested = evalboard("scorer", "test", "colours", "--scorer", "folded", meanwhile=meanwhile)
    printed = re.sub(r"\([0-9a-f]{8}\)", "(digest)", tested.stdout.replace(f"Run {run.pk}", "Run 1"))
    assert (tested.returncode, printed) == (0, TESTED)
    as_json = json.loads(evalboard("scorer", "test", "colours", "--scorer", '{"kind": "contains"}', "--json").stdout)
    assert (as_json["waiting"], as_json["n_cases"], as_json["cases"]) == (False, 0, [])


@pytest.mark.nightly
def test_why_answers_stay_unscored_is_printed_whole(
    evalboard: Call, run: RunRecord, worker: Runner, settings: Any
) -> None:
    (settings.SCORERS_DIR / "forking").write_text("#!/bin/sh\nread line\ndate\n")
    (settings.SCORERS_DIR / "forking").chmod(0o755)
    worker._report_scorers()
    meanwhile = [("scoring, 0 of 1 repeats. All responses are there.", worker.work)]
    tested = evalboard("scorer", "test", "colours", "--scorer", "forking", meanwhile=meanwhile)
    assert "3 cases would have no score.\n  Unscored: The scorer forking ended." in tested.stdout
    assert "fork" in tested.stdout.splitlines()[3].rpartition("It wrote: ")[2], "the end of its words is there"


def test_a_run_without_scores_by_a_scorer_is_not_called_the_same() -> None:
    known = {"run": "7", "spec": {"default": {"kind": "exact"}}, "before": (100.0,), "after": (None,), "n_cases": 0}
    named: Any = SimpleNamespace(scorer=SimpleNamespace(digest="ab" * 32), **known)
    assert describe_rescored(named, "contains") == ("Run 7 has no scores by exact to compare with those by contains.",)


def test_spaces_of_answers_and_reasons_are_seen_in_a_table() -> None:
    assert (_short("Town   1\n", quoted=True), _short("Town 1", quoted=True)) == ('"Town   1\\n"', "Town 1")
    assert _short("got 'a  b',\nnot 'a b'") == "got 'a  b', not 'a b'"


def test_a_judge_scores_a_run_once_more(evalboard: Call, run: RunRecord, worker: Runner, settings: Any) -> None:
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    says = {"index": 0, "message": {"content": "yes"}, "finish_reason": "stop"}
    judge: Any = {"kind": "judge", "endpoint": "jury", "profile": run.profile.slug, "template": "Is {{answer}} right?"}
    judge |= {"reads": {"choice": {"yes": 1, "no": 0}}, "anchors": 0}
    with ScriptedServer(ok(choices=[says])) as jury:
        named = {"slug": "jury", "engine": "openai", "model_repo": "lab/jury", "dtype": "", "max_model_len": None}
        EndpointRecord.objects.create(**named, base_url=jury.base_url)
        rescore_run(run_id=run.pk, scorer=judge)
        worker.work()
        meanwhile = [("The judge jury begins within 15 seconds.", worker.work)]
        asked = ("scorer", "judge-again", str(run.pk), "--scorer", json.dumps(judge))
        again = evalboard(*asked, meanwhile=meanwhile)
    assert again.returncode == 0, again.stderr
    assert "jury judged it: 9 judgements" in again.stdout
    assert "with judge, asked again (judging 2) in place of exact: +33.3 from 66.7." in again.stdout


def test_a_scorer_is_adopted_by_its_name_and_pushed_with(
    evalboard: Call, run: RunRecord, worker: Runner, tmp_path: Path
) -> None:
    adopted = evalboard("scorer", "adopt", "colours", "--scorer", "folded")
    assert adopted.stdout.startswith("colours v2 stored, scored by command folded (")
    (tmp_path / "towns.csv").write_text("prompt,target\nCapital of Norway?,Oslo\n")
    pushed = json.loads(evalboard("suite", "push", str(tmp_path / "towns.csv"), "--scorer", "folded", "--json").stdout)
    assert (pushed["scorer"]["default"]["name"], len(pushed["scorer"]["default"]["digest"])) == ("folded", 64)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["test", "colours", "--scorer", "nobody"], "no worker has a scorer of that name; they have: folded."),
        (["adopt", "colours", "--scorer", "{"], "The scorer is no JSON"),
        (["test", "nothing", "--scorer", "exact"], "Suite nothing has no finished run"),
        (["new", "a/b"], "a/b is no name"),
    ],
)
def test_what_cannot_be_is_named(evalboard: Call, worker: Runner, arguments: list[str], words: str) -> None:
    refused = evalboard("scorer", *arguments)
    assert (refused.returncode, words in refused.stderr) == (64, True), refused.stderr


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.nightly
def test_a_new_package_is_whole_and_its_test_passes(evalboard: Call, folder: Path) -> None:
    made = evalboard("scorer", "new", "our.Folded")
    files = [line.removeprefix("wrote ") for line in made.stdout.splitlines()]
    assert files == [
        f"our.Folded/{name}" for name in ("pyproject.toml", "our_folded_scorer.py", "test_our_folded_scorer.py")
    ]
    project = tomllib.loads((folder / files[0]).read_text())["project"]
    assert project["entry-points"]["evalboard.scorers"] == {"our.Folded": "our_folded_scorer:score"}
    here = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", "."]
    tested = subprocess.run(command, cwd=folder / "our.Folded", env=here, capture_output=True, text=True, check=False)
    assert (tested.returncode, "2 passed" in tested.stdout) == (0, True), tested.stdout
    again = evalboard("scorer", "new", "our.Folded", "--command")
    assert (again.returncode, "is there already, and nothing was written" in again.stderr) == (64, True)


def test_a_new_program_answers_a_line_with_a_line(evalboard: Call, folder: Path) -> None:
    assert json.loads(evalboard("scorer", "new", "folded", "--command", "--json").stdout) == ["folded"]
    lines = [
        {"id": n, "case": {"target": ["Oslo", "Kristiania"]}, "response": {"text": text}}
        for n, text in enumerate((" oslo", "Bergen"))
    ]
    sent = "".join(json.dumps(line) + "\n" for line in lines)
    ended = subprocess.run([folder / "folded"], input=sent, capture_output=True, text=True, check=True)
    right, wrong = map(json.loads, ended.stdout.splitlines())
    assert (right["id"], right["value"], right["answer"]) == (0, 1.0, "oslo")
    assert (wrong["id"], wrong["value"], wrong["reason"]) == (1, 0.0, "Expected 'Oslo', got 'Bergen'.")


SECTION = (ROOT / "docs" / "suites.md").read_text().partition("## Scorers of your own")[2].partition("\n## ")[0]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)


@pytest.mark.nightly
def test_the_commands_of_the_docs_lead_from_a_new_program_to_its_adoption(
    evalboard: Call, folder: Path, settings: Any, transactional_db: None
) -> None:
    build.finished_run(("blue", "Blue", "blue"), version=build.suite("towns"))
    settings.SCORERS_DIR = folder / "data" / "scorers"
    new, make, copy, listed, tested, adopted = blocks("sh")[0].splitlines()
    evalboard(*shlex.split(new)[1:])
    for command in (make, copy):
        subprocess.run(shlex.split(command), cwd=folder, check=True)
    with own_scorers.running() as worker:
        assert "folded" in evalboard(*shlex.split(listed)[1:]).stdout
        changed = evalboard(*shlex.split(tested)[1:], meanwhile=[("scoring, 0 of 1 repeats", worker.work)])
        assert "+33.3 from 66.7" in changed.stdout
        assert "scored by command folded" in evalboard(*shlex.split(adopted)[1:]).stdout


def test_the_lines_of_the_docs_are_what_a_program_and_a_function_get_and_give(folder: Path) -> None:
    request, reply = blocks("json")[0].splitlines()
    program = write_program(folder / "folded")
    ended = subprocess.run([program], input=f"{request}\n", capture_output=True, text=True, check=True)
    assert ended.stdout == f"{reply}\n"
    names: dict[str, Any] = {}
    exec(blocks("python")[0], names)  # noqa: S102  # the example itself
    replies = io.BytesIO()
    with redirect_stdout(io.StringIO()):
        serve(names["score"], requests=io.BytesIO(request.encode()), replies=replies)
    given = read_reply(check_spec({"kind": "python", "name": "folded"}), replies.getvalue(), number=0)
    assert (given.value, given.reason, given.scores) == (1.0, "Read ' oslo'.", {"short": 1.0})


def test_waiting_for_a_run_says_which_scorer_no_worker_has(
    evalboard: Call, transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    own = {"kind": "command", "name": "folded", "digest": "3f2a9c10" * 8}
    cases = [{"id": "sky", "prompt": "Which?", "target": "blue"}]
    run = build.finished_run(("blue",), version=push_suite(document={"slug": "own", "scorer": own, "cases": cases})[0])
    meanwhile = [
        (
            "1 of 1 responses. All responses are there. No worker that runs has the scorer folded (3f2a9c10).",
            lambda: cancel_run(run_id=run.pk),
        )
    ]
    ended = evalboard("wait", str(run.pk), meanwhile=meanwhile)
    assert (ended.returncode, "cancelled" in ended.stdout) == (4, True)
