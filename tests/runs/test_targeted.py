"""Repeats of the noisiest cases alone: planned, decoded, left out of the run's own figures, and judged as a stratum."""

import io
from typing import Any

import numpy as np
import pytest

from evalboard.core.archive import RunArchive
from evalboard.core.errors import Conflict
from evalboard.core.trace import pack_chances, pack_selection, unpack_selection
from runs import exports
from runs.models import CaseColumns, EngineProcess, Event, ReleaseRecord, RepeatRecord, RepeatScore, RunRecord, Shard
from runs.release import decide_release, release_report, settle_plans, settle_release
from runs.run import run_report, run_rows
from runs.work import shard_work
from tests import build
from tests.build import case_rows
from tests.casts import cast
from tests.runs import judged

pytestmark = pytest.mark.django_db
N_CASES, N_CHOSEN = 100, 20
POLICY = {"slug": "sample", "rule": "paired", "tolerance_points": 2.0}
CHOSEN = range(0, N_CASES, 5)  # those that are foretold to flip


def sometimes(shift: int) -> dict[int, tuple[int, ...]]:
    """Wrong in one repeat of three, each chosen case in others than its neighbours."""
    return {case: tuple(n for n in range(1, 40) if (n + shift + case // 5) % 3 == 0) for case in CHOSEN}


SOMETIMES, OTHER_TIMES = sometimes(0), sometimes(1)  # nothing has changed but which repeats these are


@cast
def process() -> EngineProcess:
    return build.process()


@cast
def pair(process: EngineProcess) -> tuple[RunRecord, RunRecord]:
    version = judged.suite(n_cases=N_CASES, policy=POLICY)
    sides = (judged.run(version, SOMETIMES, by=process), judged.run(version, OTHER_TIMES, by=process))
    chances = np.full(N_CASES, 0.001, np.float32)
    chances[CHOSEN] = 0.5
    CaseColumns.objects.filter(repeat__run__in=sides, repeat__index=1).update(flip_chances=pack_chances(chances))
    return sides


@cast
def open_one(pair: tuple[RunRecord, RunRecord]) -> ReleaseRecord:
    release = judged.release(*pair)
    assert release.verdict is not None
    assert release.verdict.word == "inconclusive"
    return release


def settle(release: ReleaseRecord) -> None:
    plan = settle_plans(release_id=release.pk).targeted
    assert plan is not None
    settle_release(
        release_id=release.pk, look=plan.look, n_responses=plan.n_responses, cases=plan.chosen, user=build.user()
    )


def decode(of: RunRecord, repeats: range, wrong: dict[int, tuple[int, ...]]) -> None:
    """Decode what targeted repeats are to decode, as the worker that served the run would."""
    process = EngineProcess.objects.filter(bucket=of.bucket).earliest("pk")
    for repeat in repeats:
        texts = judged.texts(N_CASES, repeat, wrong)
        build.decode(of, repeat, {case: texts[case] for case in CHOSEN}, by=process)
    of.refresh_from_db()


def test_both_plans_are_offered_with_their_prices_and_chances(open_one: ReleaseRecord) -> None:
    plans = settle_plans(release_id=open_one.pk)
    assert plans.whole is not None
    assert plans.targeted is not None
    assert (plans.targeted.look, plans.targeted.chosen, plans.targeted.n_responses) == (
        5,
        "noisiest",
        2 * 12 * N_CHOSEN,
    )
    assert {(each.n_more, each.n_chosen) for each in plans.targeted.runs} == {(12, N_CHOSEN)}
    assert plans.targeted.n_responses < plans.whole.n_responses
    assert plans.targeted.chance is not None
    assert 0.1 <= plans.targeted.chance <= 1
    report = release_report(open_one.pk, plans=plans)
    steps = {line.code: line.text for line in report.next}
    assert steps["settle_targeted"].startswith(
        "Run 12 more repeats of the 20 cases most likely to flip, on both sides (480 responses). That decides it "
    )
    assert f"({plans.whole.n_responses:,} more responses). That decides it " in steps["settle"]


def test_what_was_not_confirmed_is_not_added(open_one: ReleaseRecord) -> None:
    with pytest.raises(Conflict, match="The plan has changed"):
        settle_release(release_id=open_one.pk, look=5, n_responses=1, cases="noisiest", user=None)
    assert not RepeatRecord.objects.exclude(cases=None).exists()


def test_targeted_repeats_are_stored_in_turn_and_decode_the_chosen_cases_alone(
    open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]
) -> None:
    settle(open_one)
    added = RepeatRecord.objects.exclude(cases=None).order_by("pk")
    assert [each.run_id for each in added[:4]] == [pair[0].pk, pair[1].pk, pair[1].pk, pair[0].pk]
    assert {bytes(each.cases or b"") for each in added} == {pack_selection(np.isin(np.arange(N_CASES), CHOSEN))}
    shards = Shard.objects.filter(repeat=added[0])
    assert sum(shard.n_cases for shard in shards) == N_CHOSEN
    decoded = [case.index for shard in shards for case in shard_work(shard.pk).cases]
    assert decoded == list(CHOSEN)
    report = run_report(pair[0].pk)
    assert (report.progress.n_done, report.progress.n_total) == (5 * N_CASES, 5 * N_CASES + 12 * N_CHOSEN)
    [row] = [row for row in run_rows(limit=10) if row.id == str(pair[0].pk)]
    assert (row.progress.n_total, len(row.repeats)) == (report.progress.n_total, 5)
    told = Event.objects.filter(run=pair[0], code="repeats_added").latest("pk").text
    assert told.startswith("12 repeats of the 20 cases most likely to flip added to settle release")


@pytest.mark.nightly
def test_a_run_is_finished_with_them_and_its_own_figures_stay(
    open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]
) -> None:
    before = run_report(pair[0].pk)
    settle(open_one)
    decode(pair[0], range(6, 18), SOMETIMES)
    after = run_report(pair[0].pk)
    assert after.status == "finished"
    assert (after.range, after.noise, after.scores) == (before.range, before.noise, before.scores)
    assert [repeat.index for repeat in after.repeats] == [1, 2, 3, 4, 5]
    assert [(each.index, each.n_cases, each.n_missing) for each in after.targeted] == [
        (index, N_CHOSEN, 0) for index in range(6, 18)
    ]
    assert after.progress.n_done == after.progress.n_total == 5 * N_CASES + 12 * N_CHOSEN
    assert {len(case.scores) for case in case_rows(pair[0].pk, limit=N_CASES)} == {5}
    assert set(RepeatScore.objects.filter(repeat__run=pair[0]).values_list("n_missing", flat=True)) == {0}


def test_what_fails_in_one_is_missing_and_what_it_was_not_to_decode_is_not(
    open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]
) -> None:
    settle(open_one)
    process = EngineProcess.objects.filter(bucket=pair[0].bucket).earliest("pk")
    build.decode(pair[0], 6, {case: None if case == 0 else judged.RIGHT for case in CHOSEN}, by=process)
    decode(pair[0], range(7, 18), SOMETIMES)
    report = run_report(pair[0].pk)
    assert (report.status, report.targeted[0].n_missing, report.targeted[0].status) == ("incomplete", 1, "incomplete")
    [words] = [each.text for each in report.warnings if each.code == "incomplete"]
    assert words.startswith("1 ")


@pytest.mark.nightly
def test_the_verdict_takes_them_as_a_stratum_at_a_look_of_their_own(
    open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]
) -> None:
    before = release_report(open_one.pk).gates[0]
    settle(open_one)
    decode(pair[0], range(6, 18), SOMETIMES)
    decode(pair[1], range(6, 18), OTHER_TIMES)
    decide_release(release_id=open_one.pk)
    after = release_report(open_one.pk).gates[0]
    assert after.targeted is not None
    assert (after.look, after.targeted.repeats, after.targeted.n_cases) == (5, 12, N_CHOSEN)
    assert after.level == pytest.approx(0.975)
    assert before.interval is not None
    assert after.interval is not None
    assert after.interval[1] - after.interval[0] < before.interval[1] - before.interval[0]
    shares = [
        np.mean([[repeat in wrong.get(case, ()) for repeat in range(1, 18 if case in CHOSEN else 6)].count(True)
                 / (17 if case in CHOSEN else 5) for case in range(N_CASES)])
        for wrong in (SOMETIMES, OTHER_TIMES)
    ]  # fmt: skip
    assert after.difference == pytest.approx(100 * (shares[0] - shares[1]))
    assert "targeted" in {warning.code for warning in after.warnings}
    assert after.range_baseline == before.range_baseline


@pytest.mark.nightly
def test_one_side_alone_changes_nothing(open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]) -> None:
    before = release_report(open_one.pk).gates[0]
    settle(open_one)
    decode(pair[0], range(6, 18), SOMETIMES)
    RepeatRecord.objects.filter(run=pair[1]).exclude(cases=None).delete()
    RunRecord.objects.filter(pk=pair[1].pk).update(status="finished")
    decide_release(release_id=open_one.pk)
    after = release_report(open_one.pk).gates[0]
    assert (after.interval, after.targeted, after.look) == (before.interval, None, 5)


@pytest.mark.nightly
@pytest.mark.django_db(transaction=True)
def test_an_export_says_which_cases_it_has_and_lists_no_other(
    open_one: ReleaseRecord, pair: tuple[RunRecord, RunRecord]
) -> None:
    settle(open_one)
    decode(pair[0], range(6, 18), SOMETIMES)
    archive = RunArchive(io.BytesIO(b"".join(exports.run_archive(pair[0].pk))))
    archive.check()
    stated: list[dict[str, Any]] = archive.manifest["repeats"]
    assert [each["cases"] for each in stated[:5]] == [None] * 5
    assert (stated[5]["cases"], stated[5]["n_cases"], stated[5]["n_responses"]) == (list(CHOSEN), N_CHOSEN, N_CHOSEN)
    assert [response.row["case_index"] for response in archive.responses() if response.row["repeat"] == 6] == [*CHOSEN]
    rows = list(exports.case_table(pair[0].pk).rows())
    assert len(rows) == 5 * N_CASES + 12 * N_CHOSEN == exports.case_table(pair[0].pk).n_rows
    assert not any(row["is_missing"] for row in rows)


@pytest.mark.parametrize("n_cases", [1, 8, 9, 800])
def test_a_selection_is_read_as_it_was_packed(n_cases: int) -> None:
    chosen = np.arange(n_cases) % 3 == 0
    assert (unpack_selection(pack_selection(chosen), n_cases) == chosen).all()
