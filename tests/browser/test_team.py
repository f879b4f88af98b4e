"""The pages of a team in a real browser: they follow what happens, keep what a reader has opened, and fit a phone."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from playwright.sync_api import expect

from runs.catalogue import create_endpoint
from runs.models import Shard, WorkerRecord
from runs.sweep import reconcile
from runs.work import claim_shard, finish_shard, leave_alone, record_outcomes
from tests.browser import looks

pytestmark = pytest.mark.browser


def put(worker: WorkerRecord, **changes: object) -> WorkerRecord:
    WorkerRecord.objects.filter(pk=worker.pk).update(**changes)
    return worker


def troubled_team(stage):
    """A run of which one shard was lost, and a worker in every state; returns the run and who works on it."""
    run, by = stage.start(), stage.worker("vm-7.example.internal-10994-8420")
    process = stage.engine(by)
    lost = claim_shard(worker=put(stage.worker("node-2-lost"), n_fenced=2))
    Shard.objects.filter(pk=lost.id).update(lease_until=Now() - timedelta(seconds=1))
    reconcile()
    stage.record(stage.claim(by, process), process, n_cases=5)
    why = "the run must stay on the serving stack that it began on."
    leave_alone(worker=stage.worker("node-3"), noun="run", key=run.pk, why=why)
    put(stage.worker("node-4"), seen_at=Now() - timedelta(minutes=4), pool="gpu")
    why = "Its engine failed 3 times in a row, last: The engine was ended by SIGKILL."
    put(stage.worker("node-5"), rests_until=Now() + timedelta(minutes=9), note=why, n_engine_failures=3, pool="gpu")
    create_endpoint(
        slug="far", model_path=run.endpoint.model_path, dtype="float32", line="paint", pool="h200-of-the-other-team"
    )
    stage.start(endpoint="far")
    return run, by, process


@pytest.mark.nightly
@pytest.mark.parametrize(looks.THEME_AND_WIDTH, looks.PHONE)
def test_a_troubled_team_fits_and_has_no_barrier(stage, watch, theme, width):
    run, _, _ = troubled_team(stage)
    watched = watch(theme=theme, width=width)
    barriers = []
    for address in ("/workers/", f"/runs/{run.pk}/", "/", "/runs/?status=foo"):
        watched.open(address)
        assert watched.overflow() == 0, address
        barriers += watched.barriers()
        watched.check()
    assert barriers == []


@pytest.mark.nightly
def test_the_workers_page_follows_its_workers_and_keeps_what_is_open(stage, watch):
    watched = watch()
    page = watched.open("/workers/")
    expect(page.get_by_text("No worker has reported yet.")).to_be_visible()
    run, by = stage.start(), stage.worker("node-1")
    row = page.locator(f"#worker-{by.pk}")
    expect(row.locator('[data-status="idle"]')).to_be_visible()
    report = page.locator("details.report")
    report.locator("summary").click()
    process = stage.engine(by)
    stage.record(stage.claim(by, process), process, n_cases=5)
    expect(row.locator('[data-status="working"]')).to_be_visible()
    expect(row).to_contain_text("5 of 12")
    link = row.get_by_role("link", name=f"run {run.pk}")
    link.focus()
    put(by, seen_at=Now() - timedelta(hours=1))
    expect(row.locator('[data-status="silent"]')).to_be_visible()
    expect(page.locator('[data-code="deserted"]')).to_contain_text("no worker serves it (1 silent)")
    expect(report).to_have_attribute("open", "")
    expect(link).to_be_focused()
    watched.check()


@pytest.mark.nightly
def test_a_command_that_came_later_can_be_copied(stage, watch):
    stage.worker()
    watched = watch(permissions=["clipboard-read", "clipboard-write"])
    page = watched.open("/workers/")
    create_endpoint(
        slug="far", model_path=str(stage.start().endpoint.model_path), dtype="float32", line="paint", pool="h200"
    )
    stage.start(endpoint="far")
    banner = page.locator('[data-code="deserted"]')
    expect(banner).to_be_visible()
    banner.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == "evalboard worker --pool h200"
    watched.check()


@pytest.mark.nightly
def test_a_run_tells_of_its_lost_worker_while_it_goes_on(stage, watch):
    run, by = stage.start(), stage.worker("node-1")
    process = stage.engine(by)
    lease = stage.claim(by, process)
    stage.record(lease, process, n_cases=5)
    watched = watch()
    page = watched.open(f"/runs/{run.pk}/")
    expect(page.locator(".under-way")).to_contain_text("repeat 1, cases 0–11: 5 of 12 by node-1")
    Shard.objects.filter(pk=lease.id).update(lease_until=Now() - timedelta(seconds=1))
    reconcile()
    history = page.locator("#history-lines")
    expect(history).to_contain_text("worker node-1 lost")
    expect(page.locator(".under-way")).to_contain_text("back in the queue after 1 attempt")
    other = stage.worker("node-2")
    second = stage.claim(other, process)
    expect(history).to_contain_text("attempt 2 begun by node-2")
    expect(page.locator(".under-way")).to_contain_text("attempt 2: 5 of 12 by node-2")
    rest = (stage.answers(1, case) for case in range(5, 12))
    record_outcomes(lease=second, process=process, outcomes=list(rest))
    finish_shard(lease=second)
    stage.serve(other, process)
    expect(page.get_by_text("73.3–76.7 points over 2 repeats.")).to_be_visible()
    watched.check()
