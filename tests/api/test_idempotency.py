"""The same request sent again makes no second run."""

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import close_old_connections, connection, connections, transaction
from django.utils import timezone

from runs.models import IdempotencyKey, RunRecord
from runs.run import cancel_run, claim_key, create_run, make_once
from runs.run.idempotency import KeyInUse
from runs.sweep import reconcile
from tests import build
from tests.api.conftest import Api
from tests.waiting import wait_until

ASKED = {"suite": "colours", "endpoint": "local", "profile": "pinned", "repeats": 2}
KEY = "ci-4711"


def ask(api: Api, key: str = KEY, **changes: Any) -> Any:
    return api.post("/runs/", {**ASKED, **changes}, Idempotency_Key=key)


@pytest.fixture
def named(db: None) -> None:
    build.suite()
    build.endpoint()
    build.profile()


pytestmark = pytest.mark.usefixtures("named")


def test_the_same_request_answers_with_the_same_run(api: Api) -> None:
    first, again = ask(api), ask(api)
    assert (first.status_code, "Idempotent-Replayed" in first) == (201, False)
    assert (again.status_code, again["Idempotent-Replayed"]) == (201, "true")
    assert (again.json()["id"], again["Location"]) == (first.json()["id"], first["Location"])
    assert RunRecord.objects.count() == 1


def test_the_same_request_for_a_pair_answers_with_the_same_pair(api: Api) -> None:
    body = {"baseline": ASKED, "candidate": {**ASKED, "labels": {"commit": "1f3a"}}}
    first, again = (api.post("/runs/pairs/", body, Idempotency_Key=KEY) for _ in range(2))
    assert (first.status_code, "Idempotent-Replayed" in first) == (201, False)
    assert (again.status_code, again["Idempotent-Replayed"], again.json()) == (201, "true", first.json())
    assert RunRecord.objects.count() == 2
    made = [first.json()[side]["id"] for side in ("baseline", "candidate")]
    refused = ask(api)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert f"made run {made[0]} and run {made[1]};" in refused.json()["detail"]


@pytest.mark.nightly
@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_a_key_is_forgotten_with_either_run_of_its_pair(api: Api, side: str) -> None:
    body = {"baseline": ASKED, "candidate": ASKED}
    first = api.post("/runs/pairs/", body, Idempotency_Key=KEY).json()
    cancel_run(run_id=int(first[side]["id"]))
    api.delete(f"/runs/{first[side]['id']}/")
    again = api.post("/runs/pairs/", body, Idempotency_Key=KEY)
    assert "Idempotent-Replayed" not in again
    assert again.json()[side]["id"] != first[side]["id"]


def test_a_run_is_answered_as_it_is_by_now(api: Api) -> None:
    cancel_run(run_id=int(ask(api).json()["id"]))
    assert ask(api).json()["status"] == "cancelled"


def test_the_order_of_fields_makes_no_other_request(api: Api) -> None:
    ask(api)
    turned = json.dumps(dict(reversed(ASKED.items())), indent=2)
    assert api.send("POST", "/runs/", turned, Idempotency_Key=KEY)["Idempotent-Replayed"] == "true"


def test_another_body_under_the_key_is_refused(api: Api) -> None:
    made = ask(api).json()["id"]
    refused = ask(api, repeats=3)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert f"run {made}" in refused.json()["detail"]
    assert RunRecord.objects.count() == 1


def test_another_key_makes_another_run(api: Api) -> None:
    assert ask(api).json()["id"] != ask(api, key="ci-4712").json()["id"]


def test_a_key_belongs_to_its_person(api: Api) -> None:
    ask(api)
    other = Api(build.token(build.user("eve"), "run"))
    assert "Idempotent-Replayed" not in ask(other)
    assert RunRecord.objects.count() == 2


def test_a_refused_request_keeps_no_key(api: Api) -> None:
    assert ask(api, repeats=0).status_code == 400
    assert ask(api, suite="nothing").status_code == 404
    assert not IdempotencyKey.objects.exists()
    assert "Idempotent-Replayed" not in ask(api)


@pytest.mark.parametrize("key", ["", "a b", "a" * 256, "schlüssel"])
def test_a_key_that_is_none_is_refused(api: Api, key: str) -> None:
    refused = ask(api, key=key)
    assert (refused.status_code, refused.json()["fields"].keys()) == (400, {"Idempotency-Key"})


@pytest.mark.nightly
def test_a_key_is_forgotten_with_its_run(api: Api) -> None:
    first = ask(api).json()["id"]
    cancel_run(run_id=int(first))
    api.delete(f"/runs/{first}/")
    assert ask(api).json()["id"] != first


@pytest.mark.nightly
def test_a_key_is_forgotten_after_a_day(api: Api) -> None:
    first = ask(api).json()["id"]
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=23, minutes=59))
    reconcile()
    assert ask(api).json()["id"] == first
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=24, minutes=1))
    assert ask(api, repeats=3).json()["id"] != first, "also where no sweep came by"
    IdempotencyKey.objects.update(created_at=timezone.now() - timedelta(hours=24, minutes=1))
    reconcile()
    assert not IdempotencyKey.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_a_request_that_is_still_at_work(api: Api) -> None:
    person = build.user()
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        make = partial(make_once, KEY, ASKED, person, lambda: (create_run(**ASKED, user=person),))
        make()
        other = pool.submit(in_thread, make)
        with pytest.raises(KeyInUse):
            other.result(timeout=60)


@pytest.mark.django_db(transaction=True)
def test_a_form_sent_twice_at_once_leads_to_what_the_first_made() -> None:
    person = build.user()

    def claim() -> str:
        with claim_key("form-1", [], person, waits=True) as known:
            return known.address

    with ThreadPoolExecutor(1) as pool:
        with claim_key("form-1", [], person, waits=True) as known:
            second = pool.submit(in_thread, claim)
            wait_until(_one_waits)
            known.address = "/probes/1/"
        assert second.result(timeout=60) == "/probes/1/"


def _one_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return bool(cursor.fetchone()[0])


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_twenty_at_once_make_one_run() -> None:
    caller = Api(build.token(build.user("root", "admin"), "run"))
    # The headroom of one connection for each thread is PostgreSQL's default of 100.
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: in_thread(lambda: ask(caller)), range(20)))
    seen = Counter(answer.status_code for answer in answers)
    assert seen.keys() <= {201, 409}, [answer.json() for answer in answers]
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"request_in_flight"}
    [run] = RunRecord.objects.all()
    assert {answer.json()["id"] for answer in answers if answer.status_code == 201} == {str(run.pk)}
    assert sum("Idempotent-Replayed" not in answer for answer in answers if answer.status_code == 201) == 1
    assert ask(caller, repeats=3).status_code == 422


def in_thread(step: Any) -> Any:
    """Run a step in this thread, and leave no connection behind."""
    close_old_connections()
    try:
        return step()
    finally:
        connections.close_all()


def test_the_doorbell_rings_only_once_the_key_is_stored(api: Api, django_capture_on_commit_callbacks: Any) -> None:
    with django_capture_on_commit_callbacks() as rings:
        ask(api)
        ask(api)
    assert len(rings) == 1
    assert not connection.needs_rollback
