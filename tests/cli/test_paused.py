"""A command that waits for an external server which refuses every call says why, and until when."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from subprocess import CompletedProcess
from typing import Any

import pytest
from django.db.models.functions import Now

from runs.models import EndpointRecord, RunRecord
from runs.probes.read import probe_detail
from runs.run import run_report
from tests import build
from tests.cli.conftest import ctrl_c
from tests.nightly import few
from tests.servers import free_port
from worker.runner import Runner

Call = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def endpoint(transactional_db: None, settings: Any) -> EndpointRecord:
    """At a port where nothing listens."""
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    build.profile("pinned")
    build.profile("fast")
    build.suite()
    known = {"engine": "openai", "model_repo": "lab/paint-1b", "dtype": "", "line": "paint", "max_model_len": None}
    return EndpointRecord.objects.create(slug="hosted", base_url=f"http://127.0.0.1:{free_port()}/v1", **known)


@pytest.fixture
def work() -> Iterator[Callable[[], None]]:
    """Let a worker call the endpoint until it is paused."""
    runner = Runner(pool="default", hardware={"kind": "none"}, make_engine=lambda spec: pytest.fail("no engine"))

    def call() -> None:
        while not EndpointRecord.objects.filter(rests_until__gt=Now()).exists():
            runner.work()

    yield call
    runner.stop()
    runner.run_forever()


@pytest.fixture
def abroad(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("abroad")
@pytest.mark.parametrize(
    "arguments",
    few(
        [
            pytest.param(("endpoint", "check", "hosted", "--wait"), id="check"),
            pytest.param(("probe", "hosted", "--kind", "routing", "--set", "calls=3"), id="probe"),
            pytest.param(("run", "colours", "--endpoint", "hosted", "--profile", "fast", "--wait"), id="run"),
        ],
        1,
    ),
)
def test_a_server_that_refuses_every_call(
    evalboard: Call, endpoint: EndpointRecord, work: Callable[[], None], arguments: tuple[str, ...]
) -> None:
    done = evalboard(*arguments, meanwhile=[(", 0 of ", work), ("paused after ", ctrl_c)])
    endpoint.refresh_from_db()
    assert (done.returncode, endpoint.rests_until is None) == (130, False)
    assert endpoint.rests_until is not None
    why = f"The endpoint is paused after {endpoint.n_failures} failed calls: connection refused. Next try "
    [line] = [line for line in done.stderr.splitlines() if "is paused" in line]
    assert f"{why}{endpoint.rests_until.astimezone():%H:%M:%S} IST." in line
    assert ("Gives up its first cases" in line) == (arguments[0] == "run")
    assert endpoint.n_failures >= 5
    if arguments[0] == "run":  # REST and the page say it with their own clock
        texts = [warning.text for warning in run_report(RunRecord.objects.get().pk).warnings]
        assert f"{why}{endpoint.rests_until:%H:%M:%S} UTC." in texts
    else:
        pause = probe_detail(int(line.split()[1].rstrip(":"))).pause
        assert pause is not None
        assert (pause.reason, pause.until) == ("Connection refused.", endpoint.rests_until)


def test_an_experiment_whose_runs_call_such_a_server(evalboard: Call, endpoint: EndpointRecord) -> None:
    def pause() -> None:
        facts = {"n_failures": 7, "rest_reason": "Connection refused."}
        EndpointRecord.objects.update(rests_until=Now() + timedelta(minutes=4), **facts)

    asked = ("experiment", "variance", "colours", "--endpoint", "hosted", "--runs", "5", "--yes", "--wait")
    done = evalboard(*asked, meanwhile=[(": running, 0 of ", pause), ("paused after ", ctrl_c)])
    assert done.returncode == 130
    assert "runs. The endpoint is paused after 7 failed calls: connection refused. Next try " in done.stderr
