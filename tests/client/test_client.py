"""The client for notebooks, against a server that is really there; and docs/client.md, as it stands."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalboard.client import Client, EvalboardError, Rows, Unreachable, WrongUse
from evalboard.client.answers import Answer
from evalboard.client.notebook import NotebookComparison, NotebookRelease, NotebookRun
from evalboard.client.rest import RestClient
from evalboard.contract.compare import Comparison, ScoreCompared
from runs import models
from runs.replays import claim_replay
from tests import build, judged
from tests.cli import answers
from tests.cli.decoding import Decoding
from tests.importers import batch_log
from tests.judged import N_CASES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "client.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.fixture
def token(transactional_db: None) -> str:
    return build.token(build.user("mara", "release manager"), "read", "run", "sign")


@pytest.fixture
def client(live_server: Any, token: str) -> Iterator[Client]:
    with Client(live_server.url, token) as made:
        yield made


@pytest.fixture
def pair(transactional_db: None) -> tuple[models.RunRecord, models.RunRecord]:
    judged.policy()
    return judged.run(), judged.run(N_CASES // 2)


def test_the_page_runs_from_top_to_bottom(
    live_server: Any, token: str, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged.policy()
    judged.run()
    monkeypatch.setenv("EVALBOARD_URL", live_server.url)
    monkeypatch.setenv("EVALBOARD_TOKEN", token)
    known: dict[str, Any] = {}
    with Decoding(judged.answers(N_CASES // 2), build.bucket(weights=judged.WORSE)):
        exec("\n".join(EXAMPLES), known)  # noqa: S102  our own page
    assert len(EXAMPLES) >= 5
    assert (known["low"], known["high"]) == (50.0, 50.0)
    assert known["comparison"].difference == -50.0
    assert known["comparison"].to_pandas()["points"].sum() == -50.0
    assert len(known["changed"]) == 5 * N_CASES // 2
    assert known["release"].verdict == "no_ship"
    known["client"].close()


@pytest.mark.nightly
def test_runs_are_a_list_a_frame_and_a_table(client: Client, pair: tuple[models.RunRecord, models.RunRecord]) -> None:
    rows = client.runs(suite="colours")
    assert [row["id"] for row in rows] == [str(run.pk) for run in reversed(pair)]
    assert (len(rows), repr(rows), len(rows[:1])) == (2, "<2 rows>", 1)
    frame = rows.to_pandas()
    assert list(frame["suite.slug"]) == ["colours", "colours"]
    assert str(frame["created_at"].dt.tz) == "UTC"
    assert "<table>" in rows._repr_html_()


def test_a_run_by_itself_or_by_its_number(client: Client, pair: tuple[models.RunRecord, models.RunRecord]) -> None:
    run = client.run(pair[0].pk)
    assert client.run(run).json == run.json
    assert (run.status, run.range, run.labels) == ("finished", (100.0, 100.0), {})
    assert list(run.to_pandas()["repeat"]) == [1, 2, 3, 4, 5]
    assert repr(run) == f"<Run {run.id} finished: 100.0 points over 5 repeats.>"
    assert f'<a href="{run.url}">its page</a>' in run._repr_html_()


@pytest.mark.nightly
def test_a_log_becomes_runs(client: Client, tmp_path: Path) -> None:
    log = tmp_path / "output.jsonl"
    log.write_bytes(batch_log.output({"sky": "blue", "sea": "green"}))
    [run] = client.import_logs(log)
    assert (run.status, run.range, len(client.responses(run))) == ("finished", None, 2)
    assert repr(run) == f"<Run {run.id} finished over 1 repeat, with no score.>"
    assert [again.id for again in client.import_logs(str(log), log_format="batch")] == [run.id]


@pytest.mark.nightly
def test_cases_and_responses(client: Client, pair: tuple[models.RunRecord, models.RunRecord]) -> None:
    failed = client.cases(pair[1].pk, only="failed").to_pandas()
    assert list(failed["score"]) == [0.0] * (N_CASES // 2)
    assert len(client.responses(pair[1].pk)) == 5 * N_CASES
    [one] = client.responses(pair[1].pk, case="case-07", repeat=2)
    assert (one["text"], one["score"]) == ("red", 0.0)


def test_a_baseline_and_a_verdict_against_it(client: Client, pair: tuple[models.RunRecord, models.RunRecord]) -> None:
    baseline, candidate = pair
    assert client.set_baseline(baseline.pk, "As shipped.")["is_current"] is True
    assert [row["run"]["id"] for row in client.baselines("colours")] == [str(baseline.pk)]
    release = client.create_release(candidate.pk, policy="lenient")
    assert (release.verdict, client.release(release.id).json) == ("no_ship", release.json)
    assert client.releases(verdict="no_ship")[0]["id"] == release.id
    assert "<b>No-ship.</b>" in release._repr_html_()


def test_a_list_is_read_to_its_last_page(client: Client, transactional_db: None) -> None:
    """201 cases are more than the server gives at a time."""
    version = build.suite(case_ids=[f"case-{number}" for number in range(201)])
    run = build.finished_run(["blue"] * 201, version=version)
    assert [row["case_index"] for row in client.cases(run.pk)] == list(range(201))
    assert client.suite("colours", version=1)["n_cases"] == 201


def test_the_same_key_makes_no_second_run(client: Client, pair: tuple[models.RunRecord, models.RunRecord]) -> None:
    asked: dict[str, Any] = {"endpoint": "local", "profile": "pinned", "repeats": 1, "key": "mine"}
    assert client.create_run("colours", **asked).id == client.create_run("colours", **asked).id
    with pytest.raises(WrongUse, match="another body"):
        client.create_run("colours", **{**asked, "repeats": 2})


def test_what_is_as_it_was_is_not_sent_again(live_server: Any, token: str, transactional_db: None) -> None:
    """A client that waits keeps the answer that it has until the server has another one."""
    run = build.finished_run()
    with RestClient(live_server.url, token) as rest:
        assert rest.run(str(run.pk)) is rest.run(str(run.pk))
        replay = str(rest.create_replay(str(run.pk), {"case": "sky", "repeat": 1}).value.id)
        waiting = rest.replay(replay)
        assert rest.replay(replay) is waiting
        lease = claim_replay(worker=build.worker("replayer"))
        assert lease is not None
        assert rest.replay(replay).value.status == "running"


def test_what_is_wrong_is_one_sentence(client: Client, live_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongUse, match=r"^There is no run 999999\.$"):
        client.run(999999)
    with Client(live_server.url, "evb_nonsense") as stranger, pytest.raises(WrongUse, match="Check EVALBOARD_TOKEN"):
        stranger.runs()
    with Client("http://127.0.0.1:9", "evb_x") as lost, pytest.raises(Unreachable, match="does not answer"):
        lost.runs()
    assert issubclass(WrongUse, EvalboardError)
    assert issubclass(Unreachable, EvalboardError)
    monkeypatch.setenv("EVALBOARD_DATA_DIR", "/nowhere")
    monkeypatch.delenv("EVALBOARD_URL", raising=False)
    with pytest.raises(WrongUse, match="No server is set"):
        Client()


def test_without_pandas_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['pandas'] = None\nfrom evalboard.client import Rows\nRows([]).to_pandas()"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "ImportError: to_pandas needs pandas: pip install 'evalboard[notebook]'"


def test_what_a_model_said_is_no_markup_of_the_notebooks() -> None:
    nasty = "<img src=x onerror=alert(1)>"
    for shown in (
        Rows([{nasty: nasty}])._repr_html_(),
        NotebookRelease(answers.release(summary=nasty, next=[answers.step(nasty)]))._repr_html_(),
        NotebookRun(answers.run(status=nasty, range=None, buckets=[], url=f"javascript:{nasty}"))._repr_html_(),
    ):
        assert "<img" not in shown
        assert "javascript" not in shown


def test_an_empty_list_is_a_table_and_a_frame_without_rows() -> None:
    assert len(Rows([]).to_pandas()) == 0
    assert "0 rows" in Rows([])._repr_html_()


def test_a_comparison_without_a_difference_says_so() -> None:
    score = ScoreCompared(baseline=None, candidate=None, difference=None)
    value = Comparison.model_construct(baseline="1", candidate="2", comparable=False, score=score)
    assert repr(NotebookComparison(Answer(value, {}))) == "<Run 2 against 1: no difference given, not comparable>"
