"""Answers out of a cache or after a fallback: stored with their marks, shown, and left out of noise and verdicts."""

import io

import pytest

from evalboard.core.archive import RunArchive
from evalboard.importers.records import LoggedResponse, LoggedRun
from runs import exports
from runs.compare import compare, trace_pair
from runs.models import CaseColumns, ReleaseRecord, ResponseRecord, RunRecord
from runs.release import create_release, suite_badge
from runs.run import run_report
from runs.suites.noise import bucket_noises
from runs.suites.read_history import histories
from tests.build import case_rows
from tests.runs import logs

pytestmark = pytest.mark.django_db
REPEATS = range(1, 6)


def answers(case: str, *, cached_from: int = 6, score: float = 1.0) -> list[LoggedResponse]:
    """Five responses to a case, the cache's from one repeat on."""
    return [
        logs.response(case, repeat, f"blue {repeat}", score=score, flags=("cached",) if repeat >= cached_from else ())
        for repeat in REPEATS
    ]


def log(*, cached_from: int = 6) -> LoggedRun:
    given = [each for case in logs.CASES for each in answers(case, cached_from=cached_from, score=float(case != "sun"))]
    return logs.log(*given, model="lab/paint-2b")


def release_of(baseline: RunRecord, candidate: RunRecord) -> ReleaseRecord:
    gate = {"suite": "colours", "baseline": baseline.pk, "candidate": candidate.pk}
    return create_release(gates=[gate], policy="paired")


def test_marks_are_stored_by_response_and_packed_by_case() -> None:
    marked = logs.response("sun", flags=("retried", "fallback"))
    run = logs.stored(logs.log(logs.response("sky"), logs.response("sea", flags=("cached",)), marked))
    assert dict(ResponseRecord.objects.values_list("case_index", "marks")) == {0: 1, 1: 0, 2: 6}  # sea, sky, sun
    columns = CaseColumns.objects.get(repeat__run=run)
    assert (bytes(columns.marks or b""), columns.n_left_out) == (b"\x01\x00\x06", 2)
    assert run.status == "finished"  # an answer that is left out is not missing


def test_what_carries_no_mark_is_stored_as_it_always_was() -> None:
    run = logs.stored(logs.log())
    assert set(CaseColumns.objects.filter(repeat__run=run).values_list("marks", "n_left_out")) == {(None, 0)}


def test_a_run_with_one_draw_of_each_case_has_one_repeat_and_no_noise() -> None:
    run = logs.stored(log(cached_from=2))
    report = run_report(run.pk)
    assert (report.status, report.n_left_out) == ("finished", (0, 3, 3, 3, 3))
    assert report.points == pytest.approx((200 / 3,) * 5)  # they are answers, and are shown
    assert report.range_so_far == pytest.approx((200 / 3, 200 / 3))
    assert len(report.drawn_points) == 1
    noise = report.noise
    assert (noise.n_repeats, noise.sd_points, noise.n_unstable, noise.interval) == (1, None, None, None)
    assert noise.texts_alike is None
    warning = next(each for each in report.warnings if each.code == "unclean_responses")
    assert warning.text.startswith("Of 15 responses, 12 came from a cache.")


def test_a_score_that_only_a_cached_answer_has_makes_no_case_unstable() -> None:
    cached = logs.response("sky", 3, score=0.0, flags=("cached",))
    others = [
        logs.response(case, repeat, f"blue {repeat}")
        for case in logs.CASES
        for repeat in (1, 2, 3)
        if (case, repeat) != ("sky", 3)
    ]
    run = logs.stored(logs.log(cached, *others))
    report = run_report(run.pk)
    assert (report.noise.n_repeats, report.noise.n_unstable, report.noise.sd_points) == (3, 0, 0.0)
    assert report.range_so_far == (100.0, 100.0)  # of the two repeats that are draws alone
    row = next(row for row in case_rows(run.pk) if row.case == "sky")
    assert (row.is_unstable, row.scores, row.marks) == (False, (1.0, 1.0, 0.0), ((), (), ("cached",)))
    assert [row.case for row in case_rows(run.pk, only="left_out")] == ["sky"]


def test_a_suite_measures_its_noise_and_draws_its_history_from_draws() -> None:
    run = logs.stored(log(cached_from=4))
    bucket = histories(run.suite_version)[0]
    assert len(bucket.runs[0].points) == 3
    assert bucket_noises([bucket], version_id=run.suite_version_id, n_cases=3)[bucket.bucket_id].n_repeats == 3


def test_where_every_repeat_has_one_nothing_spans_them() -> None:
    run = logs.stored(log(cached_from=1))
    report = run_report(run.pk)
    assert (report.status, report.range_so_far, report.noise.n_repeats) == ("finished", None, 0)
    assert suite_badge("colours").run is not None


@pytest.mark.nightly
def test_a_release_over_a_cached_log_says_why_it_may_not_be_believed() -> None:
    baseline, candidate = logs.stored(log(), "one"), logs.stored(log(cached_from=2), "two")
    document = release_of(baseline, candidate).verdict.document
    assert document["verdict"] == "inconclusive"
    assert [reason["code"] for reason in document["reasons"]] == ["cached"]
    assert document["reasons"][0]["text"] == (
        "12 responses of the candidate came from a cache. Such answers do not show the model's own noise. Without them "
        "the candidate has 1 repeat and the baseline 5, and a verdict takes 5."
    )
    assert [step["code"] for step in document["next"]] == ["run_uncached"]
    assert document["gates"][0]["missing"]["n_candidate"] == 0


@pytest.mark.nightly
def test_a_comparison_pairs_them_and_shows_the_mark() -> None:
    baseline, candidate = logs.stored(log(), "one"), logs.stored(log(cached_from=2), "two")
    found = compare(baseline=baseline.pk, candidate=candidate.pk)
    assert found.summary["counts"]["n_pairs"] == 15
    assert found.summary["counts"]["missing"] == 0
    pair = trace_pair(baseline.pk, candidate.pk, case_id="sky", repeats=(2, 2))
    facts = {fact.field: (fact.baseline, fact.candidate) for fact in pair.provenance}
    assert facts["marks"] == ("none", "cached")


@pytest.mark.django_db(transaction=True)
def test_exports_carry_the_marks() -> None:
    run = logs.stored(log(cached_from=2))
    archive = RunArchive(io.BytesIO(b"".join(exports.run_archive(run.pk))))
    archive.check()
    rows = list(exports.case_table(run.pk).rows())
    assert [row["marks"] for row in rows if row["case"] == "sky"] == [[], *[["cached"]] * 4]
    assert [each["n_left_out"] for each in archive.manifest["repeats"]] == [0, 3, 3, 3, 3]
