"""What the workers page, the board and a run's page say of a team: who works, who does not, and why."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from runs.models import RunRecord, SelfTestRecord, Shard, WorkerRecord
from runs.sweep import reconcile
from runs.work import beat, claim_shard, dispatch, fail_start, leave_alone
from tests import build
from tests.probes import ask, served

REDIS_AWAY = "Redis does not answer, so workers hear of new work late"


def text_of(response: Any) -> str:
    return " ".join(response.content.decode().split())


def put(worker: WorkerRecord, **changes: Any) -> WorkerRecord:
    WorkerRecord.objects.filter(pk=worker.pk).update(**changes)
    return worker


def test_a_working_worker_shows_its_shard_its_engine_and_its_run(stage, viewer):
    run, by = stage.start(), stage.worker()
    process = stage.engine(by)
    stage.record(stage.claim(by, process), process, n_cases=5)
    page = text_of(viewer.get("/workers/"))
    assert "1 worker: 1 at work." in page
    assert 'data-status="working"' in page
    assert f'href="/runs/{run.pk}/">run {run.pk}</a>' in page
    assert "repeat 1, cases 0–11" in page
    assert "5 of 12" in page
    assert f"process {process.pk} since" in page
    assert f'href="/runs/?bucket={process.bucket_id}"' in page
    assert process.bucket.fingerprint.label in page


@pytest.mark.parametrize(("label", "n_links"), [("7", 1), ("mine", 0)])
def test_a_worker_at_an_arm_of_an_experiment_leads_to_it(stage, viewer, label, n_links):
    stage.start(labels={"experiment": label})
    by = stage.worker()
    stage.claim(by, stage.engine(by))
    page = text_of(viewer.get("/workers/"))
    assert "repeat 1, cases 0–11" in page
    assert page.count(f'href="/lab/{label}/">experiment {label}</a>') == n_links


def test_a_worker_says_how_many_seats_its_engine_got(stage, viewer):
    stage.engine(stage.worker(), max_num_seqs=64, seats=9)
    assert "9 of 64 seats" in text_of(viewer.get("/workers/"))


def test_workers_stand_by_pool_and_those_that_need_somebody_first(stage, viewer):
    stage.worker("calm")
    put(stage.worker("mute"), seen_at=Now() - timedelta(hours=2))
    put(stage.worker("far"), pool="gpu")
    page = text_of(viewer.get("/workers/"))
    assert "3 workers in 2 pools: 2 idle, 1 silent." in page
    places = [page.index(f"<b><bdi>{name}") for name in ("mute", "calm", "far")]
    assert places == sorted(places)
    assert page.index("Pool <bdi>default") < places[0] < page.index("Pool <bdi>gpu") < places[2]
    assert "2 h ago" in page
    assert '<th scope="col" aria-sort="ascending"><a class="sort" href="?ordering=-state">State</a></th>' in page
    by_name = text_of(viewer.get("/workers/?ordering=name&part=pools"))
    places = [by_name.index(f"<b><bdi>{name}") for name in ("calm", "mute", "far")]
    assert places == sorted(places)
    assert 'hx-get="?ordering=name&amp;part=pools"' in text_of(viewer.get("/workers/?ordering=name"))


def test_a_resting_worker_says_until_when_and_why(stage, viewer):
    why = "Its engine failed 3 times in a row, last: the engine was ended by SIGKILL."
    until = put(stage.worker(), rests_until=Now() + timedelta(minutes=9), note=why, n_engine_failures=3)
    until.refresh_from_db()
    for address in ("/workers/", "/"):
        page = text_of(viewer.get(address))
        assert f"{until.rests_until:%H:%M}" in page, address
        assert why in page, address
    assert "A worker is paused." in text_of(viewer.get("/"))


def test_a_worker_that_leaves_a_run_alone_links_to_it(stage, viewer):
    run = stage.start()
    leave_alone(
        worker=stage.worker(), noun="run", key=run.pk, why="the run must stay on the serving stack that it began on."
    )
    page = text_of(viewer.get("/workers/"))
    assert 'Skips <a id="left-alone-' in page
    assert (
        f'href="/runs/{run.pk}/">run {run.pk}</a>: <bdi>the run must stay on the serving stack that it began on.'
        in page
    )


@pytest.mark.parametrize(("n", "words"), [(1, "1 write refused"), (3, "3 writes refused"), (0, "")])
def test_refused_writes_are_counted_where_there_were_any(stage, viewer, n, words):
    put(stage.worker(), n_fenced=n)
    page = text_of(viewer.get("/workers/"))
    assert (words or "refused") in page if words else "refused" not in page


def test_a_self_test_says_what_varied(stage, viewer):
    by = stage.worker()
    assert "no self-test" in text_of(viewer.get("/workers/"))
    row = {"operation": "product", "dtype": "bfloat16", "problem": None, "shape": [1, 8]}
    row |= {"first_differing_repeat": None, "largest_repeat_difference": 0.0}
    row |= {"differing_batch_sizes": [8, 16], "largest_batch_difference": 0.5}
    measured = {"device": "cuda", "steps": [row], "varying": []}
    result = {"version": 1, "kernels": {"plain": measured, "invariant": measured}}
    test = SelfTestRecord.objects.create(host="node-1", node_digest="n" * 64, result=result, is_invariant=False)
    put(by, self_test=test)
    page = text_of(viewer.get("/workers/"))
    assert f'href="#self-test-{by.pk}">what varied</a>' in page
    assert "other bits in batches of 8, 16 (by up to 5.0e-01)" in page
    SelfTestRecord.objects.filter(pk=test.pk).update(is_invariant=True)
    assert "</span> self-test passed</span>" in text_of(viewer.get("/workers/"))


def test_a_node_shows_its_certificates_and_why_one_has_expired(stage, viewer):
    by = put(stage.worker(), name="prober")
    build.process(worker=by)
    ask("determinism", parameters={"prompts": 1, "seats": 2, "passes": 1})
    done = served(lambda call: replace(call, token_ids=(1,), trace_digest="aa", batch_max=2))
    page = " ".join(text_of(viewer.get("/workers/")).split())
    assert f'certified: <a href="/probes/{done.pk}/"><bdi>local</bdi> · <bdi>pinned</bdi></a>, to 2 seats' in page
    put(by, versions={"vllm": "0.33.0"})
    page = " ".join(text_of(viewer.get("/workers/")).split())
    assert "expired: " in page
    assert "its node has changed since" in page


def test_a_pool_with_work_and_no_worker_gives_the_command(stage, viewer):
    run = stage.start()
    for address in ("/workers/", "/"):
        page = text_of(viewer.get(address))
        assert "Pool default: 6 shards wait and no worker is running." in page, address
        assert re.search("<code>(?:<bdi>)?evalboard worker --pool default(?:</bdi>)?</code>", page), address
        assert f'href="/runs/{run.pk}/"' in page, address
    assert "A pool has work and no worker" in text_of(viewer.get("/"))
    stage.worker()
    assert "no worker is running" not in text_of(viewer.get("/workers/"))
    assert "No worker" not in text_of(viewer.get("/"))


@pytest.mark.nightly
def test_redis_that_does_not_answer_is_told_where_somebody_waits_for_it(stage, viewer, settings):
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    run, by = stage.start(), stage.worker()
    assert REDIS_AWAY in text_of(viewer.get("/workers/"))
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert 'data-code="queue_delayed"' in page
    assert REDIS_AWAY in page
    stage.claim(by, stage.engine(by))
    assert REDIS_AWAY not in text_of(viewer.get(f"/runs/{run.pk}/"))  # somebody has looked


@pytest.mark.parametrize(("url", "is_said"), [("", False), ("redis://127.0.0.1:2/0", True)])
def test_only_a_team_hears_of_its_doorbell(stage, viewer, settings, monkeypatch, url, is_said):
    settings.REDIS_URL = url
    monkeypatch.setattr(dispatch, "ask", lambda: None)
    assert ("Redis answers" in text_of(viewer.get("/workers/"))) is is_said


def test_a_run_says_why_every_worker_of_its_pool_leaves_it_alone(stage, viewer):
    run = stage.start()
    for name in ("one", "two"):
        leave_alone(
            worker=stage.worker(name),
            noun="run",
            key=run.pk,
            why="the run must stay on the serving stack that it began on.",
        )
    leave_alone(worker=stage.worker("three"), noun="run", key=run.pk, why="no GPU is there.")
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert page.count("No worker of pool default takes this run.") == 1
    assert "2 workers: the run must stay on the serving stack that it began on. No GPU is there." in page
    beat(worker=WorkerRecord.objects.get(name="three"), note="")
    assert 'data-code="no_matching_worker"' not in text_of(viewer.get(f"/runs/{run.pk}/"))


@pytest.mark.nightly
def test_a_run_says_that_the_others_rest(stage, viewer):
    run = stage.start()
    put(stage.worker("one"), rests_until=Now() + timedelta(minutes=5))
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert "The worker of pool default is paused until" in page
    leave_alone(worker=stage.worker("two"), noun="run", key=run.pk, why="no GPU is there.")
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert "The others do not take this run. No GPU is there." in page


@pytest.mark.nightly
def test_a_run_says_that_it_pauses_after_a_failed_start_and_that_all_are_busy(stage, viewer):
    run, by = stage.start(), stage.worker()
    fail_start(lease=claim_shard(worker=by), reason="No room on the GPU.")
    page = text_of(viewer.get(f"/runs/{run.pk}/"))
    assert "The engine did not start. Next try" in page
    assert "back in the queue after 1 attempt, waits until" in page
    Shard.objects.filter(repeat__run=run).update(next_at=Now())
    other = stage.start()
    Shard.objects.filter(repeat__run=other, first=0).update(status=Shard.Status.RUNNING, owner=by)
    assert "(1 active, all busy with other runs)." in text_of(viewer.get(f"/runs/{run.pk}/"))


def test_a_run_shows_who_works_on_it_and_who_fell_silent(stage, viewer):
    run, one, two = stage.start(), stage.worker("one"), stage.worker("two")
    process = stage.engine(one)
    stage.record(stage.claim(one, process), process, n_cases=5)
    stage.claim(two, process)
    part = text_of(viewer.get(f"/runs/{run.pk}/?part=progress"))
    assert "2 workers" in part
    assert '<span class="keep">5 of 12</span> by <b><bdi>one</bdi></b>' in part
    put(two, seen_at=Now() - timedelta(hours=1))
    part = text_of(viewer.get(f"/runs/{run.pk}/?part=progress"))
    assert "1 worker " in part
    assert "<bdi>two</bdi></b>, which fell silent: another takes it over when its lease ends" in part


@pytest.mark.nightly
def test_the_history_of_a_run_under_way_is_sent_again_only_when_it_goes_on(stage, viewer):
    run, by = stage.start(), stage.worker("node-7")
    lease = claim_shard(worker=by)
    address, seen = f"/runs/{run.pk}/", {"part": "progress"}
    first = viewer.get(address, seen)
    assert 'id="history-lines" hx-swap-oob' in text_of(first)
    seen["told"] = first.context["told"]
    assert "history-lines" not in text_of(viewer.get(address, seen))
    Shard.objects.filter(pk=lease.id).update(lease_until=Now() - timedelta(seconds=1))
    reconcile()
    news = text_of(viewer.get(address, seen))
    assert "Repeat 1, cases 0–11, attempt 1: worker node-7 lost" in news
    again = claim_shard(worker=stage.worker("node-8"))
    assert again.attempt == 2
    assert "Repeat 1, cases 0–11: attempt 2 begun by node-8." in text_of(viewer.get(address, seen))


@pytest.mark.nightly
@pytest.mark.parametrize("asked", ["status=foo", "suite=none", "endpoint=%3Cb%3Ehere"])
def test_a_filter_for_what_is_not_there_is_left_out_and_says_so(stage, viewer, asked):
    run = stage.start()
    page = text_of(viewer.get(f"/runs/?{asked}"))
    name, _, value = asked.partition("=")
    shown = value.replace("%3C", "&lt;").replace("%3E", "&gt;")
    assert f"There is no {name} “<bdi>{shown}</bdi>”" in page
    assert f"run {run.pk}</a>" in page
    assert "There is no" not in text_of(viewer.get("/runs/?status=queued"))


@pytest.mark.nightly
def test_the_workers_page_costs_the_same_for_one_and_for_many(stage, viewer, django_assert_max_num_queries):
    for pool in range(4):
        for number in range(6):
            by = put(stage.worker(f"node-{pool}-{number}"), pool=f"pool-{pool}")
            stage.engine(by)
    for _ in range(3):
        stage.start()
    RunRecord.objects.update(status=RunRecord.Status.RUNNING)
    with django_assert_max_num_queries(9):
        assert viewer.get("/workers/?part=pools").status_code == 200
    with django_assert_max_num_queries(31):
        assert viewer.get("/").status_code == 200


def test_a_part_that_does_not_exist_is_not_found(stage, viewer):
    assert viewer.get("/workers/?part=nothing").status_code == 404
