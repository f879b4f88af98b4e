"""One case tried on an endpoint before its suite is stored: by the calls that runs make, scored as runs are."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from evalboard.contract.suite import Trial
from evalboard.core.errors import InvalidInput, NotFound
from evalboard.core.suite import read_suite_text
from runs.models import EndpointRecord, Suite, TrialRecord
from runs.suites import create_trial, trial_row
from tests import build
from tests.scripted import ScriptedServer, ok, status
from tests.worker.test_remote_runs import no_engine
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)
Try = Callable[..., Trial]
SHEET = "id,prompt,target\nsum,What is 40 + 2?,42\ntown,Capital of Norway?,Oslo\n"


ANSWER = ok(choices=[{"index": 0, "message": {"content": "It is Oslo."}, "finish_reason": "stop"}])


@pytest.fixture
def server(settings: Any) -> Iterator[ScriptedServer]:
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    with ScriptedServer(ANSWER) as started:
        build.profile()
        named = {"slug": "hosted", "engine": "openai", "model_repo": "lab/paint", "dtype": "", "max_model_len": None}
        EndpointRecord.objects.create(**named, base_url=started.base_url)
        yield started


@pytest.fixture
def tried(server: ScriptedServer) -> Iterator[Callable[..., Trial]]:
    runner = Runner(pool="default", hardware={"kind": "none"}, make_engine=no_engine)

    def try_case(case: str = "town", scorer: str = "contains") -> Trial:
        read = read_suite_text(SHEET, slug="towns", scorer={"kind": scorer})
        trial = create_trial(read=read, endpoint="hosted", case=case)
        runner.work()
        return trial_row(trial.pk)

    yield try_case
    runner.stop()
    runner.run_forever()  # which closes what is open, and leaves


def test_a_case_is_sent_once_and_scored_with_its_reason(server: ScriptedServer, tried: Try) -> None:
    trial = tried()
    (call,) = server.requests
    assert (call.prompt, call.body["max_tokens"]) == ("Capital of Norway?", 256)
    assert (trial.status, trial.case, trial.answer.text, trial.answer.score) == ("finished", "town", "It is Oslo.", 1)
    wrong = tried(scorer="exact")
    assert wrong.answer.score == 0
    assert "Oslo" in wrong.answer.reason
    assert not Suite.objects.exists()


def test_a_server_that_refuses_says_why_at_once(server: ScriptedServer, tried: Try) -> None:
    server.script = status(401, words="No such key.")
    trial = tried()
    assert (trial.status, trial.answer) == ("failed", None)
    assert "No such key." in trial.error


def test_what_cannot_be_tried_is_named(tried: Try) -> None:
    with pytest.raises(InvalidInput) as refused:
        tried(case="river")
    assert refused.value.fields == {"case": "The suite has no case river."}
    with pytest.raises(InvalidInput) as refused:
        tried(scorer="number")
    assert "line 3.target" in refused.value.fields
    assert not TrialRecord.objects.exists()


def test_a_trial_of_last_week_is_forgotten(tried: Try) -> None:
    old = tried()
    TrialRecord.objects.update(created_at=Now() - timedelta(days=8))
    tried()
    with pytest.raises(NotFound, match="kept for 7 days"):
        trial_row(int(old.id))
