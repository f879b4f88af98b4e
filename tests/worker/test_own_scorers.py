"""Teams' own scorers: programs and packages that a worker runs, and what runs and imports make of them."""

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evalboard.core.trace import unpack_reasons, unpack_scores
from runs.models import EndpointRecord, RepeatScore, RunRecord, ScoringRecord
from runs.run import create_run
from runs.suites import push_suite
from tests import build
from tests.scripted import ScriptedServer, ok
from tests.worker.test_remote_runs import no_engine
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)
ANSWER = ok(choices=[{"index": 0, "message": {"content": " oslo"}, "finish_reason": "stop"}])
CASES = [{"id": f"case-{n}", "prompt": f"Question {n}?", "target": "Oslo"} for n in range(3)]
READ = "import json, sys\nfor line in sys.stdin:\n    asked = json.loads(line)\n"
FOLDED = """
text, target = asked["response"]["text"], asked["case"]["target"]
reply = {"id": asked["id"], "value": float(text.strip().lower() == target.lower()), "reason": f"read {text!r}"}
print(json.dumps(reply), flush=True)
"""


@pytest.fixture
def server(settings: Any) -> Iterator[ScriptedServer]:
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    with ScriptedServer(ANSWER) as started:
        build.profile()
        named = {"slug": "hosted", "engine": "openai", "model_repo": "lab/paint", "dtype": "", "max_model_len": None}
        EndpointRecord.objects.create(**named, base_url=started.base_url)
        yield started


@pytest.fixture
def programs(settings: Any, tmp_path: Path) -> Callable[..., Path]:
    """Write a program into the worker's folder of scorers. body: what it does with each line that is asked."""
    settings.SCORERS_DIR = tmp_path / "scorers"
    settings.SCORERS_DIR.mkdir()

    def write(name: str, body: str) -> Path:
        path = settings.SCORERS_DIR / name
        path.write_text(f"#!{sys.executable}\n{READ}{textwrap.indent(body, '    ')}")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def worker() -> Iterator[Callable[[], Runner]]:
    started: list[Runner] = []

    def start() -> Runner:
        started.append(Runner(pool="default", hardware={"kind": "none"}, make_engine=no_engine))
        return started[-1]

    yield start
    for each in started:
        each.stop()
        each.run_forever()


def push(**scorer: Any) -> None:
    push_suite(document={"slug": "towns", "scorer": {"kind": "command", "name": "folded", **scorer}, "cases": CASES})


def started(**fields: Any) -> RunRecord:
    return create_run(suite="towns", endpoint="hosted", profile="pinned", repeats=2, **fields)


def points(run: RunRecord) -> list[float | None]:
    own = RepeatScore.objects.filter(repeat__run=run, scorer=run.suite_version.scorer_id)
    return list(own.order_by("repeat").values_list("points", flat=True))


def test_a_run_ends_with_the_scores_of_a_teams_program(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    programs("folded", FOLDED)
    here = worker()
    push()
    run = started()
    here.work()
    run.refresh_from_db()
    assert (run.status, points(run)) == ("finished", [100.0, 100.0])
    assert set(ScoringRecord.objects.values_list("status", "n_done")) == {("finished", 3)}


def test_a_response_that_the_scorer_cannot_score_is_unscored_in_its_words(
    server: ScriptedServer, programs: Callable[..., Path], worker: Callable[[], Runner]
) -> None:
    programs("folded", 'if asked["case"]["id"] == "case-1":\n    raise ValueError("no digits")\n' + FOLDED)
    here = worker()
    push()
    run = started()
    here.work()
    run.refresh_from_db()
    assert run.status == "finished"
    (first, _) = RepeatScore.objects.filter(repeat__run=run).order_by("repeat")
    assert unpack_scores(bytes(first.scores))[[0, 2]].tolist() == [1.0, 1.0]
    reason = unpack_reasons(bytes(first.reasons))[1]
    assert reason == "Unscored: The scorer folded ended. It wrote: ValueError: no digits"
