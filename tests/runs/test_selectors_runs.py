"""What lists and pages learn of a run."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalboard.core.errors import NotFound
from runs import board as board_slice
from runs.models import Event, ResponseRecord, RunRecord, Shard, WorkerRecord
from runs.pairs.pair_facts import forget_names
from runs.run import RunFilter, add_repeats, run_report, run_rows
from runs.suites import rescore_run, suite_rows
from runs.work import leave_alone, worker_rows
from tests import build
from tests.build import case_rows
from tests.nightly import few

pytestmark = pytest.mark.django_db


def n_queries(read: Any) -> int:
    forget_names()  # as the first request of a process
    with CaptureQueriesContext(connection) as queries:
        read()
    return len(queries)


def codes(run: RunRecord) -> list[str]:
    return [warning.code for warning in run_report(run.pk).warnings]


def test_a_finished_run_spans_its_repeats() -> None:
    run = build.finished_run(("blue", "blue", "red"), ("blue", "red", "red"))
    [row] = run_rows()
    assert row.id == str(run.pk)
    assert row.points == (pytest.approx(200 / 3), pytest.approx(100 / 3))
    assert row.range_so_far == (pytest.approx(100 / 3), pytest.approx(200 / 3))
    assert (row.progress.n_done, row.progress.n_total, row.n_repeats) == (6, 6, 2)
    assert row.pins.held is True
    assert row.model == "paint-1b"
    assert row.bucket == str(run.bucket_id)


def test_a_run_at_work_spans_the_repeats_so_far() -> None:
    run = build.run(repeats=3)
    build.decode(run, 1, ("blue", "blue", "red"))
    build.decode(run, 2, ("blue", "blue", "blue"), ends=False)
    row = run_report(run.pk)
    assert row.status == "running"
    assert row.points == (pytest.approx(200 / 3), None, None)
    assert row.range_so_far == (pytest.approx(200 / 3), pytest.approx(200 / 3))


def test_an_incomplete_run_has_no_range_and_says_what_is_missing() -> None:
    run = build.finished_run(("blue", None, "red"), ("blue", "red", "red"))
    report = run_report(run.pk)
    assert report.status == "incomplete"
    assert report.points == (None, pytest.approx(100 / 3))
    assert report.range_so_far is None
    assert (report.errors.n, report.errors.by_code) == (1, {"prompt_too_long": 1})
    assert [line.n_missing for line in report.repeats] == [1, 0]
    assert report.warnings[0].code == "incomplete"
    assert report.warnings[0].text == "1 of 6 responses is missing (1 prompt_too_long), so there is no score."


def test_two_buckets_are_never_pooled() -> None:
    float32, bfloat16 = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    run = build.run(repeats=2)
    build.decode(run, 1, ("blue", "blue", "red"), by=[float32, float32, bfloat16])
    build.decode(run, 2, ("blue", "red", "red"), by=[float32, float32, bfloat16])
    report = run_report(run.pk)
    assert report.range_so_far is None
    assert report.n_buckets == 2
    assert run_rows()[0].range_so_far is None
    first, second = report.buckets
    assert [line.score for line in first.repeats] == [100.0, 50.0]
    assert (first.range, second.range) == ((50.0, 100.0), (0.0, 0.0))
    assert (first.n_responses, first.share) == (4, pytest.approx(2 / 3))
    assert report.noise.n_unstable is None
    assert "several_buckets" in codes(run)


def test_a_bucket_that_served_other_cases_in_each_repeat_has_no_range() -> None:
    float32, bfloat16 = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    run = build.run(repeats=2)
    build.decode(run, 1, ("blue", "blue", "red"), by=[float32, float32, bfloat16])
    build.decode(run, 2, ("blue", "blue", "red"), by=[float32, bfloat16, bfloat16])
    assert [bucket.range for bucket in run_report(run.pk).buckets] == [None, None]


def test_noise_is_measured_from_whole_repeats() -> None:
    run = build.finished_run(("blue", "blue", "red"), ("blue", "red", "red"))
    noise = run_report(run.pk).noise
    assert noise.n_unstable == 1
    assert noise.disagreement_rate == pytest.approx(1 / 3)
    assert noise.sd_points == pytest.approx(100 / 3 / 2**0.5)


def test_noise_is_unknown_for_one_repeat() -> None:
    run = build.finished_run(("blue", "blue", "red"))
    assert run_report(run.pk).noise.sd_points is None


def test_a_broken_pin_is_the_first_warning_and_names_both_values() -> None:
    pins = [
        {"name": "dtype", "wanted": "float32", "found": "float32", "held": True},
        {"name": "max_num_seqs", "wanted": 1, "found": 8, "held": False},
    ]
    run = build.finished_run(by=build.process(pins=pins))
    report = run_report(run.pk)
    assert report.pins.held is False
    assert run_rows()[0].pins.held is False
    assert [pin.name for pin in report.pins.every] == ["max_num_seqs", "dtype"]
    assert report.warnings[0].code == "pins_broken"
    assert "max_num_seqs (should be 1, is 8)" in report.warnings[0].text


def test_a_pin_that_only_the_second_process_broke_is_broken() -> None:
    run = build.run(repeats=2)
    build.decode(run, 1, ("blue",) * 3, by=build.process())
    broken = [{"name": "max_num_seqs", "wanted": 1, "found": 4, "held": False}]
    build.decode(run, 2, ("blue",) * 3, by=build.process(pins=broken))
    report = run_report(run.pk)
    assert [(pin.found, pin.held) for pin in report.pins.every] == [(4, False)]


def test_responses_that_nobody_vouches_for_are_counted() -> None:
    run = build.finished_run()
    ResponseRecord.objects.filter(repeat__run=run, repeat__index=2).update(is_vouched=False)
    [warning] = [found for found in run_report(run.pk).warnings if found.code == "unvouched"]
    assert warning.text.startswith("3 responses came after a failed self-check")


def test_processes_of_one_bucket_with_other_self_checks_are_a_warning() -> None:
    run = build.run(repeats=2)
    other = [{"at": "2026-11-20T12:00:00+00:00", "digest": "e" * 64, "same": True}]
    build.decode(run, 1, ("blue",) * 3, by=build.process())
    build.decode(run, 2, ("blue",) * 3, by=build.process(self_checks=other))
    assert "self_check_differs" in codes(run)


def test_repeats_that_share_one_process_are_a_warning_and_two_processes_are_none() -> None:
    shared = build.finished_run(by=build.process())
    assert "one_process" in codes(shared)
    apart = build.run(repeats=2)
    build.decode(apart, 1, ("blue",) * 3, by=build.process())
    build.decode(apart, 2, ("blue",) * 3, by=build.process())
    assert "one_process" not in codes(apart)
    assert [line.repeats for line in run_report(apart.pk).processes] == [(1,), (2,)]


@pytest.mark.parametrize(("n_cases", "is_coarse"), [(24, True), (99, True), (100, False)])
def test_a_case_worth_more_than_a_point_is_a_warning(n_cases: int, is_coarse: bool) -> None:
    run = build.run(build.suite(case_ids=[f"case {number}" for number in range(n_cases)]))
    assert ("coarse_suite" in codes(run)) == is_coarse


def test_the_fast_profile_is_called_a_rough_signal() -> None:
    assert "rough_profile" in codes(build.run(under="fast"))
    assert "rough_profile" not in codes(build.run(under="pinned"))


def test_a_queued_run_without_any_worker_says_so() -> None:
    run = build.run()
    report = run_report(run.pk)
    assert "Pool default has no worker" in report.waiting
    assert "no_matching_worker" in codes(run)


def test_a_queued_run_says_why_the_only_worker_leaves_it_alone() -> None:
    run = build.run()
    leave_alone(
        worker=build.worker(), noun="run", key=run.pk, why="the run must stay on the serving stack that it began on."
    )
    assert "must stay on the serving stack" in run_report(run.pk).waiting
    assert "no_matching_worker" in codes(run)


def test_a_queued_run_with_a_free_worker_is_no_warning() -> None:
    run = build.run()
    build.worker()
    assert "(1 active" in run_report(run.pk).waiting
    assert "no_matching_worker" not in codes(run)


def test_a_second_run_with_the_same_bits_names_its_twin() -> None:
    by = build.process()
    first = build.finished_run(by=by)
    second = build.finished_run(by=by)
    twin = run_report(second.pk).twin
    assert twin is not None
    assert (twin.run, twin.n_equal, twin.n_compared) == (str(first.pk), 6, 6)
    assert run_report(first.pk).twin is None


def test_a_twin_is_compared_by_bits_not_by_texts() -> None:
    by = build.process()
    build.finished_run(("blue",) * 3, by=by)
    second = build.run(repeats=1)
    build.decode(second, 1, ("blue",) * 3, by=by, logprob=-0.26)
    twin = run_report(second.pk).twin
    assert twin is not None
    assert (twin.n_equal, twin.n_compared) == (0, 3)


def test_another_bucket_is_no_twin() -> None:
    build.finished_run(by=build.process(build.bucket("float32")))
    second = build.finished_run(by=build.process(build.bucket("bfloat16")))
    assert run_report(second.pk).twin is None


def test_scores_of_another_scorer_stand_beside_the_own_one() -> None:
    run = build.finished_run(("blue", "blue", "red"))
    rescore_run(run_id=run.pk, scorer={"kind": "contains"}, cases={"a/b c": {"kind": "regex", "pattern": "red"}})
    own, other = run_report(run.pk).scores
    assert (own.scorer.is_own, other.scorer.is_own) == (True, False)
    assert own.repeats == (pytest.approx(200 / 3),)
    assert other.repeats == (100.0,)


def test_progress_counts_shards_and_no_response() -> None:
    run = build.run(repeats=2)
    Shard.objects.filter(repeat__run=run, repeat__index=1).update(n_done=2)
    progress = run_report(run.pk).progress
    assert (progress.n_done, progress.n_total) == (2, 6)
    assert progress.rate_per_second is None


def test_the_speed_of_added_repeats_forgets_the_time_between() -> None:
    run = build.finished_run(("blue",) * 3)
    add_repeats(run_id=run.pk, n=1)
    assert run_report(run.pk).progress.rate_per_second is None
    shards = Shard.objects.filter(repeat__run=run, repeat__index=2)
    shards.update(n_done=1)
    progress = run_report(run.pk).progress
    assert progress.eta_seconds is None  # nothing runs, so there is no estimate
    shards.update(status=Shard.Status.RUNNING)
    progress = run_report(run.pk).progress
    assert progress.rate_per_second is not None
    assert progress.eta_seconds == pytest.approx(2 / progress.rate_per_second)


def test_the_estimate_leaves_out_the_time_in_which_nothing_ran() -> None:
    worker = build.worker(pace=4.0)
    run = build.run(repeats=3)
    build.decode(run, 1, ["blue"] * 3)
    build.decode(run, 2, ["blue"], ends=False)
    RunRecord.objects.filter(pk=run.pk).update(started_at=timezone.now() - timedelta(hours=10))
    Shard.objects.filter(repeat__run=run, repeat__index=2).update(owner=worker, n_done=1)
    assert run_report(run.pk).progress.eta_seconds == pytest.approx((2 + 3) / 4.0)
    WorkerRecord.objects.update(pace=None)
    assert run_report(run.pk).progress.eta_seconds > 3600  # what is known then is the speed since the start


def test_the_last_error_is_the_newest_one_of_the_history() -> None:
    run = build.run()
    for text in ("first", "second"):
        Event.objects.create(run=run, level=Event.Level.ERROR, code="engine_error", text=text)
    assert run_report(run.pk).errors.last == "second"


def test_stored_bytes_grow_with_what_is_stored() -> None:
    empty, full = build.run(), build.finished_run()
    assert run_report(empty.pk).stored_bytes == 0
    assert run_report(full.pk).stored_bytes > 0


def test_a_run_that_is_not_there_is_said_to_be_missing() -> None:
    for read in (run_report, case_rows):
        with pytest.raises(NotFound):
            read(404)


@pytest.mark.parametrize(
    ("wanted", "n"),
    few(
        [
            ({"suite": "colours"}, 2),
            ({"suite": "shapes"}, 0),
            ({"endpoint": "local"}, 2),
            ({"status": "finished"}, 1),
            ({"label": "branch"}, 1),
            ({"label": "branch=main"}, 1),
            ({"label": "branch=other"}, 0),
        ],
        3,
    ),
)
def test_runs_are_filtered(wanted: dict[str, str], n: int) -> None:
    build.run(labels={"branch": "main"})
    build.finished_run()
    assert len(RunFilter(**wanted).runs()) == n


def test_runs_are_filtered_by_bucket() -> None:
    first, second = build.finished_run(), build.finished_run()
    assert {run.pk for run in RunFilter(bucket=first.bucket_id).runs()} == {first.pk, second.pk}


@pytest.mark.nightly
def test_fifty_runs_cost_as_many_queries_as_one() -> None:
    by = build.process()
    build.finished_run(by=by)
    for_one = n_queries(run_rows), n_queries(board_slice.board), n_queries(suite_rows)
    for _ in range(49):
        build.finished_run(by=by)
    assert len(run_rows()) == 50
    assert (n_queries(run_rows), n_queries(board_slice.board), n_queries(suite_rows)) == for_one


@pytest.mark.nightly
def test_fifty_cases_and_ten_repeats_cost_as_many_queries_as_one() -> None:
    by = build.process()
    small = build.finished_run(("blue",), version=build.suite("one", ["only"]), by=by)
    large = build.run(build.suite("many", [f"case {number}" for number in range(50)]), repeats=10)
    for repeat in range(1, 11):
        build.decode(large, repeat, ["blue"] * 50, by=by)
    for read in (run_report, case_rows):
        assert n_queries(lambda read=read: read(large.pk)) == n_queries(lambda read=read: read(small.pk))  # type: ignore[misc]


def test_no_report_counts_responses() -> None:
    run = build.finished_run()
    with CaptureQueriesContext(connection) as queries:
        run_report(run.pk)
    counting = [query["sql"] for query in queries if "COUNT(*)" in query["sql"] and "runs_response" in query["sql"]]
    # The one count there is reads a partial index that holds only responses that nobody vouches for.
    assert all("is_vouched" in sql for sql in counting)


def test_workers_are_told_apart() -> None:
    run = build.run()
    working = build.worker("working")
    build.worker("idle")
    build.worker("silent", seen_at="2026-01-01T00:00:00Z")
    build.worker("stopped", stopped_at="2026-01-01T00:00:00Z")
    Shard.objects.filter(repeat__run=run, repeat__index=2).update(status=Shard.Status.RUNNING, owner=working)
    rows = {row.name: row for row in worker_rows()}
    assert {name: row.state for name, row in rows.items()} == {name: name for name in rows}
    shard = rows["working"].shard
    assert shard is not None
    assert (shard.run, shard.repeat, shard.last) == (str(run.pk), 2, 2)
    assert rows["idle"].shard is None


def test_workers_cost_a_fixed_number_of_queries() -> None:
    build.worker("one")
    for_one = n_queries(worker_rows)
    for number in range(49):
        build.worker(f"worker {number}")
    assert n_queries(worker_rows) == for_one


def test_the_board_shows_what_needs_somebody() -> None:
    failed = build.run()
    RunRecord.objects.filter(pk=failed.pk).update(status=RunRecord.Status.FAILED)
    finished = build.finished_run([build.TARGET] * 3, [build.TARGET] * 3)
    queued = build.run()
    build.worker("silent", seen_at="2026-01-01T00:00:00Z")
    board = board_slice.board()
    assert [row.id for row in board.attention] == [str(failed.pk)]
    assert [row.id for row in board.in_progress] == [str(queued.pk)]
    assert (board.n_finished, board.newest_finished) == (1, (finished.pk,))
    assert [worker.name for worker in board.silent_workers] == ["silent"]


def test_a_stopped_worker_is_not_silent() -> None:
    build.worker("gone", seen_at="2026-01-01T00:00:00Z", stopped_at="2026-01-01T00:00:00Z")
    assert board_slice.board().silent_workers == ()
    assert WorkerRecord.objects.count() == 1
