"""The workers' PostgreSQL is restarted, away for longer than a lease, or full: nothing is lost or half-written."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dj_database_url
import pytest
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from evalboard.local import postgres
from runs.models import EngineProcess, ResponseRecord, RunRecord, Shard, TraceBlock, WorkerRecord
from tests.cluster import DATABASE, copy_migrated
from tests.faults.whole import assert_whole
from tests.processes import main_process
from tests.waiting import wait_until as wait_for
from tests.worker.conftest import LEASE_SECONDS, Start, Wait, ended

DISK_BYTES = 160 * 1024**2


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where the server lies, on a disk of its own where that can be had; short, for a socket's path is."""
    found = Path(tempfile.mkdtemp(prefix="evalboard-test-"))
    found.chmod(0o711)
    yield found
    shutil.rmtree(found, ignore_errors=True)


@pytest.fixture
def disk(folder: Path) -> Iterator[Path]:
    """A small disk, mounted where the server will lie."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=711", "evalboard-test", folder]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("A small disk takes root and the right to mount a tmpfs.")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def server(folder: Path) -> Iterator[postgres.Server]:
    found = postgres.Server(folder / "postgres", log=folder / "postgres.log")
    copy_migrated(found.folder)
    found.start()
    yield found
    found.stop()


@pytest.fixture
def database_url(server: postgres.Server, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The migrated database of a server of the test's own, which Django in this process uses as well."""
    url = server.url(DATABASE)
    before = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict |= dj_database_url.parse(url)
    with django_db_blocker.unblock():
        yield url
        connection.close()
    connection.settings_dict.clear()
    connection.settings_dict |= before


@pytest.fixture
def setup() -> dict[str, str]:
    return {"REDIS_URL": ""}


def end_at_once(server: postgres.Server) -> None:
    """As `pg_ctl stop -m immediate` does: every session ends where it is, and the start afterwards recovers."""
    connection.close()
    os.kill(main_process(server), signal.SIGQUIT)
    wait_for(lambda: server.exit_status() is not None)


def assert_nothing_half_written() -> None:
    """Every response has its trace, every trace block its responses, every count its rows, at one moment."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert not ResponseRecord.objects.filter(error_code="", trace_block=None).exists()
        assert not TraceBlock.objects.filter(responses=None).exists()
        for shard in Shard.objects.all():
            rows = ResponseRecord.objects.filter(repeat=shard.repeat_id, case_index__range=(shard.first, shard.last))
            assert shard.n_done == rows.count()


def test_a_database_that_is_restarted_costs_no_attempt(
    database_url: str, server: postgres.Server, new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait
) -> None:
    """R8: restarted `-m immediate` in the middle of a shard; the worker tries again in memory, and keeps its lease."""
    run = new_run(["say blue"] * 36, repeats=1)
    start_worker(SCRIPTED_SECONDS="0.1", EVALBOARD_LEASE_SECONDS="30")
    wait_until(lambda: ResponseRecord.objects.count() >= 3, "three responses are stored")
    for _ in range(2):
        end_at_once(server)
        server.start()
        assert_nothing_half_written()
        n_before = ResponseRecord.objects.count()
        # On a slow machine it may have come to the end before anybody looked.
        wait_until(lambda n=n_before: ResponseRecord.objects.count() > n + 3 or ended(run), "the worker goes on")  # type: ignore[misc]
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    assert set(Shard.objects.values_list("attempt", flat=True)) == {1}
    assert EngineProcess.objects.count() == 1


@pytest.mark.nightly
def test_a_database_that_is_away_for_longer_than_a_lease_costs_one_attempt(
    database_url: str, server: postgres.Server, new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait
) -> None:
    """R8: the worker drops its work when its lease can no longer hold, outlives the outage, and begins again."""
    run = new_run(["say blue"] * 24, repeats=1)
    worker = start_worker(SCRIPTED_SECONDS="0.1")
    wait_until(lambda: ResponseRecord.objects.count() >= 3, "three responses are stored")
    end_at_once(server)
    left_at = timezone.now()
    wait_until(lambda: (timezone.now() - left_at).total_seconds() > LEASE_SECONDS, "the lease has ended")
    server.start()
    assert_nothing_half_written()
    kept = set(ResponseRecord.objects.values_list("id", flat=True))
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    assert kept <= set(ResponseRecord.objects.values_list("id", flat=True))
    assert worker.poll() is None
    assert WorkerRecord.objects.get().n_fenced == 1
    [lost] = run.events.filter(code="worker_lost")
    assert "was not heard of for the length of a lease" in lost.text
    assert Shard.objects.get(repeat__run=run, first=0).attempt == 2


@pytest.mark.nightly
def test_a_full_disk_under_the_database_pauses_the_run(
    disk: Path, database_url: str, new_run: Callable[..., RunRecord], start_worker: Start, wait_until: Wait, capfd: Any
) -> None:
    """R14: no room for another row; once there is room, the run goes on and ends whole."""
    run = new_run(["say blue"] * 200, repeats=2)
    said: list[str] = []
    start_worker(SCRIPTED_SECONDS="0.02")
    wait_until(lambda: ResponseRecord.objects.count() >= 3, "three responses are stored")
    with (disk / "ballast").open("wb") as ballast, suppress(OSError):  # the worker may take the last bytes first
        ballast.write(bytes(shutil.disk_usage(disk).free))

    def complains() -> bool:
        said.append(capfd.readouterr().err)
        return "No space left on device" in "".join(said)

    wait_until(complains, "a write is refused")
    assert_nothing_half_written()
    assert not ended(run)
    (disk / "ballast").unlink()
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    assert_nothing_half_written()
