"""The order of a run's cases and the starts of its engine, where a run says them for itself."""

from collections.abc import Callable

import pytest

from evalboard.core.errors import InvalidInput
from runs.models import EngineProcess, ResponseRecord, RunRecord
from tests.nightly import nightly
from tests.worker.conftest import Join, Wait, ended

pytestmark = pytest.mark.django_db
PROMPTS = ["say blue"] * 30


def orders(run: RunRecord) -> list[list[int]]:
    """The cases of each repeat in the order in which they were stored."""
    rows = ResponseRecord.objects.filter(repeat__run=run).order_by("id").values_list("repeat__index", "case_index")
    return [[case for repeat, case in rows if repeat == index] for index in range(1, run.repeats.count() + 1)]


def decoded(run: RunRecord, join_worker: Join, work_until: Wait) -> RunRecord:
    join_worker()
    work_until(lambda: ended(run), "the run ends")
    assert run.status == "finished"
    return run


@pytest.mark.nightly
def test_shuffled_cases_come_in_an_order_of_each_repeat(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    run = decoded(new_run(PROMPTS, repeats=2, is_shuffled=True), join_worker, work_until)
    first, second = orders(run)
    assert sorted(first) == sorted(second) == list(range(30))
    assert first != second
    assert first != sorted(first)
    starts = [case // 12 for case in first]  # of the shard that a case is in
    assert starts == sorted(starts, key=starts.index), "each shard's cases come together"
    assert run.events.get(code="created").text.endswith("in shuffled order on scripted.")


def test_cases_come_in_the_order_of_the_suite_otherwise(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait
) -> None:
    run = decoded(new_run(PROMPTS, repeats=1), join_worker, work_until)
    assert orders(run) == [list(range(30))]


@pytest.mark.nightly
@pytest.mark.parametrize(("is_restarted", "n_engines"), [(True, 4), *nightly([(False, 2)])])
def test_a_restarted_run_has_an_engine_for_each_repeat(
    new_run: Callable[..., RunRecord], join_worker: Join, work_until: Wait, is_restarted: bool, n_engines: int
) -> None:
    run = decoded(new_run(PROMPTS, repeats=4, is_restarted=is_restarted), join_worker, work_until)
    served = EngineProcess.objects.filter(repeats__run=run).distinct()
    assert served.count() == n_engines
    assert all(process.repeats.count() == 4 / n_engines for process in served)


def test_a_run_whose_promise_is_the_order_is_not_shuffled(new_run: Callable[..., RunRecord]) -> None:
    with pytest.raises(InvalidInput) as refused:
        new_run(PROMPTS, under="fixed", is_shuffled=True)
    assert list(refused.value.fields) == ["is_shuffled"]
