"""The wire between one worker and the database is cut, and nothing is refused: statements just wait for an answer."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from django.db import connection, transaction

from runs.models import ResponseRecord, RunRecord, Shard, WorkerRecord
from tests.faults.whole import assert_whole
from tests.servers import Wire
from tests.worker.conftest import Start, Wait, ended

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def wire(transactional_db: None) -> Iterator[Wire]:
    found = connection.get_connection_params()
    middle = Wire(str(found.get("host") or "127.0.0.1"), int(found.get("port") or 5432))
    yield middle
    middle.close()


@pytest.fixture
def wired_url(wire: Wire) -> str:
    """The test database, through the wire."""
    found = connection.get_connection_params()
    account = quote(str(found.get("user", "")), safe="")
    password = quote(str(found.get("password") or ""), safe="")
    return f"postgres://{account}:{password}@127.0.0.1:{wire.port}/{found['dbname']}"


@pytest.mark.parametrize("setup", ["team"], indirect=True)  # either set-up has the same heartbeat
def test_a_worker_that_is_cut_off_stops_before_its_lease_ends_and_another_takes_over(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, wire: Wire, wired_url: str, tmp_path: Path
) -> None:
    """R9: the wire is cut in the middle of a shard, and mended when another worker has the shard."""
    lease = {"EVALBOARD_LEASE_SECONDS": "8"}  # a tenth of it is how much sooner a worker stops than it must
    journal = tmp_path / "begun"
    run = new_run(["say blue"] * 12, repeats=1)  # one shard
    start_worker(DATABASE_URL=wired_url, SCRIPTED_SECONDS="1", SCRIPTED_JOURNAL=str(journal), **lease)
    wait_until(lambda: ResponseRecord.objects.count() >= 2, "two responses are stored")
    cut_off = WorkerRecord.objects.get()
    wire.cut()
    start_worker(SCRIPTED_SECONDS="0.1", **lease)
    wait_until(lambda: run.events.filter(code="worker_lost").exists(), "the lease has ended")
    ended_at = run.events.get(code="worker_lost").at.timestamp()
    begun = [float(line) for line in journal.read_text().split()]
    assert (
        ResponseRecord.objects.filter(attempt=1).count() < len(begun) < 12
    )  # it went on for a while, and then it did not
    assert begun[-1] < ended_at
    wait_until(lambda: ended(run), "the run ends")
    assert len(journal.read_text().split()) == len(begun)
    assert_whole(run)
    before = set(ResponseRecord.objects.values_list("id", "attempt", "recorded_at"))
    wire.mend()
    wait_until(lambda: WorkerRecord.objects.filter(pk=cut_off.pk, n_fenced=1).exists(), "it counts what it dropped")
    assert set(ResponseRecord.objects.values_list("id", "attempt", "recorded_at")) == before
    assert Shard.objects.get().attempt == 2
    later = new_run(["say blue"] * 100, repeats=2)
    wait_until(lambda: Shard.objects.filter(repeat__run=later, owner=cut_off).exists(), "it works again")


@pytest.mark.nightly
def test_a_transaction_left_open_by_a_worker_that_is_cut_off_holds_its_shard_no_longer_than_a_lease(
    new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, wire: Wire, wired_url: str
) -> None:
    """R9: the wire is cut while the worker waits for the shard's row, which it is given after that."""
    run = new_run(["say blue"] * 12, repeats=1)
    start_worker(DATABASE_URL=wired_url, SCRIPTED_SECONDS="0.1")
    wait_until(lambda: ResponseRecord.objects.count() >= 2, "two responses are stored")
    cut_off = WorkerRecord.objects.get()
    with transaction.atomic():
        Shard.objects.select_for_update().get()
        wait_until(lambda: waiting_for_a_row() > 0, "the worker waits for the row")
        wire.cut()
    start_worker(SCRIPTED_SECONDS="0.05")
    wait_until(lambda: ended(run), "the run ends although nobody ended that transaction")
    assert_whole(run)
    assert Shard.objects.get().owner_id != cut_off.pk
    wire.mend()
    wait_until(lambda: WorkerRecord.objects.get(pk=cut_off.pk).seen_at > run.finished_at, "the worker is back")
    assert_whole(run)


def waiting_for_a_row() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])
