"""The way of somebody new: paste cases, try one, save, start a run with one press, and read its result."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from runs.models import EndpointRecord, RunRecord
from tests import build
from tests.browser.conftest import Watched
from tests.scripted import Received, Reply, ScriptedServer, ok
from tests.worker.test_remote_runs import no_engine
from worker.runner import Runner

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
MOST_SECONDS = 180
SHEET = "prompt,target\nWhat is the capital of Norway?,Oslo\nWhat is 40 + 2?,42\n"


def says_oslo(received: Received) -> Reply:
    return ok(choices=[{"index": 0, "message": {"content": "It is Oslo."}, "finish_reason": "stop"}])


@pytest.fixture
def runner(transactional_db: None, settings: Any) -> Iterator[Runner]:
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    build.profile()
    with ScriptedServer(says_oslo) as server:
        named = {"slug": "hosted", "engine": "openai", "model_repo": "lab/paint", "dtype": "", "max_model_len": None}
        EndpointRecord.objects.create(**named, base_url=server.base_url)
        working = Runner(pool="default", hardware={"kind": "none"}, make_engine=no_engine)
        yield working
        working.stop()
        working.run_forever()  # which closes what is open, and leaves


def test_a_first_suite_is_run_in_the_browser(
    watch: Callable[..., Watched], runner: Runner, record_property: Callable[[str, object], None]
) -> None:
    began = time.monotonic()
    seen = watch()
    page = seen.open("/suites/")
    page.get_by_role("link", name="New suite").click()
    page.get_by_label("Paste the cases").fill(SHEET)
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("2 cases, read as CSV.")).to_be_visible()
    page.get_by_role("button", name="Try this case").click()
    expect(page.get_by_text("row-1 was sent to hosted.")).to_be_visible()
    runner.work()
    expect(page.locator("#trial").get_by_text("Right.")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("first")
    page.get_by_role("button", name="Save the suite").click()
    expect(page.get_by_text("first v1 is stored: 2 cases.")).to_be_visible()
    page.get_by_role("button", name="Run on hosted").click()
    run = RunRecord.objects.get()
    assert (run.endpoint.slug, run.repeats.count()) == ("hosted", 5)
    runner.work()
    page.reload()
    expect(page.get_by_text("50.0").first).to_be_visible()
    record_property("seconds", round(time.monotonic() - began, 1))
    assert time.monotonic() - began < MOST_SECONDS
    seen.check()
