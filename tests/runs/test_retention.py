"""Rules delete old traces, texts and runs, and never what a baseline or a signed release depends on."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.db.models.functions import Now

from evalboard.core.errors import Conflict, InvalidInput, NotFound
from runs import acts
from runs.compare import compare
from runs.models import (
    AnchorSetRecord,
    AnswerSet,
    BaselineRecord,
    Case,
    ComparisonRecord,
    DeletionRecord,
    ExperimentRecord,
    ForcedScoringRecord,
    JudgingRecord,
    ProbeRecord,
    RepeatScore,
    ReplayRecord,
    ResponseRecord,
    Rotation,
    RunRecord,
    Scorer,
    ScoringRecord,
    Suite,
    TraceBlock,
)
from runs.release import create_release, sign_release
from runs.release.verdicts import decide_release
from runs.retention import apply_rules, count_due, create_rule, deletions, due_rows, purge_case, retention, storage_rows
from runs.run import add_repeats, create_run, find_order, response_page, run_report
from runs.run.runs import store_order
from runs.suites import reference_suite, rescore_run, set_endings
from runs.sweep import reconcile
from runs.work.judgings import plan_anchors
from tests import build, judged
from tests.waiting import wait_until, waits_for_lock

pytestmark = pytest.mark.django_db
JUDGED = {"default": {"kind": "judge", "anchors": 2, "anchor_draws": 1, "twice": 1, "draws": 1}, "cases": {}}


def old(run: RunRecord, days: int = 100) -> RunRecord:
    long_ago = Now() - timedelta(days=days)
    RunRecord.objects.filter(pk=run.pk).update(created_at=long_ago, finished_at=long_ago)
    return run


def texts_of(run: RunRecord) -> set[str]:
    return set(ResponseRecord.objects.filter(repeat__run=run).values_list("text", flat=True))


def blocks_of(run: RunRecord) -> int:
    return TraceBlock.objects.filter(run=run).count()


def due() -> set[tuple[int, str]]:
    return {(int(row.run), row.what) for row in due_rows()}


@pytest.fixture
def runs(db: None) -> tuple[RunRecord, RunRecord]:
    """An old run and a new one of one suite."""
    judged.policy()
    return old(judged.run()), judged.run()


def test_what_is_due_is_said_first_and_then_deleted(runs: tuple[RunRecord, RunRecord]) -> None:
    first, second = runs
    rule = create_rule(what="traces", days=30)
    assert due() == {(first.pk, "traces")}
    assert blocks_of(first) > 0, "saying it deletes nothing"
    assert apply_rules() == 1
    assert (blocks_of(first), blocks_of(second) > 0, due()) == (0, True, set())
    assert "" not in texts_of(first)
    [said] = [each.text for each in run_report(first.pk).warnings if each.code == "answers_deleted"]
    assert f"by rule {rule.pk}: traces of runs after 30 days" in said


def test_texts_go_with_what_quotes_them_and_scores_stay(runs: tuple[RunRecord, RunRecord]) -> None:
    first, second = runs
    before = list(RepeatScore.objects.filter(repeat__run=first).values_list("scores", "points"))
    create_rule(what="texts", days=30)
    create_rule(what="traces", days=10)
    assert due() == {(first.pk, "texts")}, "once, by the rule that deletes more"
    reconcile()
    assert (texts_of(first), blocks_of(first)) == ({""}, 0)
    assert list(RepeatScore.objects.filter(repeat__run=first).values_list("scores", "points")) == before
    case = Case.objects.filter(suite_version=first.suite_version).first()
    assert case is not None
    [said] = response_page(first.pk, repeat=1, case_id=case.case_id).deletions
    assert "The texts of this run's answers were deleted on" in said
    first.refresh_from_db()
    assert acts.refusal("rescore", first) is not None
    with pytest.raises(Conflict, match=r"The texts of run \d+ were deleted on"):
        compare(baseline=first.pk, candidate=second.pk)


def test_a_rule_is_of_a_label_and_a_suite(runs: tuple[RunRecord, RunRecord]) -> None:
    first, _ = runs
    create_rule(what="traces", days=30, label="branch=old")
    create_rule(what="texts", days=30, suite=build.suite("other").suite.slug)
    assert due() == set()
    RunRecord.objects.filter(pk=first.pk).update(labels={"branch": "old"})
    assert due() == {(first.pk, "traces")}


def test_a_baseline_and_a_signed_release_keep_their_runs(runs: tuple[RunRecord, RunRecord]) -> None:
    first, second = runs
    old(second)
    user = build.user("rita", "release manager")
    for what in ("traces", "texts", "runs"):
        create_rule(what=what, days=30)
    gate = {"suite": "colours", "baseline": first.pk, "candidate": second.pk}
    release = create_release(gates=[gate], policy="lenient", labels={}, user=user)
    assert due() == {(first.pk, "texts"), (second.pk, "texts")}, "an unsigned release keeps runs, not their texts"
    shown = decide_release(release_id=release.pk).input_digest
    sign_release(release_id=release.pk, decision="reject", note="Old.", input_digest=shown, user=user)
    assert due() == set()
    assert apply_rules() == 0


def test_whole_runs_are_deleted_last(runs: tuple[RunRecord, RunRecord]) -> None:
    first, _ = runs
    create_rule(what="runs", days=30)
    apply_rules()
    assert not RunRecord.objects.filter(pk=first.pk).exists()
    [tombstone] = deletions().rows()
    assert (tombstone.what, tombstone.run, tombstone.by) == ("runs", str(first.pk), None)


def test_no_run_begins_of_a_version_that_loses_a_case_at_the_same_moment(runs: tuple[RunRecord, RunRecord]) -> None:
    """Each holds the version until its end, so that the other waits and sees what the first did."""
    version = runs[0].suite_version
    wanted = {"suite": version.suite.slug, "endpoint": runs[0].endpoint.slug, "profile": runs[0].profile.slug}
    order = find_order(**wanted)
    held = "SELECT mode FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND pid = pg_backend_pid()"
    with connection.cursor() as cursor:
        RunRecord.objects.filter(pk=create_run(**wanted).pk).update(status="cancelled")
        cursor.execute(held, [version.pk])
        assert cursor.fetchall() == [("ShareLock",)]
        purge_case(suite=version.suite.slug, case_id=version.cases.earliest("index").case_id, reason="Ticket 17.")
        cursor.execute(held, [version.pk])
        assert ("ExclusiveLock",) in cursor.fetchall()
    with pytest.raises(InvalidInput, match="not valid") as refused:
        store_order(order, user=None)
    assert "was deleted; push a version without it" in refused.value.fields["suite"]


def test_one_case_is_deleted_with_a_tombstone(runs: tuple[RunRecord, RunRecord]) -> None:
    first, second = runs
    user = build.user("ada", "admin")
    version = first.suite_version
    case, other = version.cases.order_by("index")[:2]
    purge_case(suite=version.suite.slug, case_id=case.case_id, reason="Ticket 17.", user=user)
    answers = ResponseRecord.objects.filter(repeat__run__in=runs)
    assert not answers.filter(case_index=case.index).exclude(text="", trace_block=None).exists()
    assert "" not in answers.filter(case_index=other.index).values_list("text", flat=True)
    case.refresh_from_db()
    assert case.content["messages"] == [{"role": "user", "content": "[deleted]"}]
    page = response_page(first.pk, repeat=1, case_id=case.case_id)
    assert "Ticket 17." in page.deletions[0]
    assert page.trace is None
    assert response_page(first.pk, repeat=1, case_id=other.case_id).trace is not None, "its block keeps its slots"
    compare(baseline=first.pk, candidate=second.pk)
    with pytest.raises(InvalidInput) as refused:
        create_run(suite=version.suite.slug, endpoint=first.endpoint.slug, profile=first.profile.slug)
    assert "was deleted" in refused.value.fields["suite"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"what": "all", "days": 1}, "what"),
        ({"what": "texts", "days": 0}, "days"),
        ({"what": "texts", "days": 36_501}, "days"),
        ({"what": "texts", "days": 1, "label": "branch"}, "label"),
    ],
)
def test_a_wrong_rule_is_refused(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        create_rule(**fields)
    assert list(refused.value.fields) == [named]


def test_what_suites_take_falls_with_what_is_deleted(runs: tuple[RunRecord, RunRecord]) -> None:
    [before] = [row for row in storage_rows() if row.n_runs]
    create_rule(what="traces", days=30)
    apply_rules()
    [after] = [row for row in storage_rows() if row.n_runs]
    assert (after.n_runs, after.n_responses, after.scores) == (before.n_runs, before.n_responses, before.scores)
    assert 0 < after.traces < before.traces
    assert DeletionRecord.objects.get().n_bytes > 0


def test_a_run_without_texts_keeps_its_scores(runs: tuple[RunRecord, RunRecord]) -> None:
    first, _ = runs
    ResponseRecord.objects.filter(repeat__run=first).update(ending="unknown", finish_reason="halted")
    create_rule(what="texts", days=30)
    apply_rules()
    before = list(RepeatScore.objects.filter(repeat__run=first).values_list("scores", "points"))
    with pytest.raises(Conflict, match="were deleted"):
        rescore_run(run_id=first.pk)
    set_endings(endpoint=first.endpoint.slug, endings={"halted": "cut"})
    with pytest.raises(Conflict, match="were deleted"):
        add_repeats(run_id=first.pk, n=1)
    assert list(RepeatScore.objects.filter(repeat__run=first).values_list("scores", "points")) == before


def judging(of: RunRecord, **changes: Any) -> JudgingRecord:
    """A judging of a run whose judge was asked about each case's first answer, in a run of its own."""
    judged_suite = of.suite_version.suite
    asked = build.suite(f"j{of.pk}", case_ids=[f"answer-1-{case.index}-1" for case in of.suite_version.cases.all()])
    judge_run = judged.run(version=asked, repeats=1)
    Suite.objects.filter(pk=asked.suite_id).update(judged_suite=judged_suite)
    for case in of.suite_version.cases.all():
        asked.cases.filter(index=case.index).update(group=case.case_id)
    return JudgingRecord.objects.create(
        **{"run": of, "scorer": asked.scorer, "judge_run": judge_run, "status": "finished"} | changes
    )


def test_a_run_that_is_read_now_is_left_alone(runs: tuple[RunRecord, RunRecord]) -> None:
    """Its judge would be asked about empty texts, and score them."""
    first, _ = runs
    at_work = judging(first, status="running")
    for what in ("texts", "runs"):
        create_rule(what=what, days=30)
    case = first.suite_version.cases.first()
    assert case is not None
    assert (due(), apply_rules()) == (set(), 0)
    with pytest.raises(Conflict, match="reads the answers of run"):
        purge_case(suite="colours", case_id=case.case_id, reason="Ticket 17.")
    JudgingRecord.objects.filter(pk=at_work.pk).update(status="finished")
    assert due() == {(first.pk, "runs")}


def test_whatever_reads_the_answers_of_a_run_now_keeps_them(runs: tuple[RunRecord, RunRecord]) -> None:
    first, second = runs
    rule = create_rule(what="texts", days=30)
    repeat, version = first.repeats.first(), first.suite_version
    own: dict[str, Any] = {"endpoint": first.endpoint, "profile": first.profile}
    probe = ProbeRecord.objects.create(kind="verify", parameters={}, status="finished", **own)
    AnswerSet.objects.create(probe=probe, role="endpoint", run=first)
    lab: dict[str, Any] = {"kind": "bisect", "suite_version": version, "n_runs": 1, "budget_minutes": 1.0, **own}
    waiting_or_at_work = [
        ScoringRecord(repeat=repeat, scorer=version.scorer, needs=[]),
        ForcedScoringRecord(run=first, repeats=[1], n_answers=1, n_tokens=1, **own),
        ReplayRecord(run=first, repeat=repeat, case_index=0, variants=[{}], **own),
        probe,
    ]
    pairs = [{"baseline": first, "candidate": second}, {"baseline": second, "candidate": first}]
    readers = [(reader, status) for reader in waiting_or_at_work for status in ("queued", "running")]
    readers += [(ComparisonRecord(input_digest=f"{place}", **pair), "queued") for place, pair in enumerate(pairs)]
    readers += [(ExperimentRecord(**lab, **pair), "running") for pair in pairs]
    due_now = retention._due(rule)
    assert due_now.get() == first
    for reader, status in readers:
        reader.status = status
        reader.save()
        assert not due_now.exists(), (reader, status)
        reader.status = "finished"
        reader.save()
        assert due_now.exists(), reader


def test_what_is_no_older_than_a_rule_says_or_is_referred_to_is_kept(runs: tuple[RunRecord, RunRecord]) -> None:
    first, second = runs
    whole, texts = retention._due(create_rule(what="runs", days=30)), retention._due(create_rule(what="texts", days=30))
    now, then = Now(), Now() - timedelta(days=100)
    for changes in ({"finished_at": now}, {"created_at": now}, {"status": "running"}):  # of a log: imported now
        RunRecord.objects.filter(pk=first.pk).update(**changes)
        assert not texts.exists(), changes
        RunRecord.objects.filter(pk=first.pk).update(finished_at=then, created_at=then, status="finished")
    assert (whole.get(), texts.get()) == (first, first)
    stack = build.bucket().fingerprint
    rotation = Rotation.objects.create(endpoint=first.endpoint, before=stack, after=stack, run=first)
    assert (whole.exists(), texts.exists()) == (False, True), "its row dates the rotation"
    Rotation.objects.filter(pk=rotation.pk).update(run=second)
    rotation.reference_runs.add(first)
    assert (whole.exists(), texts.exists()) == (False, False), "it waits to be compared"
    rotation.reference_runs.clear()
    judge_run = old(judging(second).judge_run)
    assert set(texts.all()) == {first}, "a judge's run goes with the run that it judged"
    BaselineRecord.objects.create(
        suite=first.suite_version.suite, line="paint", profile_slug="pinned", run=first, reason="Good."
    )
    assert (whole.exists(), texts.exists()) == (False, False)
    case = first.suite_version.cases.first()
    assert case is not None
    with pytest.raises(Conflict, match="is a baseline"):
        purge_case(suite="colours", case_id=case.case_id, reason="Ticket 17.")
    with pytest.raises(InvalidInput):
        purge_case(suite="colours", case_id=case.case_id, reason=" ", voids_sign_offs=True)
    for other in ({"suite": "others"}, {"case_id": "none"}):
        with pytest.raises(NotFound):
            purge_case(**{"suite": "colours", "case_id": case.case_id, "reason": "Ticket 17.", **other})
    for at_work in (second, judge_run):
        RunRecord.objects.filter(pk=at_work.pk).update(status="running")
        with pytest.raises(Conflict, match=f"Run {at_work.pk} is at work on case"):
            purge_case(suite="colours", case_id=case.case_id, reason="Ticket 17.", voids_sign_offs=True)
        RunRecord.objects.filter(pk=at_work.pk).update(status="finished")
    assert purge_case(suite="colours", case_id=case.case_id, reason="Ticket 17.", voids_sign_offs=True)


def test_a_rotation_that_a_judges_run_dates_is_kept(runs: tuple[RunRecord, RunRecord]) -> None:
    first, _ = runs
    judge_run = judging(first).judge_run
    assert judge_run is not None
    stack = build.bucket().fingerprint
    Rotation.objects.create(endpoint=judge_run.endpoint, before=stack, after=stack, run=judge_run)
    create_rule(what="runs", days=30)
    assert due() == set()
    create_rule(what="texts", days=30)
    assert apply_rules() == 1
    assert Rotation.objects.filter(run=judge_run).exists()
    assert texts_of(judge_run) == {""}


def test_a_run_that_cannot_be_deleted_stops_no_other(
    runs: tuple[RunRecord, RunRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = runs
    old(second)
    create_rule(what="texts", days=30)
    real = retention._delete_texts

    def fail_once(run: RunRecord) -> None:
        assert run.pk != first.pk, "as where a row is damaged"
        real(run)

    monkeypatch.setattr(retention, "_delete_texts", fail_once)
    assert count_due() == 2
    assert len(due_rows(1)) == 1
    assert apply_rules(limit=1) == 1
    assert due() == {(first.pk, "texts")}


def test_a_case_is_deleted_wherever_it_was_copied(runs: tuple[RunRecord, RunRecord]) -> None:
    first, second = runs
    case, other = first.suite_version.cases.order_by("index")[:2]
    prompt = case.content["messages"][0]["content"]
    reference = reference_suite(slug="colours", first=3)
    of_reference = build.finished_run(["blue"] * 3, version=reference)
    judge_run = judging(first).judge_run
    assert judge_run is not None
    judge = Scorer.objects.create(digest="j", spec=JUDGED)
    kept = [{"case": each.case_id, "text": "blue", "tags": [], **each.content} for each in (case, other)]
    anchors = AnchorSetRecord.objects.create(suite=first.suite_version.suite, digest="a", anchors=kept)
    assert plan_anchors(first.suite_version, judge).stored == anchors
    purge_case(suite=reference.suite.slug, case_id=case.case_id, reason="Ticket 17.")
    anchors.refresh_from_db()
    assert plan_anchors(first.suite_version, judge).stored is None, "the next judging chooses new ones"
    assert prompt not in str(anchors.anchors)
    assert anchors.anchors[1] == kept[1]
    assert not Case.objects.filter(case_id=case.case_id, content__messages__0__content=prompt).exists()
    for run in (first, second, of_reference, judge_run):
        answers = ResponseRecord.objects.filter(repeat__run=run)
        assert set(answers.filter(case_index=0).values_list("text", flat=True)) == {""}
        assert "" not in answers.filter(case_index=1).values_list("text", flat=True)
    asked = judge_run.suite_version.cases
    assert [each.content["messages"][0]["content"] for each in asked.order_by("index")[:1]] == ["[deleted]"]
    assert case.case_id not in [each.case_id for each in reference_suite(slug="colours", first=3).cases.all()]
    assert acts.refusal("add_repeats", first) is not None
    assert acts.refusal("complete", first) is not None


@pytest.mark.django_db(transaction=True)
def test_a_deletion_waits_for_a_sign_off_and_finds_it() -> None:
    judged.policy()
    first, second = old(judged.run()), judged.run()
    user = build.user("rita", "release manager")
    gate = {"suite": "colours", "baseline": first.pk, "candidate": second.pk}
    release = create_release(gates=[gate], policy="lenient", labels={}, user=user)
    shown = decide_release(release_id=release.pk).input_digest
    create_rule(what="texts", days=30)

    def delete() -> int:
        try:
            return apply_rules()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            sign_release(release_id=release.pk, decision="reject", note="Old.", input_digest=shown, user=user)
            deletion = pool.submit(delete)
            wait_until(waits_for_lock)
        assert deletion.result() == 0
    assert "" not in texts_of(first)
