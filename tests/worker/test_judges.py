"""Judges: runs scored by a model in a run of its own, against scripted servers and a real engine."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from evalboard.core.trace import unpack_reasons, unpack_scores
from runs.models import Case, EndpointRecord, JudgingRecord, RepeatScore, RunRecord
from runs.run import create_run
from runs.suites import push_suite
from tests import build
from tests.own_scorers import running
from tests.scripted import Received, Reply, ScriptedServer, ok
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)

CASES = [{"id": f"case-{n}", "prompt": f"Question {n}?", "target": "Oslo", "tags": ["towns"]} for n in range(6)]
JUDGE = {
    "kind": "judge",
    "endpoint": "jury",
    "profile": "pinned",
    "template": "Is {{answer}} right for {{prompt}}? It is {{target}}.",
    "reads": {"choice": {"yes": 1, "no": 0}},
    "twice": 2,
    "anchors": 3,
    "anchor_draws": 2,
}


def say(text: str, **fields: Any) -> Reply:
    return ok(choices=[{"index": 0, "message": {"content": text}, "finish_reason": "stop"}], **fields)


def is_even(received: Received) -> Reply:
    """Answer yes to even questions and no to odd ones."""
    number = re.search(r"Question (\d+)", received.prompt)
    return say("Yes." if number and int(number[1]) % 2 == 0 else "No.")


@pytest.fixture
def servers(settings: Any) -> Iterator[tuple[ScriptedServer, ScriptedServer]]:
    """The server of the model, and that of the judge."""
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    with ScriptedServer(say("Oslo")) as model, ScriptedServer(is_even) as jury:
        build.profile()
        for slug, server in (("hosted", model), ("jury", jury)):
            named = {"slug": slug, "engine": "openai", "model_repo": f"lab/{slug}", "dtype": "", "max_model_len": None}
            EndpointRecord.objects.create(**named, base_url=server.base_url)
        yield model, jury


@pytest.fixture
def worker() -> Iterator[Runner]:
    with running() as runner:
        yield runner


def push(**judge: Any) -> None:
    push_suite(document={"slug": "towns", "scorer": {**JUDGE, **judge}, "cases": CASES})


def started(**fields: Any) -> RunRecord:
    return create_run(**{"suite": "towns", "endpoint": "hosted", "profile": "pinned", "repeats": 2, **fields})


def rows(run: RunRecord) -> list[RepeatScore]:
    own = RepeatScore.objects.filter(repeat__run=run, scorer=run.suite_version.scorer_id)
    return list(own.order_by("repeat"))


def test_a_run_ends_with_the_scores_of_its_judge(
    servers: tuple[ScriptedServer, ScriptedServer], worker: Runner
) -> None:
    push()
    run = started()
    worker.work()
    run.refresh_from_db()
    assert (run.status, [row.points for row in rows(run)]) == ("finished", [50.0, 50.0])
    assert unpack_scores(bytes(rows(run)[0].scores)).tolist() == [1.0, 0.0] * 3
    assert unpack_reasons(bytes(rows(run)[0].reasons))[:2] == ['Judged "Yes.".', 'Judged "No.".']
    judging = JudgingRecord.objects.get(run=run)
    assert judging.status == "finished"
    assert judging.judge_run is not None
    assert (judging.judge_run.status, judging.judge_run.is_judge) == ("finished", True)
    asked = Case.objects.filter(suite_version=judging.judge_run.suite_version)
    assert asked.count() == 2 * 6 + 3 * 2
    assert len({case.content["messages"][0]["content"] for case in asked}) == 6
