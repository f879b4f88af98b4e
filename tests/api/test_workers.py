"""/workers/."""

import pytest

from runs.models import Shard
from runs.work import record_self_test
from tests import build
from tests.api.conftest import Api
from tests.self_tests import result

pytestmark = pytest.mark.django_db


def test_a_worker_says_where_it_is_and_what_it_does(api: Api) -> None:
    run = build.run()
    working = build.worker(note="Decodes.")
    Shard.objects.filter(repeat__run=run, repeat__index=1).update(status=Shard.Status.RUNNING, owner=working)
    [row] = api.get("/workers/").json()["results"]
    assert (row["name"], row["host"], row["state"], row["note"]) == ("first", "here", "working", "Decodes.")
    assert row["shard"] == {"run": str(run.pk), "repeat": 1, "first": 0, "last": 2}
    assert row["seen_at"].endswith("Z")


def test_a_worker_tells_the_seats_of_its_engine(api: Api) -> None:
    engine = {"max_num_seqs": 64, "seats": 9, "max_model_len": 8192}
    build.process(worker=build.worker("seated"), manifest={"engine": engine})
    build.process(worker=build.worker("unbounded"))
    told = {row["name"]: row["seats"] for row in api.get("/workers/").json()["results"]}
    assert told == {"seated": {"asked": 64, "got": 9}, "unbounded": None}


def test_a_silent_worker_holds_nothing(api: Api) -> None:
    build.worker(seen_at="2026-01-01T00:00:00Z")
    [row] = api.get("/workers/").json()["results"]
    assert (row["state"], row["shard"]) == ("silent", None)


def test_a_worker_tells_its_node_s_self_test(api: Api) -> None:
    build.worker("untested", host="there")
    build.worker("tested")
    record_self_test(
        host="here", hardware={"kind": "cpu"}, versions={}, result=result(differing=[("plain", "product", "float32")])
    )
    told = {row["name"]: row["self_test"] for row in api.get("/workers/").json()["results"]}
    assert told["untested"] is None
    assert told["tested"]["is_invariant"] is False
    assert told["tested"]["at"].endswith("Z")
    assert told["tested"]["findings"][0] == {
        "kernels": "plain",
        "operation": "matrix product",
        "dtype": "float32",
        "is_same": False,
        "text": "other bits in batches of 3, 8 (by up to 2.5e-01)",
    }
