"""What breaks on a server of others, to the end of the run: nothing is lost, nothing is doubled, no secret is told."""

# ruff: noqa: F811  fixtures of another module

import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import DatabaseError, connection
from django.db.models import Sum
from django.db.models.functions import Now
from django.test import Client

from runs.models import CallSlot, EndpointRecord, EngineProcess, Event, ResponseRecord, RunRecord, Shard, WorkerRecord
from runs.probes import create_probe
from runs.run import run_report
from runs.work import RESTS_BEFORE_GIVING_UP, CallLimits
from tests import build
from tests.nightly import nightly
from tests.scripted import Received, Reply, ScriptedServer, flood, ok, status, trickle
from tests.waiting import wait_until
from tests.worker.test_remote_runs import (  # noqa: F401
    by,
    endpoint,
    new_run,
    new_runner,
    number,
    runner,
    server,
    worked,
)
from worker.runner import Runner

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "sk-0123456789abcdef0123456789abcdef"
NewRun = Callable[..., RunRecord]


def is_whole(run: RunRecord, n: int) -> bool:
    """Whether each case has one response, and no shard counts more or fewer."""
    indexes = ResponseRecord.objects.filter(repeat__run=run).order_by("case_index").values_list("case_index", flat=True)
    n_done = Shard.objects.filter(repeat__run=run).aggregate(n=Sum("n_done"))["n"]
    return list(indexes) == list(range(n)) and n_done == n


def missing(run: RunRecord) -> dict[int, str]:
    rows = ResponseRecord.objects.filter(repeat__run=run).exclude(error_code="")
    return dict(rows.values_list("case_index", "error_code"))


def failing(at: int, reply: Reply) -> Callable[[Received], Reply]:
    """A server that fails at one case."""
    return lambda received: reply if number(received) == at else by("a")


def awake(of: EndpointRecord) -> None:
    """The endpoint has rested."""
    EndpointRecord.objects.filter(pk=of.pk).update(rests_until=Now() - timedelta(seconds=1))
    Shard.objects.update(next_at=Now() - timedelta(seconds=1))


@pytest.mark.parametrize("under", ["fast", *nightly(["pinned"])])
def test_an_outage_leaves_no_case_missing(
    server: ScriptedServer, new_run: NewRun, runner: Runner, endpoint: EndpointRecord, under: str
) -> None:
    run = new_run(24, under=under)
    server.script = status(503, {"Retry-After": "0"})
    for _ in range(3):  # it is still away when it is called again
        assert runner.claim_and_run()
        assert not ResponseRecord.objects.filter(repeat__run=run).exists()
        awake(endpoint)
    server.script = by("a")
    assert worked(runner, run).status == RunRecord.Status.FINISHED
    assert is_whole(run, 24)
    assert set(Shard.objects.values_list("n_rests", flat=True)) == {0}


@pytest.mark.nightly
def test_an_outage_without_end_ends_the_run_incomplete(
    server: ScriptedServer, new_run: NewRun, runner: Runner, endpoint: EndpointRecord
) -> None:
    run = new_run(12, under="pinned")
    server.script = lambda received: by("a") if received.number <= 4 else status(503, words="Down.")
    for _ in range(RESTS_BEFORE_GIVING_UP):
        awake(endpoint)
        assert runner.claim_and_run()
    run.refresh_from_db()
    assert run.status == RunRecord.Status.INCOMPLETE
    assert is_whole(run, 12)
    assert set(missing(run).values()) == {"call_failed"}
    assert len(missing(run)) == 8
    detail = ResponseRecord.objects.filter(error_code="call_failed").values_list("error_detail", flat=True)[0]
    assert detail.startswith(f"The endpoint rested {RESTS_BEFORE_GIVING_UP} times and answered no call between.")


def test_cases_that_a_server_fails_at_are_no_outage(
    server: ScriptedServer, new_run: NewRun, runner: Runner, endpoint: EndpointRecord
) -> None:
    """Some side by side look like one; at the start another case goes first after each rest, later it is known."""
    run = new_run(12, under="pinned")
    server.script = lambda received: status(500) if number(received) in (0, 1, 8, 9, 10, 11) else by("a")
    n_rests = 0
    while runner.claim_and_run():
        n_rests += 1
        awake(endpoint)
    run.refresh_from_db()
    assert n_rests <= 4
    assert run.status == RunRecord.Status.INCOMPLETE
    assert is_whole(run, 12)
    assert missing(run) == dict.fromkeys((0, 1, 8, 9, 10, 11), "call_failed")


@pytest.mark.nightly
def test_a_failed_call_keeps_what_it_knew_and_the_page_and_rest_show_it(
    server: ScriptedServer, new_run: NewRun, runner: Runner, client: Client
) -> None:
    told = {"X-Request-Id": "req-7", "X-Evalboard-Backend": "bf16-b", "Retry-After": "0"}
    server.script = failing(3, status(503, told))
    run = worked(runner, new_run(12))
    assert missing(run) == {3: "call_failed"}
    person = build.user()
    client.force_login(person)
    page = client.get(f"/runs/{run.pk}/repeats/1/cases/case-3/").content.decode()
    for words in ("req-7", "bf16-b", "503"):
        assert words in page
    headers = {"Authorization": f"Bearer {build.token(person)}"}
    answer = Client().get(f"/api/v1/runs/{run.pk}/responses/?case=case-3", headers=headers).json()
    (response,) = answer["results"]
    facts = response["provenance"]
    assert (response["error"]["code"], facts["http_status"], facts["tries"]) == ("call_failed", 503, 4)
    assert (facts["request_id_in_header"], facts["backend"]) == ("req-7", "bf16-b")
    assert facts["called_at"] <= facts["answered_at"]


@pytest.mark.nightly
def test_a_body_that_trickles_past_the_deadline_is_missing_and_the_rest_is_there(
    server: ScriptedServer, new_run: NewRun, runner: Runner, settings: Any
) -> None:
    settings.RESPONSE_SECONDS = 1.5
    server.script = failing(5, trickle())
    run = worked(runner, new_run(12))
    assert (run.status, missing(run)) == (RunRecord.Status.INCOMPLETE, {5: "timeout"})
    assert is_whole(run, 12)


@pytest.mark.nightly
def test_an_answer_without_length_that_floods_is_cut_off_and_the_rest_is_there(
    server: ScriptedServer, new_run: NewRun, runner: Runner
) -> None:
    server.script = failing(5, flood())
    run = worked(runner, new_run(12))
    assert (run.status, missing(run)) == (RunRecord.Status.INCOMPLETE, {5: "too_large"})
    assert is_whole(run, 12)
    assert ResponseRecord.objects.get(case_index=5).call["status"] == 200


@pytest.mark.nightly
@pytest.mark.parametrize("hours", [1, *nightly([-1])])
def test_a_worker_whose_clock_is_off_calls_as_ever(
    server: ScriptedServer, new_run: NewRun, runner: Runner, hours: int
) -> None:
    run = new_run(12)
    tries = {"left": 2}

    def busy_at_first(received: Received) -> Reply:
        """Until a moment by the server's own clock, which is right: its `Date` says so."""
        if tries["left"] and number(received) == 4:
            tries["left"] -= 1
            now = datetime.now(UTC) - timedelta(hours=hours)
            at = {"Date": _http(now), "Retry-After": _http(now + timedelta(seconds=1))}
            return status(429, at)
        return by("a")

    server.script = busy_at_first
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=hours), tick=True):
        worked(runner, run)
    assert (run.status, missing(run)) == (RunRecord.Status.FINISHED, {})
    assert is_whole(run, 12)
    response = ResponseRecord.objects.get(case_index=4)
    assert response.call["worker_ahead"] == pytest.approx(hours * 3600, abs=60)
    run.refresh_from_db()
    started, ended = (datetime.fromisoformat(response.call[name]) for name in ("started_at", "ended_at"))
    assert run.started_at is not None
    assert run.finished_at is not None
    assert run.started_at <= started <= ended <= response.recorded_at <= run.finished_at  # all by one clock
    assert response.call["clock_ahead"] is None  # the last answer of that case says no date
    (process,) = EngineProcess.objects.filter(repeats__run=run)
    assert run.created_at <= process.started_at <= run.finished_at


@pytest.mark.nightly
def test_calls_of_workers_whose_clocks_differ_are_held_against_each_other_by_one(
    server: ScriptedServer, new_run: NewRun, new_runner: Callable[..., Runner]
) -> None:
    """One works after the other; by their own clocks the first one's calls were an hour later."""
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=1), tick=True):
        first = worked(new_runner(), new_run(6))
    runs = first, worked(new_runner(), new_run(6))
    calls = [ResponseRecord.objects.filter(repeat__run=run).values_list("call", flat=True) for run in runs]
    earlier = max(call["ended_at"] for call in calls[0])
    assert earlier <= min(call["started_at"] for call in calls[1])
    assert all(call["worker_ahead"] > 3000 for call in calls[0])
    assert all(abs(call["worker_ahead"]) < 60 for call in calls[1])


@pytest.mark.nightly
def test_a_wait_until_a_moment_is_read_right_by_a_worker_whose_clock_is_off(
    server: ScriptedServer, new_run: NewRun, runner: Runner
) -> None:
    """The server says until when, and not what its clock is."""
    run, tries = new_run(12), {"left": 1}

    def script(received: Received) -> Reply:
        if tries["left"] and number(received) == 4:
            tries["left"] -= 1
            return status(429, {"Retry-After": _http(datetime.now(UTC) - timedelta(hours=1) + timedelta(seconds=2))})
        return by("a")

    server.script = script
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=1), tick=True):
        worked(runner, run)
    assert (run.status, missing(run)) == (RunRecord.Status.FINISHED, {})
    assert is_whole(run, 12)


@pytest.mark.nightly
def test_a_probe_that_a_worker_with_a_clock_an_hour_behind_starts_is_dated_by_the_databases(
    endpoint: EndpointRecord,
) -> None:
    """Whether it began before the newest rotation is told by one clock."""
    build.profile("pinned")
    with time_machine.travel(datetime.now(UTC) - timedelta(hours=1), tick=True):
        probe = create_probe(endpoint=endpoint.slug, kind="routing", parameters={"calls": 2})
    assert abs((probe.created_at - datetime.now(UTC)).total_seconds()) < 60


@pytest.mark.nightly
@pytest.mark.parametrize("days", [1, *nightly([-1])])
def test_a_server_whose_clock_is_off_is_waited_for_by_its_own(
    server: ScriptedServer, new_run: NewRun, runner: Runner, days: int
) -> None:
    run, tries = new_run(12), {"left": 1}

    def script(received: Received) -> Reply:
        if tries["left"] and number(received) == 4:
            tries["left"] -= 1
            now = datetime.now(UTC) + timedelta(days=days)
            return status(429, {"Date": _http(now), "Retry-After": _http(now + timedelta(seconds=1))})
        return by("a")

    server.script = script
    assert worked(runner, run).status == RunRecord.Status.FINISHED
    assert is_whole(run, 12)
    assert ResponseRecord.objects.get(case_index=4).call["n_tries"] == 2


def _http(at: datetime) -> str:
    return at.strftime("%a, %d %b %Y %H:%M:%S GMT")


def test_a_long_wish_is_waited_for_in_the_queue_and_costs_nothing(
    server: ScriptedServer, new_run: NewRun, runner: Runner, endpoint: EndpointRecord
) -> None:
    run = new_run(12, under="pinned")
    server.script = lambda received: by("a") if received.number <= 5 else status(429, {"Retry-After": "300"})
    assert runner.claim_and_run()
    endpoint.refresh_from_db()
    assert endpoint.rests_until is not None
    seconds = (endpoint.rests_until - datetime.now(UTC)).total_seconds()
    assert 240 < seconds <= 300
    assert "It asks to be left alone for 300 seconds." in endpoint.rest_reason
    assert not runner.claim_and_run()
    assert ResponseRecord.objects.filter(repeat__run=run).count() == 5
    server.script = by("a")
    awake(endpoint)
    assert worked(runner, run).status == RunRecord.Status.FINISHED
    assert is_whole(run, 12)
    assert Shard.objects.get().n_crashes == 0


def at_once(*runners: Runner, until: RunRecord) -> None:
    """Let workers work side by side, each in a thread, until a run has ended."""

    def work(each: Runner) -> None:
        try:
            worked(each, RunRecord.objects.get(pk=until.pk))
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=[each]) for each in runners]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.nightly
@pytest.mark.parametrize(("under", "limit"), [("fast", 3), *nightly([("pinned", 1)])])
def test_two_workers_keep_to_one_limit_of_calls_in_flight(
    server: ScriptedServer,
    new_run: NewRun,
    new_runner: Callable[..., Runner],
    endpoint: EndpointRecord,
    under: str,
    limit: int,
) -> None:
    EndpointRecord.objects.filter(pk=endpoint.pk).update(concurrency=3)
    server.script = ok(seconds=0.05, headers={"X-Evalboard-Backend": "a"})
    run = new_run(24, under=under, repeats=2)
    at_once(new_runner(), new_runner(), until=run)
    run.refresh_from_db()
    assert run.status == RunRecord.Status.FINISHED
    assert server.most_at_once == limit
    served = ResponseRecord.objects.filter(repeat__run=run).values_list("engine_process__worker", flat=True).distinct()
    assert len(served) == 2
    assert ResponseRecord.objects.filter(repeat__run=run).count() == 48
    assert not CallSlot.objects.exclude(worker=None).exists()


@pytest.mark.nightly
def test_two_workers_keep_to_one_number_of_calls_a_minute(
    server: ScriptedServer, new_run: NewRun, new_runner: Callable[..., Runner], endpoint: EndpointRecord
) -> None:
    EndpointRecord.objects.filter(pk=endpoint.pk).update(calls_per_minute=600)
    at: list[float] = []
    server.script = lambda received: at.append(time.monotonic()) or by("a")  # type: ignore[func-returns-value]
    run = new_run(20, repeats=2)
    at_once(new_runner(), new_runner(), until=run)
    assert len(at) == 40
    assert max(at) - min(at) >= 39 * 0.1 - 0.5
    assert is_whole(run, 20) or ResponseRecord.objects.filter(repeat__run=run).count() == 40


@pytest.mark.nightly
def test_what_one_worker_is_told_to_wait_the_others_wait_too(
    server: ScriptedServer, new_run: NewRun, runner: Runner, endpoint: EndpointRecord
) -> None:
    other = CallLimits(endpoint, worker=build.worker("other"), is_alone=False)
    waits: list[float] = []

    def script(received: Received) -> Reply:
        if received.number == 1:
            return status(429, {"Retry-After": "4"})
        if received.number == 2:
            waits.append(time.monotonic())
        return by("a")

    server.script = script
    run, began = new_run(4, under="pinned"), time.monotonic()

    def look() -> None:
        wait_until(lambda: server.requests)
        while not (seconds := other.turn()):
            time.sleep(0.01)
        waits.append(seconds)
        other.close()

    looking = threading.Thread(target=look)
    looking.start()
    assert worked(runner, run).status == RunRecord.Status.FINISHED
    looking.join()
    assert 0 < min(waits) <= 4
    assert max(waits) - began >= 4


def test_limits_go_on_after_their_connection_broke(endpoint: EndpointRecord) -> None:
    limits = CallLimits(endpoint, worker=build.worker("one"), is_alone=False)
    assert limits.take(seconds=60) is not None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s)", [limits._connection.connection.info.backend_pid])
    with pytest.raises(DatabaseError):
        limits.take(seconds=60)
    assert limits.take(seconds=60) is not None
    limits.close()


def test_slots_of_a_worker_that_is_gone_are_free(endpoint: EndpointRecord) -> None:
    EndpointRecord.objects.filter(pk=endpoint.pk).update(concurrency=2)
    endpoint.refresh_from_db()
    one, other = (build.worker(name) for name in ("one", "other"))
    theirs, ours = (CallLimits(endpoint, worker=each, is_alone=False) for each in (one, other))
    assert {theirs.take(seconds=600), theirs.take(seconds=600)} == set(CallSlot.objects.values_list("pk", flat=True))
    assert ours.take(seconds=600) is None
    WorkerRecord.objects.filter(pk=one.pk).update(seen_at=Now() - timedelta(hours=1))
    first = ours.take(seconds=600)
    assert first is not None
    theirs.give_back(first)  # which is no longer theirs
    assert CallSlot.objects.get(pk=first).worker == other
    second = ours.take(seconds=600)
    assert second is not None
    ours.give_back(first, second)
    assert ours.take(seconds=600) is not None
    theirs.close()
    ours.close()


@pytest.mark.parametrize("how", ["failed", *nightly(["refused", "answered"])])
def test_no_log_row_or_event_holds_the_key_that_a_server_repeats(
    server: ScriptedServer,
    new_run: NewRun,
    runner: Runner,
    endpoint: EndpointRecord,
    how: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("PAINT_API_KEY", SECRET)
    EndpointRecord.objects.filter(pk=endpoint.pk).update(auth="PAINT_API_KEY")
    caplog.set_level("DEBUG")

    def script(received: Received) -> Reply:
        key = received.headers["authorization"].removeprefix("Bearer ")
        told = {"X-Request-Id": key, "X-Evalboard-Backend": key, "Retry-After": "0"}
        if how == "answered" or number(received) != 3:
            return ok(headers={"X-Evalboard-Backend": "a"})
        return status(503 if how == "failed" else 400, told, words=f"Not with {key}.", code=key)

    server.script = script
    run = worked(runner, new_run(12))
    assert is_whole(run, 12)
    assert SECRET in server.requests[0].headers["authorization"]
    rows = [
        *ResponseRecord.objects.values_list("error_detail", "call", "request_id", "text"),
        *Event.objects.values_list("text", "what"),
        *EndpointRecord.objects.values_list("rest_reason"),
    ]
    assert SECRET not in json.dumps(rows, default=str)
    assert SECRET not in caplog.text
    assert SECRET not in str(run_report(run.pk))
