"""The queue: whose shard is next, how that is found, how much one person may have waiting, and what stands before."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from evalboard.core.errors import InvalidInput
from evalboard.core.profile import DEFAULT_PROFILES
from runs.catalogue import create_profile
from runs.models import Lane, RepeatRecord, RunRecord, Shard, WorkerRecord
from runs.run import add_repeats, cancel_run, create_pair, create_run, run_report
from runs.sweep import reconcile
from runs.work import claim_shard, record_pace
from runs.work.queue import PASSED_OVER, QueueFull, go_along_index, next_shard
from tests import build

Claim = Callable[..., int | None]
MANY = 100_000

# What PostgreSQL may know of the shards when a worker asks: what it happened to learn before there were many, all of
# them, and that all of them rest, which they no longer do.
BELIEFS = (
    "SELECT",
    "ANALYZE runs_shard, runs_lane",
    """
    UPDATE runs_shard SET next_at = now() + interval '1 hour'; ANALYZE runs_shard, runs_lane;
    UPDATE runs_shard SET next_at = now();
    """,
)


@pytest.fixture
def claim(worker: WorkerRecord) -> Claim:
    """Claim the next shard, and return its run."""

    def run_of_next(**changes: Any) -> int | None:
        lease = claim_shard(worker=worker, **changes)
        return None if lease is None else RepeatRecord.objects.values_list("run", flat=True).get(shards=lease.id)

    return run_of_next


def let_wait(run: RunRecord) -> None:
    """Have a run wait for longer than the patience of a lower priority."""
    Shard.objects.filter(repeat__run=run).update(next_at=Now() - timedelta(minutes=2))


def test_a_higher_priority_goes_first_whenever_it_was_asked_for(
    new_run: Callable[..., RunRecord], claim: Claim
) -> None:
    bulk, normal, release = (new_run(priority=name, repeats=1) for name in ("bulk", "normal", "release"))
    assert [claim() for _ in range(10)] == [release.pk] * 3 + [normal.pk] * 3 + [bulk.pk] * 3 + [None]


def test_people_take_turns_within_a_priority(new_run: Callable[..., RunRecord], claim: Claim) -> None:
    ada, bob, eve = (build.user(name) for name in ("ada", "bob", "eve"))
    first = new_run(user=ada)
    assert [claim(), claim()] == [first.pk] * 2
    second, third, small = new_run(user=bob, repeats=1), new_run(user=ada), new_run(user=eve, repeats=1)
    turns = [claim() for _ in range(8)]
    assert sorted(turns[:3]) == sorted([first.pk, second.pk, small.pk])
    assert turns[3:6] == turns[:3]
    assert third.pk not in turns  # ada's own runs keep their order


def test_a_lower_priority_has_one_turn_in_so_many_once_it_has_waited(
    new_run: Callable[..., RunRecord], claim: Claim
) -> None:
    bulk, normal = new_run(priority="bulk", repeats=9), new_run(priority="normal", repeats=9)
    assert [claim() for _ in range(PASSED_OVER + 2)] == [normal.pk] * (PASSED_OVER + 2)  # it has waited no minute
    let_wait(bulk)
    turns = [claim() for _ in range(2 * PASSED_OVER + 1)]
    assert [place for place, run_id in enumerate(turns) if run_id == bulk.pk] == [0, PASSED_OVER + 1]


def test_a_release_goes_before_bulk_that_is_at_work(new_run: Callable[..., RunRecord], claim: Claim) -> None:
    """However long the shards of the bulk take: its last turn is the pool's newest."""
    bulk = new_run(priority="bulk", repeats=9)
    let_wait(bulk)
    assert [claim() for _ in range(PASSED_OVER + 3)] == [bulk.pk] * (PASSED_OVER + 3)
    release = new_run(priority="release", repeats=1)
    assert claim() == release.pk


def test_a_warm_engine_goes_on_with_what_it_serves_but_for_a_higher_priority(
    new_run: Callable[..., RunRecord], claim: Claim
) -> None:
    create_profile(slug="fast", title="", settings=DEFAULT_PROFILES["fast"]["settings"])
    ada, bob = build.user("ada"), build.user("bob")
    mine, other = new_run(user=ada, repeats=3), new_run(user=bob, profile="fast", repeats=3)
    assert claim() == mine.pk
    assert [claim(warm_for=mine.pk) for _ in range(3)] == [mine.pk] * 3
    assert claim(warm_for=None) == other.pk
    assert claim(warm_for=other.pk) == other.pk
    release = new_run(user=ada, priority="release", repeats=1)
    assert claim(warm_for=other.pk) == release.pk


def test_a_lane_whose_shards_cannot_be_taken_holds_nobody_up(new_run: Callable[..., RunRecord], claim: Claim) -> None:
    ada, bob = build.user("ada"), build.user("bob")
    left, cancelled, paused = (new_run(user=ada, priority="release", repeats=1) for _ in range(3))
    cancel_run(run_id=cancelled.pk)
    Shard.objects.filter(repeat__run=paused).update(next_at=Now() + timedelta(hours=1))
    other = new_run(user=bob, priority="bulk", repeats=1)
    assert claim(left_alone=frozenset({left.pk})) == other.pk
    assert claim() == left.pk


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_workers_at_the_same_moment_never_find_an_empty_queue(
    new_run: Callable[..., RunRecord], new_worker: Callable[..., WorkerRecord]
) -> None:
    """One shard in each lane: whoever comes upon a shard that another is about to take goes on to the next lane."""
    for number in range(8):
        new_run(user=build.user(f"person-{number}"), repeats=1)
    Shard.objects.exclude(first=0).delete()
    workers = [new_worker(f"w{number}") for number in range(8)]

    def claim_one(worker: WorkerRecord) -> int | None:
        try:
            lease = claim_shard(worker=worker)
        finally:
            connection.close()
        return lease.id if lease else None

    with ThreadPoolExecutor(len(workers)) as pool:
        taken = list(pool.map(claim_one, workers))
    assert sorted(map(str, taken)) == sorted(map(str, Shard.objects.values_list("pk", flat=True)))


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


@pytest.mark.nightly
def test_a_claim_looks_at_a_few_rows_of_a_hundred_thousand(new_run: Callable[..., RunRecord], claim: Claim) -> None:
    ada, bob = build.user("ada"), build.user("bob")
    large, small = new_run(user=ada, priority="bulk", repeats=1), new_run(user=bob, priority="release", repeats=1)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO runs_shard (repeat_id, lane_id, first, last, status, attempt, n_crashes, n_failed_starts,
                                    n_done, error)
            SELECT repeat_id, lane_id, place, place, 'queued', 0, 0, 0, 0, '' FROM runs_shard shard
            JOIN runs_repeat repeat ON repeat.id = shard.repeat_id, generate_series(1001, %s) place
            WHERE repeat.run_id = %s AND shard.first = 0
            """,
            [1000 + MANY, large.pk],
        )
    for learnt in BELIEFS:
        with connection.cursor() as cursor:
            cursor.execute(learnt)
            chosen, parameters = next_shard(pool="default", left_alone=frozenset(), warm_for=large.pk)
            go_along_index()
            cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {chosen}", parameters)
            [[answer]] = cursor.fetchall()
        plan = answer if isinstance(answer, list) else json.loads(answer)
        of_shards = [node for node in nodes(plan[0]["Plan"]) if node.get("Relation Name") == "runs_shard"]
        assert {node.get("Index Name") for node in of_shards} == {"shard_in_lane"}
        assert max(node["Actual Rows"] for node in of_shards) == 1
        assert max(node["Actual Loops"] for node in of_shards) <= Lane.objects.count()
    assert claim() == small.pk


def test_runs_that_a_release_asks_for_have_its_priority(new_run: Callable[..., RunRecord], suite: str) -> None:
    order = {"suite": suite, "endpoint": "local", "profile": "pinned", "repeats": 1}
    assert new_run().priority == "normal"
    assert {run.priority for run in create_pair(baseline=order, candidate=order)} == {"release"}


def test_more_repeats_of_what_a_release_judges_have_its_priority(db: None) -> None:
    from runs.release import create_release

    runs = [build.finished_run(["blue"] * 3, ["blue"] * 3) for _ in range(2)]
    create_release(gates=[{"suite": "colours", "candidate": runs[1].pk, "baseline": runs[0].pk}])
    assert add_repeats(run_id=runs[0].pk, n=1).priority == "release"
    assert set(Shard.objects.filter(status="queued").values_list("lane__priority", flat=True)) == {"release"}


def test_a_priority_that_there_is_not_is_refused(new_run: Callable[..., RunRecord]) -> None:
    with pytest.raises(InvalidInput) as refused:
        new_run(priority="urgent")
    assert refused.value.fields == {"priority": "Must be one of: release, normal, bulk."}


def test_a_person_has_a_limit_of_what_waits_and_is_told_what_to_do(
    new_run: Callable[..., RunRecord], claim: Claim, settings: Any
) -> None:
    settings.MAX_QUEUED_RESPONSES = 100
    ada, bob = build.user("ada"), build.user("bob")
    mine = new_run(user=ada, repeats=3)
    with pytest.raises(QueueFull) as refused:
        new_run(user=ada, repeats=1)
    assert refused.value.status == 409
    assert refused.value.detail == (
        "30 responses more would make 120 in the queue of ada. The limit is 100. Wait, or cancel what you do not need. "
        f"The largest: run {mine.pk}."
    )
    with pytest.raises(QueueFull):
        add_repeats(run_id=mine.pk, n=1)
    assert RunRecord.objects.count() == 1
    assert RepeatRecord.objects.count() == 3
    new_run(user=bob, repeats=3)
    new_run(user=None, repeats=9)  # what no person asks for
    cancel_run(run_id=mine.pk)
    settings.MAX_QUEUED_RESPONSES = 90
    new_run(user=ada, repeats=3)  # just as many


@pytest.mark.django_db(transaction=True)
def test_two_requests_at_once_do_not_both_fit(new_run: Callable[..., RunRecord], settings: Any) -> None:
    settings.MAX_QUEUED_RESPONSES = 50
    ada = build.user("ada")

    def ask(_: int) -> bool:
        try:
            new_run(user=ada, repeats=1)
        except QueueFull:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(ask, range(4))) == 1


def test_what_stands_before_a_run_is_counted(
    new_run: Callable[..., RunRecord], claim: Claim, worker: WorkerRecord
) -> None:
    ada, bob = build.user("ada"), build.user("bob")
    first = new_run(user=ada, repeats=2)
    mine, theirs = new_run(user=ada, repeats=1), new_run(user=bob, repeats=9)
    bulk = new_run(user=bob, priority="bulk", repeats=1)
    ahead = run_report(mine.pk).ahead
    assert ahead is not None
    # Six of ada's first run, and bob's turns between: he has one before each of hers but the first.
    assert (ahead.n_shards, ahead.n_runs, ahead.seconds) == (12, 2, None)
    assert run_report(bulk.pk).ahead.n_shards == 9 + 27  # type: ignore[union-attr]
    claim()
    record_pace(worker=worker, n_responses=12, seconds=6.0)
    ahead = run_report(theirs.pk).ahead
    assert ahead is not None
    assert (ahead.n_shards, ahead.seconds) == (0, 0.0)
    ahead = run_report(mine.pk).ahead
    assert ahead is not None
    assert (ahead.n_shards, ahead.seconds) == (5 + 6, ahead.n_responses / 2.0)
    assert "11 shards of 2 runs are queued before it, about" in run_report(mine.pk).waiting
    assert run_report(first.pk).ahead is None  # somebody is at work on it


def test_what_comes_back_keeps_its_place(new_run: Callable[..., RunRecord], claim: Claim, worker: WorkerRecord) -> None:
    run = new_run(repeats=1)
    lease = claim_shard(worker=worker)
    assert lease is not None
    Shard.objects.filter(pk=lease.id).update(lease_until=Now())
    reconcile()
    again = claim_shard(worker=worker)
    assert again is not None
    assert (again.id, again.attempt) == (lease.id, 2)
    assert claim() == run.pk


def test_nobody_has_a_lane_too(suite: str, endpoint: str, profile: str, claim: Claim) -> None:
    run = create_run(suite=suite, endpoint=endpoint, profile=profile, repeats=1)
    create_run(suite=suite, endpoint=endpoint, profile=profile, repeats=1)
    assert Lane.objects.filter(person=None).count() == 1
    assert claim() == run.pk
