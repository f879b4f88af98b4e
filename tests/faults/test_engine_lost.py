"""An engine hangs, never starts, or fails again and again: its worker goes on, rests, or leaves the work to others."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from runs.models import EngineProcess, RunRecord, Shard, WorkerRecord
from tests.faults.whole import assert_whole
from tests.worker.conftest import Join, Wait, WorkerHere, ended, kill_engine

pytestmark = pytest.mark.django_db


def test_an_engine_that_stands_still_is_replaced_after_the_deadline_of_one_response(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    """R2: SIGSTOP to the engine only; its worker lives, and keeps its lease."""

    def freeze(worker: WorkerHere) -> None:
        if worker.n_answers == 4:
            assert worker.engines[0].pid is not None
            os.kill(worker.engines[0].pid, signal.SIGSTOP)

    run = new_run(["say blue"] * 24, repeats=1)
    join_worker(on_answer=freeze, response_seconds=1.0, SCRIPTED_SECONDS="0.02")
    work_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    assert EngineProcess.objects.count() == 2
    [released] = run.events.filter(code="shard_released")
    assert "Nothing came from the engine in 1 seconds" in released.text
    assert not run.events.filter(code="worker_lost").exists()


def test_an_engine_that_the_kernel_kills_says_by_which_signal(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    """R3: the kernel ends what takes too much memory by SIGKILL; the history names the signal."""

    def kill(worker: WorkerHere) -> None:
        if worker.n_answers == 4:
            kill_engine(worker.engines[0])

    run = new_run(["say blue"] * 24, repeats=1)
    join_worker(on_answer=kill, SCRIPTED_SECONDS="0.02")
    work_until(lambda: ended(run), "the run ends")
    assert_whole(run)
    [released] = run.events.filter(code="shard_released")
    assert "The engine was ended by SIGKILL" in released.text
    assert Shard.objects.filter(n_crashes=1).count() == 1


def test_a_node_whose_engine_never_starts_rests_and_fails_no_run(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait, tmp_path: Path
) -> None:
    """R2: two nodes of one pool, one of them broken; it steps back after three failures in a row."""
    runs = [new_run(["say blue"] * 24, repeats=1) for _ in range(4)]
    sound = join_worker()
    assert sound.claim_and_run()
    broken = tmp_path / "broken"
    broken.touch()
    other = join_worker(SCRIPTED_BROKEN=str(broken))
    work_until(lambda: all(map(ended, runs)), "the runs end")
    for run in runs:
        assert_whole(run)
    degraded = WorkerRecord.objects.get(pk=other.worker.pk)
    assert degraded.n_engine_failures == 3
    assert degraded.rests_until is not None
    assert degraded.rests_until > degraded.seen_at
    assert degraded.note.startswith("Its engine failed 3 times in a row, last: The engine ended with exit")
    assert not EngineProcess.objects.filter(worker=degraded).exists()
    assert WorkerRecord.objects.get(pk=sound.worker.pk).n_engine_failures == 0


def test_a_worker_that_is_alone_does_not_rest_and_recovers(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait, tmp_path: Path
) -> None:
    """R2: an engine that cannot be started costs its run after three starts; the next one finds it mended."""
    broken = tmp_path / "broken"
    broken.touch()
    first = new_run(["say blue"] * 3, repeats=1)
    join_worker(SCRIPTED_BROKEN=str(broken))
    work_until(lambda: ended(first), "the run has failed")
    assert first.status == "failed"
    assert "no engine starts on this node" in first.failure  # the engine's own words
    worker = WorkerRecord.objects.get()
    assert (worker.n_engine_failures, worker.rests_until) == (3, None)
    broken.unlink()
    second = new_run(["say blue"] * 3, repeats=1)
    work_until(lambda: ended(second), "the second run ends")
    assert_whole(second)
    worker.refresh_from_db()
    assert (worker.n_engine_failures, worker.note) == (0, "")
