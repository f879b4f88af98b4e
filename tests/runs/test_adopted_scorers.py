"""A release after a suite adopted another scorer: one scorer judges both sides once the baseline is scored by it."""

from collections.abc import Mapping
from typing import Any

import pytest

from evalboard.core.errors import Conflict
from evalboard.core.scoring import ScorerReply
from runs.compare import compare, trace_pair
from runs.models import (
    ComparisonRecord,
    ReleaseRecord,
    RepeatScore,
    RunRecord,
    ScoringRecord,
    SuiteVersionRecord,
    Verdict,
    WorkerRecord,
)
from runs.release import decide_release, verdicts
from runs.run import add_repeats, cancel_run
from runs.suites import adopt_scorer, rescore_run
from runs.work import claim_scoring, finish_scoring, read_to_score
from tests import build
from tests.casts import cast
from tests.runs import judged
from tests.runs.judged import ALWAYS, SAMPLE_POLICY, codes

pytestmark = pytest.mark.django_db
FOLDED = {"kind": "exact", "normalise": {"case": "fold"}}
OWN = {"kind": "command", "name": "folded", "digest": "ab" * 32}
SHOUTED = range(3)  # cases that only the new scorer takes for right: 10 points of 30 cases
WRONG = {11: ALWAYS}


def shouting(of: SuiteVersionRecord, wrong: Mapping[int, Any], *, repeats: int = 5, by: Any) -> RunRecord:
    """A finished run that answers SHOUTED in capitals."""
    run = build.run(of, repeats=repeats)
    judged.bind(run, by.bucket)
    more(run, range(1, repeats + 1), wrong, by=by)
    return run


def more(run: RunRecord, repeats: range, wrong: Mapping[int, Any], *, by: Any) -> None:
    for repeat in repeats:
        texts = judged.texts(run.suite_version.n_cases, repeat, wrong)
        build.decode(run, repeat, [*(text.upper() for text in texts[:3]), *texts[3:]], by=by)
    run.refresh_from_db()


@cast
def adopted() -> Any:
    """A baseline under the old scorer, a candidate of other weights under the adopted one, and their processes."""
    processes = build.process(), build.process(build.bucket(weights="e" * 64))
    baseline = shouting(judged.suite(policy=SAMPLE_POLICY), {}, by=processes[0])
    version, is_new = adopt_scorer(slug="sample", scorer=FOLDED)
    assert is_new
    return baseline, shouting(version, WRONG, by=processes[1]), processes


def word(release: ReleaseRecord) -> Verdict:
    return decide_release(release_id=release.pk)


def ledger_of(release: ReleaseRecord) -> tuple[ComparisonRecord, dict[str, float]]:
    comparison = verdicts.compare_gate(verdicts.decide(release_id=release.pk), 0)
    return comparison, {row["cause"]: row["points"] for row in comparison.summary["ledger"]}


def test_scoring_the_baseline_again_makes_the_release_comparable_and_the_scorers_points_stay_its_own(
    adopted: Any,
) -> None:
    baseline, candidate, _ = adopted
    release = judged.release(baseline, candidate)
    before = word(release)
    assert (before.word, codes(before.document["reasons"])) == ("not_comparable", ["scorer_changed"])
    assert [line["text"] for line in before.document["next"]] == [
        "Score the baseline again with the candidate's scorer."
    ]
    rescore_run(run_id=baseline.pk, scorer={"kind": "contains"})  # another one than the candidate's
    assert word(release).pk == before.pk

    rescore_run(run_id=baseline.pk, scorer=FOLDED)
    after = word(release)
    assert (after.word, codes(after.document["reasons"])) == ("inconclusive", ["not_settled"])
    [gate] = after.document["gates"]
    assert gate["difference"] == pytest.approx(-100 / 30)
    assert (gate["score_baseline"], gate["points_baseline"]) == (100.0, [100.0] * 5)
    [shared] = [line for line in after.document["warnings"] if line["code"] == "scorer_shared"]
    assert "moves the baseline's score by +10.0 points over 3 cases. The change shown" in shared["text"]
    comparison, points = ledger_of(release)
    assert "scorer" not in points
    assert sum(points.values()) == pytest.approx(gate["difference"])
    report = build.comparison_report(comparison.pk)
    assert (report.comparable, report.score.baseline) == (True, 100.0)
    assert [repeat.score for repeat in report.sides.baseline.repeats] == [100.0] * 5
    assert report.sides.baseline.scorer == report.sides.candidate.scorer
    pair = trace_pair(baseline.pk, candidate.pk, case_id="case-001", repeats=(1, 1))
    assert (pair.baseline.score, pair.baseline.scorer_digest) == (100.0, pair.candidate.scorer_digest)


def test_until_every_repeat_has_its_scores_the_scorers_part_the_sides(adopted: Any) -> None:
    baseline, candidate, _ = adopted
    release = judged.release(baseline, candidate)
    rescore_run(run_id=baseline.pk, scorer=FOLDED)
    new = RepeatScore.objects.filter(repeat__run=baseline, scorer=candidate.suite_version.scorer)
    new.filter(repeat__index=5).delete()
    decided = word(release)
    assert codes(decided.document["reasons"]) == ["scorer_changed"]
    comparison, points = ledger_of(release)
    score = comparison.summary["score"]
    assert score["baseline"] == 90.0
    assert points["scorer"] == pytest.approx(10.0)
    assert sum(points.values()) == pytest.approx(score["difference"])


def test_scores_of_the_candidate_by_the_old_scorer_change_nothing(adopted: Any) -> None:
    baseline, candidate, _ = adopted
    release = judged.release(baseline, candidate)
    rescore_run(run_id=candidate.pk, scorer={"kind": "exact"})
    assert codes(word(release).document["reasons"]) == ["scorer_changed"]
    comparison, points = ledger_of(release)
    assert comparison.summary["score"]["baseline"] == 90.0
    assert points["scorer"] == pytest.approx(10.0)


@pytest.mark.nightly
def test_repeats_that_settle_it_are_scored_by_the_adopted_scorer_too(adopted: Any) -> None:
    baseline, candidate, processes = adopted
    release = judged.release(baseline, candidate)
    rescore_run(run_id=baseline.pk, scorer={"kind": "contains"})  # no version of the suite has it
    rescore_run(run_id=baseline.pk, scorer=FOLDED)
    for run, wrong, process in zip((baseline, candidate), ({}, WRONG), processes, strict=True):
        add_repeats(run_id=run.pk, n=1)
        more(run, range(6, 7), wrong, by=process)
    scorers = RepeatScore.objects.filter(repeat__run=baseline, repeat__index=6).values_list("scorer__spec", flat=True)
    assert [spec["default"]["kind"] for spec in scorers] == ["exact", "exact"]
    [gate] = word(release).document["gates"]
    assert (gate["k_baseline"], gate["score_baseline"]) == (6, 100.0)


def test_one_repeat_of_each_is_compared_under_one_scorer_too(adopted: Any) -> None:
    baseline, candidate, _ = adopted
    rescore_run(run_id=baseline.pk, scorer=FOLDED)
    summary = compare(baseline=baseline.pk, candidate=candidate.pk, repeats=(2, 3)).summary
    assert [block["code"] for block in summary["blocks"]] == ["scorer_shared"]
    assert summary["score"]["baseline"] == 100.0


def score_waiting(worker: WorkerRecord) -> None:
    """Score what waits as FOLDED does, as a worker with a team's own scorer would."""
    while lease := claim_scoring(worker=worker, left_alone=frozenset()):
        every = [each for part in read_to_score(ScoringRecord.objects.get(pk=lease.id).repeat) for each in part]
        given = {each.index: ScorerReply(float(each.text.lower() == each.target), "") for each in every}
        finish_scoring(lease=lease, given=given)


@pytest.mark.nightly
def test_scores_that_a_worker_has_yet_to_give_are_awaited_and_can_be_cancelled() -> None:
    processes = build.process(), build.process(build.bucket(weights="e" * 64))
    baseline = shouting(judged.suite(policy=SAMPLE_POLICY), {}, by=processes[0])
    version, _ = adopt_scorer(slug="sample", scorer=OWN)
    candidate = shouting(version, WRONG, by=processes[1])
    worker = build.worker(name="second", scorers=[{"digest": OWN["digest"], "problem": ""}])
    score_waiting(worker)
    release = judged.release(baseline, candidate)
    blocked = word(release)
    assert codes(blocked.document["next"]) == ["rebaseline"]
    rescore_run(run_id=baseline.pk, scorer=OWN)
    waits = word(release)
    [reason] = waits.document["reasons"]
    assert (reason["code"], codes(waits.document["next"])) == ("scorer_changed", ["await_scores"])
    assert reason["text"].endswith("Wait until a worker has scored the baseline with the candidate's scorer.")
    cancel_run(run_id=baseline.pk)
    assert word(release).pk == blocked.pk
    baseline.refresh_from_db()
    assert (baseline.status, baseline.is_cancel_wanted) == ("finished", False)
    with pytest.raises(Conflict, match="has already ended as finished"):
        cancel_run(run_id=baseline.pk)
    rescore_run(run_id=baseline.pk, scorer=OWN)
    score_waiting(worker)
    [gate] = word(release).document["gates"]
    assert (gate["score_baseline"], gate["difference"]) == (100.0, pytest.approx(-100 / 30))


def test_a_scorer_that_was_given_up_judges_nothing(adopted: Any) -> None:
    """It left every response without a score: the baseline would have none."""
    baseline, candidate, _ = adopted
    rescore_run(run_id=baseline.pk, scorer=FOLDED)
    RepeatScore.objects.filter(repeat__run=baseline, scorer=candidate.suite_version.scorer).update(n_scored=0)
    assert codes(word(judged.release(baseline, candidate)).document["reasons"]) == ["scorer_changed"]
