"""Requests that meet at one run: each is answered as if it had come alone, before or after the other."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection, connections, transaction

from runs.models import RepeatScore, RunRecord, Shard
from runs.run import delete_run, runs
from runs.suites import rescore_run
from runs.sweep import reconcile
from tests import build
from tests.api.conftest import Api

SCORER = {"kind": "contains"}


@pytest.fixture
def beside() -> Any:
    """Start a step in another thread, and come back once its connection waits for a lock."""
    with ThreadPoolExecutor(1) as pool:

        def start(step: Callable[[], Any]) -> Future[Any]:
            backend: list[int] = []
            known = threading.Event()

            def in_thread() -> Any:
                try:
                    with connection.cursor() as cursor:
                        cursor.execute("SELECT pg_backend_pid()")
                        backend.append(cursor.fetchone()[0])
                    known.set()
                    return step()
                finally:
                    connections.close_all()

            future = pool.submit(in_thread)
            assert known.wait(10)
            while not waits_for_lock(backend[0]):
                assert not future.done(), "it did not wait"
            return future

        yield start


def waits_for_lock(backend: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT cardinality(pg_blocking_pids(%s)) > 0", [backend])
        return bool(cursor.fetchone()[0])


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_a_run_deleted_while_it_is_scored_again_goes_with_its_new_scores(api: Api, beside: Any) -> None:
    run = build.finished_run()
    with transaction.atomic():
        rescore_run(run_id=run.pk, scorer=SCORER)
        deletion = beside(lambda: api.delete(f"/runs/{run.pk}/"))
    assert deletion.result(timeout=60).status_code == 204
    assert not RunRecord.objects.exists()
    assert not RepeatScore.objects.exists()


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_a_run_to_be_scored_again_that_is_deleted_meanwhile_is_not_there(api: Api, beside: Any) -> None:
    run = build.finished_run()
    with transaction.atomic():
        delete_run(run_id=run.pk)
        rescoring = beside(lambda: api.post(f"/runs/{run.pk}/rescore/", {"scorer": SCORER}))
    answer = rescoring.result(timeout=60)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert not RepeatScore.objects.exists()


@pytest.mark.nightly
@pytest.mark.django_db
def test_cancelling_what_stored_much_leaves_the_scoring_to_the_sweep(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever cancels does not wait for scores; what has nothing to score ends at once."""
    monkeypatch.setattr(runs, "SCORED_AT_ONCE", 2)
    run = build.run(repeats=2)
    build.decode(run, 1, ("blue", "red", "red"), ends=False)
    Shard.objects.filter(repeat__run=run, repeat__index=1).update(status=Shard.Status.FINISHED)
    body = api.post(f"/runs/{run.pk}/cancel/").json()
    assert (body["status"], [line["status"] for line in body["repeats"]]) == ("running", ["running", "cancelled"])
    assert not RepeatScore.objects.filter(repeat__run=run, repeat__index=1).exists()
    reconcile()
    body = api.get(f"/runs/{run.pk}/").json()
    assert (body["status"], [line["status"] for line in body["repeats"]]) == ("cancelled", ["finished", "cancelled"])
    assert body["repeats"][0]["score"] == pytest.approx(100 / 3)
