"""How the repeats of both sides were batched, from their responses to the release's warning."""

from datetime import timedelta

import pytest
from django.utils import timezone

from runs.models import CaseColumns, EndpointRecord, ResponseRecord, RunRecord
from runs.store import stored_columns
from tests import build
from tests.casts import cast
from tests.runs import judged, logs
from tests.runs import test_leak as calls
from tests.runs.judged import SAMPLE_POLICY, codes

pytestmark = pytest.mark.django_db


@cast
def pair() -> tuple[RunRecord, RunRecord]:
    """Two runs under a profile that batches cases as they come."""
    version, process = judged.suite(policy=SAMPLE_POLICY), build.process(build.bucket(batch_class="mixed"))
    return judged.run(version, by=process, under="fast"), judged.run(version, by=process, under="fast")


def set_batches(run: RunRecord, batch_max: int | None) -> None:
    """As if every response had been decoded in so large a batch; None: nothing says how large."""
    sizes = {} if batch_max is None else {str(batch_max): judged.N_CASES}
    CaseColumns.objects.filter(repeat__run=run).update(batch_sizes=sizes)


def test_a_repeat_that_ends_counts_its_batches(pair: tuple[RunRecord, RunRecord]) -> None:
    stored = CaseColumns.objects.filter(repeat__run=pair[0]).values_list("batch_sizes", flat=True)
    assert list(stored) == [{"1": judged.N_CASES}] * 5


def test_a_log_carries_no_batch() -> None:
    ids = list(logs.stored(logs.log()).repeats.values_list("pk", flat=True))
    assert stored_columns.batch_sizes(ids) == {repeat: {} for repeat in ids}


def test_unlike_loads_are_said_by_the_release(pair: tuple[RunRecord, RunRecord]) -> None:
    set_batches(pair[1], 48)
    verdict = judged.release(*pair).verdict
    assert verdict is not None
    document = verdict.document
    [line] = [line for line in document["warnings"] if line["code"] == "load_differs"]
    assert "The candidate had 48.0 times the baseline's batch size on average" in line["text"]
    assert "median 48" in line["text"]
    assert codes(document["next"])[0] == "run_in_turn"


@pytest.mark.nightly
def test_runs_that_took_turns_are_not_told_to_take_turns(pair: tuple[RunRecord, RunRecord]) -> None:
    set_batches(pair[1], 48)
    now = timezone.now()
    for place, run in enumerate(pair):
        for repeat in run.repeats.all():
            repeat.finished_at = now + timedelta(minutes=2 * repeat.index + place)
            repeat.save()
    verdict = judged.release(*pair).verdict
    assert verdict is not None
    [line] = [line for line in verdict.document["warnings"] if line["code"] == "load_differs"]
    assert "They alternated" in line["text"]
    assert "run_in_turn" not in codes(verdict.document["next"])


@cast
def called(pair: tuple[RunRecord, RunRecord]) -> tuple[RunRecord, RunRecord]:
    """The same two, each by a server of others of its own, one call after the other."""
    other = EndpointRecord.objects.get(slug=build.endpoint("other"))
    RunRecord.objects.filter(pk=pair[1].pk).update(endpoint=other)
    EndpointRecord.objects.update(engine="openai")
    for run in pair:
        set_calls(run, at_once=1)
    return pair


def set_calls(run: RunRecord, *, at_once: int) -> None:
    """As if calls had gone out in groups of so many, each group as the one before had come back."""
    begun = timezone.now()
    for response in ResponseRecord.objects.filter(repeat__run=run).select_related("repeat"):
        group = (response.repeat.index * judged.N_CASES + response.case_index) // at_once
        response.call = calls.called(begun + timedelta(seconds=group), seconds=1)
        response.save()
    first, last = begun, begun + timedelta(seconds=10 * judged.N_CASES)
    RunRecord.objects.filter(pk=run.pk).update(started_at=first, finished_at=last)


def test_calls_in_flight_to_servers_of_others_are_compared(called: tuple[RunRecord, RunRecord]) -> None:
    set_calls(called[1], at_once=6)
    verdict = judged.release(*called).verdict
    assert verdict is not None
    [line] = [line for line in verdict.document["warnings"] if line["code"] == "load_differs"]
    assert "The candidate had 6.0 times the baseline's calls in flight on average" in line["text"]
    stored = CaseColumns.objects.filter(repeat__run=called[1]).values_list("calls_in_flight", flat=True)
    assert list(stored) == [{"6": judged.N_CASES}] * 5


@pytest.mark.nightly
def test_calls_of_another_run_to_the_same_server_count(called: tuple[RunRecord, RunRecord]) -> None:
    beside = judged.run(called[0].suite_version, by=build.process(build.bucket(batch_class="mixed")), under="fast")
    RunRecord.objects.filter(pk=beside.pk).update(endpoint=EndpointRecord.objects.get(slug="other"))
    set_calls(beside, at_once=1)
    starts = ResponseRecord.objects.filter(repeat__run=called[1]).order_by("repeat", "case_index")
    for ours, theirs in zip(
        starts, ResponseRecord.objects.filter(repeat__run=beside).order_by("repeat", "case_index"), strict=True
    ):
        theirs.call = ours.call
        theirs.save()
    verdict = judged.release(*called).verdict
    assert verdict is not None
    [line] = [line for line in verdict.document["warnings"] if line["code"] == "load_differs"]
    assert "2.0 times the baseline's calls in flight on average" in line["text"]


@pytest.mark.nightly
def test_batches_are_not_held_against_calls(called: tuple[RunRecord, RunRecord]) -> None:
    EndpointRecord.objects.filter(slug="other").update(engine="vllm")
    set_calls(called[0], at_once=6)
    verdict = judged.release(*called).verdict
    assert verdict is not None
    assert "load_differs" not in codes(verdict.document["warnings"])


@pytest.mark.parametrize("batch", [1, None])
def test_one_load_and_an_unknown_one_are_not_accused(pair: tuple[RunRecord, RunRecord], batch: int | None) -> None:
    set_batches(pair[1], batch)
    verdict = judged.release(*pair).verdict
    assert verdict is not None
    assert "load_differs" not in codes(verdict.document["warnings"])
