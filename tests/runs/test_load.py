"""How the repeats of both sides were batched, from their responses to the release's warning."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from runs.models import CaseColumns, Response, Run
from runs.store import stored_columns
from tests import build
from tests.runs import judged, logs
from tests.runs.judged import SAMPLE_POLICY, codes

pytestmark = pytest.mark.django_db


@pytest.fixture
def pair() -> tuple[Run, Run]:
    """Two runs under a profile that batches cases as they come."""
    version, process = judged.suite(policy=SAMPLE_POLICY), build.process(build.bucket(batch_class="mixed"))
    return judged.run(version, by=process, under="fast"), judged.run(version, by=process, under="fast")


def set_batches(run: Run, batch_max: int | None) -> None:
    """As if an earlier version had stored the run, whose columns say nothing of batches."""
    Response.objects.filter(repeat__run=run).update(batch_max=batch_max)
    CaseColumns.objects.filter(repeat__run=run).update(batch_sizes=None)


def test_a_repeat_that_ends_counts_its_batches(pair: tuple[Run, Run]) -> None:
    stored = CaseColumns.objects.filter(repeat__run=pair[0]).values_list("batch_sizes", flat=True)
    assert list(stored) == [{"1": judged.N_CASES}] * 5


def test_runs_of_an_earlier_version_are_counted_once(pair: tuple[Run, Run], django_assert_num_queries: Any) -> None:
    set_batches(pair[0], 12)
    ids = list(pair[0].repeats.values_list("pk", flat=True))
    assert stored_columns.batch_sizes(ids) == {repeat: {12: judged.N_CASES} for repeat in ids}
    with django_assert_num_queries(1):
        assert stored_columns.batch_sizes(ids) == {repeat: {12: judged.N_CASES} for repeat in ids}


def test_a_log_carries_no_batch() -> None:
    ids = list(logs.stored(logs.log()).repeats.values_list("pk", flat=True))
    assert stored_columns.batch_sizes(ids) == {repeat: {} for repeat in ids}


def test_unlike_loads_are_said_by_the_release(pair: tuple[Run, Run]) -> None:
    set_batches(pair[1], 48)
    verdict = judged.release(*pair).verdict
    assert verdict is not None
    document = verdict.document
    [line] = [line for line in document["warnings"] if line["code"] == "load_differs"]
    assert "on average the candidate's batches are 48.0 times as large" in line["text"]
    assert "median 48" in line["text"]
    assert codes(document["next"])[0] == "run_in_turn"


def test_runs_that_took_turns_are_not_told_to_take_turns(pair: tuple[Run, Run]) -> None:
    set_batches(pair[1], 48)
    now = timezone.now()
    for place, run in enumerate(pair):
        for repeat in run.repeats.all():
            repeat.finished_at = now + timedelta(minutes=2 * repeat.index + place)
            repeat.save()
    verdict = judged.release(*pair).verdict
    assert verdict is not None
    [line] = [line for line in verdict.document["warnings"] if line["code"] == "load_differs"]
    assert "Both sides ran in turn" in line["text"]
    assert "run_in_turn" not in codes(verdict.document["next"])


@pytest.mark.parametrize("batch", [1, None])
def test_one_load_and_an_unknown_one_are_not_accused(pair: tuple[Run, Run], batch: int | None) -> None:
    set_batches(pair[1], batch)
    verdict = judged.release(*pair).verdict
    assert verdict is not None
    assert "load_differs" not in codes(verdict.document["warnings"])
