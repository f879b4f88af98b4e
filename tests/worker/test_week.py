"""A week of schedules on a server of others, which is another one from the fifth day on; in the gate, half a week.

The product's clocks are real: a day passes by everything that is stored growing a day older.
"""

from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.apps import apps
from django.db.models import DateTimeField, F
from django.test import Client

from evalboard.core.profile import DEFAULT_PROFILES
from runs.baselines import set_baseline
from runs.catalogue import create_endpoint, create_profile
from runs.models import (
    AuditLineRecord,
    BaselineRecord,
    ProbeRecord,
    Rotation,
    RunRecord,
    ScheduledStart,
    ScheduleRecord,
    WorkerRecord,
)
from runs.schedules import create_schedule
from runs.suites import push_suite
from runs.sweep import reconcile
from tests import build
from tests.scripted import ScriptedServer, ok
from worker.engines.base import Engine, EngineSpec
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)

BACKEND = "X-Evalboard-Backend"


@pytest.fixture
def server(settings: Any) -> Iterator[ScriptedServer]:
    settings.ENDPOINT_HOSTS = frozenset({"127.0.0.1"})
    settings.RESPONSE_SECONDS = 30.0
    with ScriptedServer(ok(headers={BACKEND: "a"})) as started:
        yield started


def no_engine(spec: EngineSpec) -> Engine:
    raise AssertionError("no engine of ours has anything to do here")


@pytest.fixture
def runner(transactional_db: None) -> Iterator[Runner]:
    working = Runner(pool="default", hardware={"kind": "none"}, make_engine=no_engine)
    yield working
    working.stop()
    working.run_forever()  # which closes what is open, and leaves


@pytest.fixture
def person(server: ScriptedServer, transactional_db: None) -> Any:
    """Who has a nightly run and a routing probe on an endpoint at the server."""
    cases = [{"id": f"case-{n}", "prompt": f"Say {n}.", "target": "blue", "reference": n < 5} for n in range(20)]
    push_suite(document={"slug": "words", "title": "Words", "scorer": {"kind": "exact"}, "cases": cases})
    for slug in ("fast", "pinned"):
        create_profile(slug=slug, title="", settings=DEFAULT_PROFILES[slug]["settings"])
    wishes = {"rescores": True, "daily_check": True}
    create_endpoint(
        slug="hosted", engine="openai", base_url=server.base_url, model_name="lab/paint-1b", line="paint", **wishes
    )
    user = build.user()
    run = {"suite": "words", "endpoint": "hosted", "profile": "fast", "repeats": 1}
    create_schedule(slug="nightly", cron="0 3 * * *", kind="run", order=run, user=user)
    probe = {"endpoint": "hosted", "kind": "routing", "parameters": {"calls": 20}}
    create_schedule(
        slug="who-answers", cron="30 4 * * *", time_zone="Europe/Berlin", kind="probe", order=probe, user=user
    )
    return user


def a_day_passes() -> None:
    """Everything that is stored is a day older, but the worker, which lives on, and the audit trail, which stays."""
    for model in apps.get_app_config("runs").get_models():
        fields = [field.name for field in model._meta.fields if isinstance(field, DateTimeField)]
        if fields and model not in (WorkerRecord, AuditLineRecord):
            model._default_manager.update(**{name: F(name) - timedelta(days=1) for name in fields})


def sweep_and_work(runner: Runner) -> None:
    """As a worker does all day long: what is due is started, and worked on, until nothing is left."""
    open_rows = {"status__in": ("queued", "running")}
    reconcile()
    while RunRecord.objects.filter(**open_rows).exists() or ProbeRecord.objects.filter(**open_rows).exists():
        runner.work()
        reconcile()


@pytest.mark.nightly
@pytest.mark.parametrize(("n_days", "rotates_on"), [(3, 2), pytest.param(7, 5, marks=pytest.mark.nightly)])
def test_a_week_of_schedules_finds_a_rotation_and_re_scores_it(
    server: ScriptedServer, runner: Runner, person: Any, client: Client, n_days: int, rotates_on: int
) -> None:
    for day in range(1, n_days + 1):
        a_day_passes()
        if day == rotates_on:
            server.script = ok(headers={BACKEND: "b"})
        sweep_and_work(runner)
        if day == 1:
            set_baseline(suite="words", run=RunRecord.objects.get().pk, reason="It is good.", user=person)

    starts = ScheduledStart.objects.exclude(problem="", missed_since=None)
    assert not starts.exists()
    by_schedule = {each.slug: each.starts.count() for each in ScheduleRecord.objects.all()}
    assert by_schedule == {"nightly": n_days, "who-answers": n_days, "check-hosted": n_days}

    nightly = list(RunRecord.objects.filter(labels__schedule="nightly").order_by("pk"))
    rotation = Rotation.objects.get()
    assert rotation.at < nightly[rotates_on - 1].finished_at  # whichever of the night's work was the first to see it
    reference = rotation.reference_runs.get()
    assert (reference.status, reference.suite_version.suite.slug) == (RunRecord.Status.FINISHED, "words-reference")
    assert BaselineRecord.objects.get().rotation == rotation

    client.force_login(person)
    page = unescape(client.get("/endpoints/hosted/").content.decode())
    assert "rotation" in page
    assert f'<a class="keep" href="/compare/{nightly[0].pk}/{reference.pk}/">' in page
    assert page.count('<th scope="row" class="keep">') >= n_days  # of the chart's table, a day each
    assert "a run of" in page
