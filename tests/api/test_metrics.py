"""/metrics: what stands in the database, and what this server answered."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.db.models.functions import Now
from prometheus_client.parser import text_string_to_metric_families
from ruamel.yaml import YAML

from runs.models import EndpointRecord, EngineProcess, Shard
from runs.store import history
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operations.md").read_text()


def scrape(api: Api) -> dict[tuple[str, ...], float]:
    """(name, label values in the order of the label names) → value."""
    answer = api.get("/metrics")
    assert (answer.status_code, answer["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    samples = [
        sample for family in text_string_to_metric_families(answer.content.decode()) for sample in family.samples
    ]
    return {(sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value for sample in samples}


@pytest.mark.nightly
def test_an_empty_installation_has_zeros_and_no_gaps(api: Api) -> None:
    build.endpoint()
    found = scrape(api)
    assert {found["evalboard_runs", status] for status in ("queued", "running", "finished", "failed")} == {0}
    for name in ("evalboard_expired_leases", "evalboard_cases_left", "evalboard_oldest_claimable_seconds"):
        assert found[name, "default"] == 0
    assert found["evalboard_shards", "default", "queued"] == found["evalboard_fenced_writes_total",] == 0
    assert found["evalboard_data_free_bytes",] > 0
    assert ("evalboard_doorbell_up",) not in found


@pytest.mark.nightly
def test_runs_shards_and_waiting_are_counted_by_pool(api: Api) -> None:
    build.finished_run()
    build.endpoint("big", pool="gpu")
    waiting = build.run(repeats=3, on="big")
    shards = Shard.objects.filter(repeat__run=waiting).order_by("pk")
    shards.update(next_at=Now() - timedelta(seconds=100))
    shards.filter(pk=shards[0].pk).update(next_at=Now() + timedelta(seconds=100))
    Shard.objects.filter(pk=shards[1].pk).update(
        status=Shard.Status.RUNNING, lease_until=Now() - timedelta(seconds=1), n_done=2
    )
    found = scrape(api)
    assert (found["evalboard_runs", "finished"], found["evalboard_runs", "queued"]) == (1, 1)
    assert (found["evalboard_shards", "gpu", "queued"], found["evalboard_shards", "gpu", "running"]) == (2, 1)
    assert (found["evalboard_expired_leases", "gpu"], found["evalboard_expired_leases", "default"]) == (1, 0)
    assert found["evalboard_cases_left", "gpu"] == 3 + 3 + 1
    assert 99 < found["evalboard_oldest_claimable_seconds", "gpu"] < 130


@pytest.mark.nightly
def test_workers_and_what_went_wrong_are_counted(api: Api) -> None:
    build.worker("idle", n_fenced=2)
    build.worker("silent", n_fenced=1, seen_at=Now() - timedelta(hours=1))
    build.worker("gone", n_fenced=4, stopped_at=Now())
    good = build.process()
    EngineProcess.objects.filter(pk=good.pk).update(worker_id=build.worker("busy").pk)
    differing = build.process(stopped_at=Now())
    EngineProcess.objects.filter(pk=differing.pk).update(self_checks=[{"at": "", "digest": "e" * 64, "same": False}])
    history.note(build.run().pk, "worker_lost", "Lost.", level="warning")
    found = scrape(api)
    assert (found["evalboard_workers", "default", "idle"], found["evalboard_workers", "default", "silent"]) == (2, 1)
    assert ("evalboard_workers", "default", "stopped") not in found
    assert found["evalboard_fenced_writes_total",] == 7
    assert found["evalboard_engine_processes",] == 1
    assert found["evalboard_self_check_failures",] == 1
    assert found["evalboard_events_last_hour", "worker_lost", "warning"] == 1


@pytest.mark.nightly
def test_a_silent_doorbell_is_a_zero(api: Api, settings: LazySettings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/7"
    assert scrape(api)["evalboard_doorbell_up",] == 0


def test_requests_are_counted_by_route_and_status(api: Api) -> None:
    name = "evalboard_http_request_seconds_count"
    before = scrape(api)
    for run_id in (998, 999):
        api.get(f"/api/v1/runs/{run_id}/")
    api.send("BREW", "http://testserver/nothing/at/all")
    found = scrape(api)

    def more(*labels: str) -> float:
        return found[name, *labels] - before.get((name, *labels), 0)

    assert more("GET", "/api/v1/runs/<int:run_id>/", "404") == 2
    assert more("other", "none", "404") == 1
    assert more("GET", "/metrics", "200") == 1


@pytest.mark.nightly
def test_the_same_queries_serve_one_run_and_fifty(api: Api, django_assert_max_num_queries: Any) -> None:
    build.run(repeats=1)
    build.worker()
    with django_assert_max_num_queries(18):
        scrape(api)
    for number in range(49):
        build.run(repeats=1)
        build.worker(f"worker {number}")
    EndpointRecord.objects.update(pool="gpu")
    with django_assert_max_num_queries(18):
        scrape(api)


def test_every_metric_is_documented_and_no_other(api: Api, settings: LazySettings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/7"
    text = api.get("/metrics").content.decode()
    shown = set(re.findall(r"^# HELP (evalboard_\w+)", text, re.MULTILINE))
    assert len(shown) == 13
    assert set(re.findall(r"^\| `(evalboard_\w+)`", PAGE, re.MULTILINE)) == shown


def test_the_dashboard_and_the_alerts_ask_for_metrics_and_labels_that_exist(api: Api) -> None:
    """Each expression's metrics, with the labels that it filters, groups or shows by."""
    documented = dict(re.findall(r"^\| `(evalboard_\w+)` \|([^|]*)\|", PAGE, re.M))
    labels = {name: set(re.findall(r"`(\w+)`", named)) for name, named in documented.items()}
    folder = Path(__file__).resolve().parents[2] / "deploy" / "monitoring"
    rules = YAML(typ="safe").load(folder / "alerts.yml")["groups"][0]["rules"]
    panels = json.loads((folder / "dashboard.json").read_text())["panels"]
    shown = [(rule["expr"], rule["annotations"]["summary"]) for rule in rules]
    shown += [(target["expr"], target["legendFormat"]) for panel in panels for target in panel["targets"]]
    seen = set()
    for expression, text in shown:
        metrics = {re.sub("_(bucket|count|sum)$", "", name) for name in re.findall(r"evalboard_\w+", expression)}
        if not metrics:
            assert expression == 'up{job="evalboard"} == 0'
            continue
        assert metrics <= labels.keys(), expression
        known = set().union(*(labels[name] for name in metrics)) | {"le"}
        by = re.findall(r"(?:by|on) \(([\w, ]+)\)", expression)
        used = {name for group in by for name in group.split(", ")}
        used |= set(re.findall(r"[{,]\s*(\w+)\s*[=!]", expression))
        used |= set(re.findall(r"\{\{ ?(?:\$labels\.)?(\w+)", text))
        assert used <= known, expression
        seen |= metrics
    assert labels.keys() - seen == set(), "a metric that neither shows"
