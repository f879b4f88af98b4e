"""Rules delete old traces, texts and runs, and never what a baseline or a signed release depends on."""

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from evalboard.core.errors import Conflict, InvalidInput
from runs import acts
from runs.compare import compare
from runs.models import Case, DeletionRecord, RepeatScore, ResponseRecord, RunRecord, TraceBlock
from runs.release import create_release, sign_release
from runs.release.verdicts import decide_release
from runs.retention import apply_rules, create_rule, deletions, due_rows, purge_case, storage_rows
from runs.run import create_run, response_page, run_report
from runs.sweep import reconcile
from tests import build, judged

pytestmark = pytest.mark.django_db


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


def test_one_case_is_deleted_with_a_tombstone(runs: tuple[RunRecord, RunRecord]) -> None:
    first, second = runs
    user = build.user("ada", "admin")
    version = first.suite_version
    case, other = version.cases.order_by("index")[:2]
    purge_case(suite=version.suite.slug, case_id=case.case_id, reason="Ticket 17.", user=user)
    answers = ResponseRecord.objects.filter(repeat__run__in=runs)
    assert set(answers.filter(case_index=case.index).values_list("text", "trace_block")) == {("", None)}
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
