"""Two workers at a long run of bulk: a release's run is begun with their next claims, and the bulk goes on after it."""

from collections.abc import Callable

import pytest

from runs.models import Lane, Run, Shard
from tests.faults.whole import assert_counted
from tests.worker.conftest import Start, Wait, ended

pytestmark = pytest.mark.django_db(transaction=True)
N_WORKERS = 2


def test_a_release_check_is_begun_with_the_next_claims(
    new_run: Callable[..., Run], start_worker: Start, wait_until: Wait
) -> None:
    for _ in range(N_WORKERS):
        start_worker(SCRIPTED_SECONDS="0.02")
    bulk = new_run(["say blue"] * 240, repeats=2, priority="bulk")
    shards = Shard.objects.filter(repeat__run=bulk)
    wait_until(lambda: shards.filter(status="running").count() == N_WORKERS, "both workers are at work")
    check = new_run(["say blue"] * 12, repeats=1, priority="release")
    n_claimed = Lane.objects.get(priority="bulk").turn
    wait_until(lambda: ended(check), "the check ends")
    assert check.status == "finished"
    # Of its one shard. Claims that were under way when it was made may have come between, one of each worker.
    assert Lane.objects.get(priority="release").turn <= n_claimed + N_WORKERS + 1
    assert shards.filter(status="queued").exists()
    wait_until(lambda: ended(bulk), "the bulk ends")
    assert_counted(bulk)
