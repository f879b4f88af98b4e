"""Polling: 304 while nothing changed, and never once anything did."""

from collections.abc import Callable
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.catalogue import create_policy
from runs.models import EngineProcess, RepeatRecord, RunRecord, Shard, Suite
from runs.replays import claim_replay, create_replay
from runs.run import add_repeats, cancel_run, delete_run, read_facts, read_state
from runs.suites import rescore_run
from runs.work import claim_shard, end_rest, note_rest, record_self_check
from tests import build
from tests.api.conftest import Api
from tests.judged import LENIENT
from tests.nightly import few

pytestmark = pytest.mark.django_db


def poll(api: Api, run: RunRecord, tag: str = "") -> Any:
    return api.get(f"/runs/{run.pk}/", **({"If_None_Match": tag} if tag else {}))


def test_who_has_seen_it_is_told_so_without_a_body(api: Api) -> None:
    run = build.finished_run()
    first = poll(api, run)
    again = poll(api, run, first["ETag"])
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert again["ETag"] == first["ETag"]
    assert again["X-Request-Id"]
    assert poll(api, run, f'"other", {first["ETag"]}').status_code == 304
    assert poll(api, run, "*").status_code == 304
    assert poll(api, run, '"other"').json() == first.json()


def n_queries(api: Api, run: RunRecord, tag: str = "") -> int:
    with CaptureQueriesContext(connection) as found:
        poll(api, run, tag)
    return len(found)


def test_the_answer_is_not_made_for_nothing(api: Api) -> None:
    run = build.finished_run()
    made = n_queries(api, run)
    assert made - n_queries(api, run, poll(api, run)["ETag"]) >= 10


def test_while_it_moves_only_what_moves_is_read_again(api: Api) -> None:
    run = build.run(repeats=2)
    decode_some(run)
    made = n_queries(api, run)
    decode_more(run)
    assert made - n_queries(api, run) >= 10


def decode_some(run: RunRecord) -> None:
    build.decode(run, 1, ("blue", "blue"), ends=False)


def decode_more(run: RunRecord) -> None:
    Shard.objects.filter(repeat__run=run, repeat__index=1).update(n_done=3)


def decode_all(run: RunRecord) -> None:
    for repeat in (1, 2):
        build.decode(run, repeat, ("blue", "red", "blue"))


def check_again(run: RunRecord) -> None:
    record_self_check(process=EngineProcess.objects.earliest("pk"), digest="another")


def pause_endpoint(run: RunRecord) -> None:
    note_rest(endpoint_id=run.endpoint_id, reason="Connection refused.", seconds=3600, n_failures=5)


def pause_longer(run: RunRecord) -> None:
    note_rest(endpoint_id=run.endpoint_id, reason="Connection refused.", seconds=7200, n_failures=6)


def carry_policy(run: RunRecord) -> None:
    """How many points repeats resolve is said under the suite's policy."""
    policy, _ = create_policy(slug="late", title="", settings={**LENIENT, "looks": [3, 10, 20]})
    Suite.objects.update(policy=policy)


CHANGES: dict[str, tuple[Callable[[RunRecord], Any] | None, Callable[[RunRecord], Any]]] = {
    "a shard is claimed": (None, lambda run: claim_shard(worker=build.worker())),
    "responses come": (None, decode_some),
    "one more response comes": (decode_some, decode_more),
    "it ends": (None, decode_all),
    "it is cancelled": (None, lambda run: cancel_run(run_id=run.pk)),
    "repeats are added": (decode_all, lambda run: add_repeats(run_id=run.pk, n=1)),
    "it is scored again": (
        decode_all,
        lambda run: rescore_run(run_id=run.pk, scorer={"kind": "contains"}),
    ),
    "a repeat fails": (None, lambda run: RepeatRecord.objects.filter(run=run, index=1).update(status="failed")),
    "a self-check comes": (decode_all, check_again),
    "its endpoint is paused": (None, pause_endpoint),
    "its endpoint is paused again": (pause_endpoint, pause_longer),
    "its endpoint answers": (pause_endpoint, lambda run: end_rest(endpoint_id=run.endpoint_id)),
    "the suite has another policy": (decode_all, carry_policy),
}


@pytest.mark.parametrize("what", few(CHANGES, 4))
@time_machine.travel("2026-11-21T12:00:10Z", tick=False)
def test_whatever_changes_is_told(api: Api, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the clock's own part held still: it is for what follows from the clock, and must not be what tells this."""
    monkeypatch.setattr(read_state, "FRESH_SECONDS", 10**9)
    before, change = CHANGES[what]
    run = build.run(repeats=2)
    if before is not None:
        before(run)
    seen = poll(api, run)
    assert poll(api, run, seen["ETag"]).status_code == 304
    change(run)
    changed = poll(api, run, seen["ETag"])
    assert changed.status_code == 200
    assert changed["ETag"] != seen["ETag"]
    read_facts._remembered.cache_clear()
    assert poll(api, run).json() == changed.json(), "nothing of the answer was remembered from before"


@pytest.mark.nightly
def test_an_earlier_twin_that_goes_is_told(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    by = build.process()
    first, second = build.finished_run(by=by), build.finished_run(by=by)
    seen = poll(api, second)
    delete_run(run_id=first.pk)
    changed = poll(api, second, seen["ETag"])
    assert (seen.json()["twin"]["run"], changed.json()["twin"]) == (str(first.pk), None)


def test_what_follows_from_the_clock_alone_is_at_most_ten_seconds_old(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Speed, time left and who is still there; a run that has ended asks no clock."""
    waiting, ended = build.run(), build.finished_run()
    tags = [poll(api, run)["ETag"] for run in (waiting, ended)]
    monkeypatch.setattr(read_state, "FRESH_SECONDS", 1e-6)
    assert [poll(api, run, tag).status_code for run, tag in zip((waiting, ended), tags, strict=True)] == [200, 304]


def test_a_run_that_is_gone_is_not_found_whatever_was_seen(api: Api) -> None:
    run = build.finished_run()
    tag = poll(api, run)["ETag"]
    delete_run(run_id=run.pk)
    assert poll(api, run, tag).status_code == 404


def test_a_replay_is_polled_alike(api: Api) -> None:
    run = build.finished_run()
    replay = create_replay(run_id=run.pk, case_id="sky")
    address = f"/replays/{replay.pk}/"
    tag = api.get(address)["ETag"]
    assert api.get(address, If_None_Match=tag).status_code == 304
    claim_replay(worker=build.worker("replayer"))
    assert api.get(address, If_None_Match=tag).json()["status"] == "running"


def test_no_cache_keeps_an_answer_and_a_client_may_send_its_tag_back(api: Api) -> None:
    run = build.finished_run()
    tag = poll(api, run)["ETag"]
    for answer in (poll(api, run), poll(api, run, tag), api.get("/runs/"), api.get("/runs/9999/")):
        assert set(answer["Cache-Control"].split(", ")) == {"private", "no-store"}
