"""/workers/."""

import pytest

from runs.models import Shard
from tests import build
from tests.api.conftest import Api

pytestmark = pytest.mark.django_db


def test_a_worker_says_where_it_is_and_what_it_does(api: Api) -> None:
    run = build.run()
    working = build.worker(note="Decodes.")
    Shard.objects.filter(repeat__run=run, repeat__index=1).update(status=Shard.Status.RUNNING, owner=working)
    [row] = api.get("/workers/").json()["results"]
    assert (row["name"], row["host"], row["state"], row["note"]) == ("first", "here", "working", "Decodes.")
    assert row["shard"] == {"run": str(run.pk), "repeat": 1, "first": 0, "last": 2}
    assert row["seen_at"].endswith("Z")


def test_a_silent_worker_holds_nothing(api: Api) -> None:
    build.worker(seen_at="2026-01-01T00:00:00Z")
    [row] = api.get("/workers/").json()["results"]
    assert (row["state"], row["shard"]) == ("silent", None)
