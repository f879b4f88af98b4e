"""Any kind of work that is a `Job`: the loop claims it, renews its lease, and lets it go, whatever it is."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError

from evalboard.core.errors import LeaseLost
from runs.models import WorkerRecord
from runs.work import Beat, Lease
from worker.engines.base import Engine, EngineSpec
from worker.heartbeat import Heartbeat
from worker.jobs import Job, Station
from worker.runner import JOBS, Runner

pytestmark = pytest.mark.django_db(transaction=True)


class Errand:
    """One row of a kind that nobody here knows, in memory; another attempt takes it after so many heartbeats."""

    def __init__(self, station: Station, *, n_beats: int, does: Callable[["Errand", Heartbeat], None]) -> None:
        self.station = station
        self.events: list[str] = []
        self._n_beats = n_beats
        self._does = does

    def claim(self) -> Lease | None:
        if self.events:
            return None
        self.events.append("claimed")
        return Lease("errand", 7, 1, self.station.worker.pk)

    def resume(self) -> Lease | None:
        self.events.append("resumed")
        return Lease("errand", 7, 1, self.station.worker.pk)

    def renew(self, *, lease: Lease) -> Beat:
        self._n_beats -= 1
        self.events.append("renewed" if self._n_beats >= 0 else "lost")
        return Beat(is_held=self._n_beats >= 0)

    def work(self, lease: Lease, heartbeat: Heartbeat) -> None:
        self._does(self, heartbeat)
        self.events.append("done")

    def let_go(self, lease: Lease, reason: str) -> None:
        self.events.append(f"let go of {lease}: {reason}")

    def fail(self, lease: Lease, reason: str) -> None:
        self.events.append(f"failed {lease}: {reason}")


def no_engine(spec: EngineSpec) -> Engine:
    raise AssertionError("nothing is decoded here")


@pytest.fixture
def runner(settings: Any) -> Callable[..., tuple[Runner, Errand]]:
    settings.HEARTBEAT_SECONDS = 3600.0  # none where a test does not wait for it

    def make(does: Callable[[Errand, Heartbeat], None], *, n_beats: int = 1000) -> tuple[Runner, Errand]:
        errands: list[Errand] = []

        def make_job(station: Station) -> Job:
            errands.append(Errand(station, n_beats=n_beats, does=does))
            return errands[0]

        hardware = {"kind": "cpu"}
        runner = Runner(pool="default", hardware=hardware, make_engine=no_engine, jobs=[*JOBS, make_job])
        return runner, errands[0]

    return make


def until_it_must_end(errand: Errand, heartbeat: Heartbeat) -> None:
    while True:
        errand.station.check(heartbeat)
        time.sleep(0.005)


def test_a_kind_that_nobody_knows_is_claimed_renewed_and_let_go_when_its_lease_is_lost(
    runner: Callable[..., tuple[Runner, Errand]], settings: Any
) -> None:
    settings.HEARTBEAT_SECONDS = 0.02
    loop, errand = runner(until_it_must_end, n_beats=3)
    assert loop.claim_and_run()
    assert errand.events == ["claimed", "renewed", "renewed", "renewed", "lost"]  # and no word more of it
    assert not loop.claim_and_run()
    assert WorkerRecord.objects.get(pk=loop.worker.pk).n_fenced == 1


def test_a_write_that_comes_too_late_is_counted_like_a_lost_lease(
    runner: Callable[..., tuple[Runner, Errand]],
) -> None:
    def write_late(errand: Errand, heartbeat: Heartbeat) -> None:
        raise LeaseLost("Too late.")

    loop, errand = runner(write_late)
    assert loop.claim_and_run()
    assert errand.events == ["claimed"]
    assert not loop.claim_and_run()
    assert WorkerRecord.objects.get(pk=loop.worker.pk).n_fenced == 1


def test_what_is_under_way_goes_back_in_good_order_when_the_worker_is_stopped(
    runner: Callable[..., tuple[Runner, Errand]],
) -> None:
    def stop(errand: Errand, heartbeat: Heartbeat) -> None:
        loop.stop()
        errand.station.check(heartbeat)

    loop, errand = runner(stop)
    assert loop.claim_and_run()
    assert errand.events == ["claimed", "let go of errand 7: The worker was stopped."]


def test_whatever_goes_wrong_with_one_row_the_worker_lives(runner: Callable[..., tuple[Runner, Errand]]) -> None:
    def break_down(errand: Errand, heartbeat: Heartbeat) -> None:
        raise KeyError("surprise")

    loop, errand = runner(break_down)
    assert loop.claim_and_run()
    assert errand.events == ["claimed", "failed errand 7: KeyError: 'surprise'"]
    assert not loop.claim_and_run()


def test_work_that_ends_needs_nothing_more(runner: Callable[..., tuple[Runner, Errand]]) -> None:
    loop, errand = runner(lambda errand, heartbeat: None)
    assert loop.claim_and_run()
    assert errand.events == ["claimed", "done"]


def test_what_was_claimed_when_the_database_went_is_gone_on_with_when_it_is_back(
    runner: Callable[..., tuple[Runner, Errand]],
) -> None:
    def lose_the_database_once(errand: Errand, heartbeat: Heartbeat) -> None:
        if "resumed" not in errand.events:
            raise OperationalError("server closed the connection unexpectedly")

    loop, errand = runner(lose_the_database_once)
    loop.work()
    assert errand.events == ["claimed"]
    loop.work()
    assert errand.events == ["claimed", "resumed", "done"]
    loop.work()
    assert errand.events == ["claimed", "resumed", "done"]
