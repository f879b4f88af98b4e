"""An engine hangs, never starts, or fails again and again: its worker goes on, rests, or leaves the work to others."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from runs.models import EngineProcess, Response, Run, Worker
from tests.faults.whole import assert_whole
from tests.worker.conftest import Start, Wait, ended, engines

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_engine_that_stands_still_is_replaced_after_the_deadline_of_one_response(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    """R2: SIGSTOP to the engine only; its worker lives, and keeps its lease."""
    run = new_run(["say blue"] * 30, repeats=1)
    worker = start_worker(SCRIPTED_SECONDS="0.1")
    wait_until(lambda: Response.objects.count() >= 3, "three responses are stored")
    [engine] = engines(worker)
    engine.send_signal(signal.SIGSTOP)
    wait_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    assert EngineProcess.objects.count() == 2
    [released] = run.events.filter(code="shard_released")
    assert "Nothing came from the engine in 2 seconds" in released.text
    assert not run.events.filter(code="worker_lost").exists()


@pytest.mark.parametrize("setup", ["team"], indirect=True)
def test_a_node_whose_engine_never_starts_rests_and_fails_no_run(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait, tmp_path: Path
) -> None:
    """R2: two nodes of one pool, one of them broken; it steps back after three failures in a row."""
    runs = [new_run(["say blue"] * 24, repeats=1) for _ in range(4)]
    start_worker(SCRIPTED_SECONDS="0.25")
    wait_until(lambda: Response.objects.exists(), "the sound node serves")
    sound = Worker.objects.get()
    broken = tmp_path / "broken"
    broken.touch()
    start_worker(SCRIPTED_BROKEN=str(broken))
    others = Worker.objects.exclude(pk=sound.pk)
    wait_until(lambda: others.filter(n_engine_failures__gte=3).exists(), "the broken node is degraded")
    wait_until(lambda: all(map(ended, runs)), "the runs end")
    for run in runs:
        assert_whole(run)
    degraded = others.get()
    assert degraded.n_engine_failures == 3
    assert degraded.rests_until is not None
    assert degraded.rests_until > degraded.seen_at
    assert degraded.note.startswith("Degraded: its engine failed 3 times in a row, last: The engine ended with exit")
    assert not EngineProcess.objects.filter(worker=degraded).exists()
    assert Worker.objects.get(pk=sound.pk).n_engine_failures == 0


def test_a_worker_that_is_alone_does_not_rest_and_recovers(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait, tmp_path: Path
) -> None:
    """R2: an engine that cannot be started costs its run after three starts; the next one finds it mended."""
    broken = tmp_path / "broken"
    broken.touch()
    first = new_run(["say blue"] * 3, repeats=1)
    start_worker(SCRIPTED_BROKEN=str(broken))
    wait_until(lambda: ended(first), "the run has failed")
    assert first.status == "failed"
    assert "no engine starts on this node" in first.failure  # the engine's own words
    wait_until(lambda: Worker.objects.filter(n_engine_failures=3).exists(), "the worker is degraded")
    assert Worker.objects.get().rests_until is None
    broken.unlink()
    second = new_run(["say blue"] * 3, repeats=1)
    wait_until(lambda: ended(second), "the second run ends")
    assert_whole(second)
    wait_until(lambda: Worker.objects.filter(n_engine_failures=0, note="").exists(), "the worker has recovered")
