"""Two workers at a long run of bulk: a release's run is begun with their next claims, and the bulk goes on after it."""

from collections.abc import Callable

import pytest

from runs.models import RunRecord, Shard
from tests.faults.whole import assert_counted
from tests.worker.conftest import Join, Wait, WorkerHere, ended

pytestmark = pytest.mark.django_db


def test_a_release_check_is_begun_with_the_next_claim(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    """One worker is in the middle of a shard, and so is the other when the check is asked for."""
    asked: list[RunRecord] = []

    def let_the_other_work(worker: WorkerHere) -> None:
        if worker.n_answers == 1:
            assert other.claim_and_run()

    def ask(worker: WorkerHere) -> None:
        if worker.n_answers == 1:
            assert shards.filter(status="running").count() == 2
            asked.append(new_run(["say blue"] * 12, repeats=1, priority="release"))

    one, other = join_worker(on_answer=let_the_other_work), join_worker(on_answer=ask)
    bulk = new_run(["say blue"] * 60, repeats=2, priority="bulk")
    shards = Shard.objects.filter(repeat__run=bulk)
    assert one.claim_and_run()
    [check] = asked
    assert shards.filter(status="finished").count() == 2
    assert other.claim_and_run()
    assert ended(check)
    assert check.status == "finished"
    assert shards.filter(status="queued").count() == 8
    work_until(lambda: ended(bulk), "the bulk ends")
    assert_counted(bulk)
