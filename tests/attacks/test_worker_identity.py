"""Two containers of one host name: neither declares the other's worker dead, and no healthy case is blamed.

Real processes, in process-id namespaces of their own as containers have them, so that both are process 1 of one host.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from runs.models import ResponseRecord, RunRecord, Shard, WorkerRecord
from runs.store import own_process
from runs.sweep import release_dead_workers
from runs.work import claim_shard, renew_shard

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
SETTINGS = {"DJANGO_SETTINGS_MODULE": "evalboard.settings"}
Start = Callable[..., tuple[subprocess.Popen[str], WorkerRecord, int]]


@pytest.fixture
def start(database_url: str) -> Iterator[Start]:
    """Start a worker's process, in a container's process namespace or in this one; its row and its shard."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*, is_contained: bool = False) -> tuple[subprocess.Popen[str], WorkerRecord, int]:
        if is_contained and subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode != 0:
            pytest.skip("No process namespace can be made here; it takes root, as in a container that may.")
        process = subprocess.Popen(
            [*(NAMESPACE if is_contained else []), sys.executable, "-m", "tests.attacks.worker_in_place"],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": database_url, "REDIS_URL": "", **SETTINGS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        worker_id, shard_id = map(int, process.stdout.readline().split())
        return process, WorkerRecord.objects.get(pk=worker_id), shard_id

    yield begin
    for process in processes:
        process.kill()
        process.communicate()


def in_flight(shard_id: int) -> None:
    """The shard crashed twice before, so its cases run alone: the next loss is laid at the door of one."""
    Shard.objects.filter(pk=shard_id).update(n_crashes=2, in_flight=0)


def test_a_second_container_leaves_the_first_ones_worker_alone(run: RunRecord, start: Start) -> None:
    _, first, shard_id = start(is_contained=True)
    in_flight(shard_id)
    _, second, other = start(is_contained=True)
    assert (first.host, first.pid) == (second.host, second.pid) == (first.host, 1)
    first.refresh_from_db()
    assert first.stopped_at is None
    shard = Shard.objects.get(pk=shard_id)
    assert (shard.status, shard.owner_id, shard.n_crashes) == ("running", first.pk, 2)
    assert other != shard_id
    assert not ResponseRecord.objects.exists(), "a healthy case became worker_crash"
    assert not run.events.filter(code="worker_lost").exists()


@pytest.mark.nightly
def test_a_worker_of_the_host_itself_and_one_in_a_container_leave_each_other_alone(
    run: RunRecord, start: Start
) -> None:
    _, outside, _ = start()
    _, inside, _ = start(is_contained=True)
    _, again, _ = start()
    assert not WorkerRecord.objects.filter(pk__in=[outside.pk, inside.pk, again.pk]).exclude(stopped_at=None).exists()
    assert Shard.objects.filter(status="running").count() == 3


@pytest.mark.nightly
def test_a_process_that_is_gone_is_noticed_at_once_by_the_next_one_of_its_place(run: RunRecord, start: Start) -> None:
    process, gone, shard_id = start()
    process.send_signal(signal.SIGKILL)
    process.wait()
    start()
    gone.refresh_from_db()
    assert gone.stopped_at is not None
    assert list(run.events.filter(code="worker_lost").values_list("run", flat=True)) == [run.pk]
    assert Shard.objects.get(pk=shard_id).attempt == 2


def test_another_process_that_was_given_the_same_id_is_not_taken_for_the_worker(
    run: RunRecord, new_worker: Callable[..., WorkerRecord], start: Start
) -> None:
    me = os.getpid()
    known = {"place": own_process.own_place(), "pid": me}
    started = own_process.started(me)
    assert started is not None
    alive = new_worker("alive", **known, process_started=started)
    gone = new_worker("gone", **known, process_started=started - 1)
    start()
    stopped = set(WorkerRecord.objects.exclude(stopped_at=None).values_list("pk", flat=True))
    assert (alive.pk in stopped, gone.pk in stopped) == (False, True)


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"place": ""},
        {"place": "another-boot pid:[1] time:[1]"},
        {"process_started": None},
    ],
)
def test_where_it_is_not_known_the_lease_decides(
    run: RunRecord, new_worker: Callable[..., WorkerRecord], elsewhere: dict[str, Any]
) -> None:
    here = {"host": "here", "pid": 2**22, "place": own_process.own_place(), "process_started": 1, **elsewhere}
    lease = claim_shard(worker=new_worker("unknown", **here))
    assert lease is not None
    for place in (own_process.own_place(), ""):
        assert release_dead_workers(place=place, is_gone=own_process.is_gone) == 0
    assert renew_shard(lease=lease).is_held


def test_a_container_is_not_called_healthy_for_another_ones_worker(
    new_worker: Callable[..., WorkerRecord],
) -> None:
    new_worker("other", host=socket.gethostname(), place="boot pid:[1] time:[1]", process_started=1)
    with pytest.raises(CommandError, match="No worker of"):
        call_command("is_alive", "worker")
    new_worker("mine", host=socket.gethostname(), place=own_process.own_place(), process_started=1)
    call_command("is_alive", "worker")
