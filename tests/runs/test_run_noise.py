"""What a run says of its noise, bucket by bucket, and which cases it says will flip."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalboard.core.trace import make_trace, read_traces, unpack_chances
from runs.models import CaseColumns, PolicyRecord, RunRecord, Suite, TraceBlock
from runs.run import response_rows, run_report
from runs.suites import push_suite, rescore_run
from runs.work import flip_chances, rollup
from tests import build
from tests.build import case_rows
from tests.frontend import stage
from tests.nightly import few

pytestmark = pytest.mark.django_db


def noise_of(run: RunRecord) -> Any:
    return run_report(run.pk).noise


def chances_of(run: RunRecord, repeat: int = 1) -> list[float] | None:
    packed = CaseColumns.objects.get(repeat__run=run, repeat__index=repeat).flip_chances
    return None if packed is None else unpack_chances(bytes(packed)).tolist()


def test_two_repeats_measure_everything() -> None:
    found = noise_of(build.finished_run(("blue", "blue", "red"), ("blue", "red", "red")))
    assert found.n_repeats == 2
    assert found.interval is not None
    assert found.interval[0] < 50 < found.interval[1]
    assert found.reach is not None
    assert found.level == 0.9
    assert found.range5_points == pytest.approx(100 / 3)
    assert found.expected_range_points == pytest.approx(2.326 * found.sd_points)
    assert (found.texts_alike, found.scores_alike) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert found.overdispersion is not None
    assert not found.is_overdispersed
    assert (found.resolution.repeats, found.resolution.churn) == (5, 0.06)
    assert found.resolution.points > 10


def test_one_repeat_reaches_other_cases_and_measures_no_noise() -> None:
    found = noise_of(build.finished_run(("blue", "blue", "red")))
    assert (found.n_repeats, found.sd_points, found.interval, found.resolution) == (1, None, None, None)
    assert found.reach is not None


def test_a_run_that_lacks_responses_says_nowhere_where_its_score_lies() -> None:
    found = noise_of(build.finished_run(("blue", "blue", None), ("blue", "red", "red"), ("blue", "red", "red")))
    assert found.n_repeats == 2
    assert found.sd_points == 0
    assert (found.interval, found.reach, found.level, found.range5_points) == (None, None, None, None)


def test_each_bucket_is_measured_by_itself_and_the_run_not_at_all() -> None:
    float32, bfloat16 = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    run = build.run(repeats=2)
    build.decode(run, 1, ("blue", "blue", "red"), by=[float32, float32, bfloat16])
    build.decode(run, 2, ("blue", "red", "red"), by=[float32, float32, bfloat16])
    report = run_report(run.pk)
    first, second = (bucket.noise for bucket in report.buckets)
    assert (first.n_unstable, second.n_unstable) == (1, 0)
    assert (first.disagreement_rate, second.disagreement_rate) == (pytest.approx(0.5), 0)
    assert report.noise.n_repeats == 0


def test_of_a_bucket_that_served_other_cases_in_each_repeat_only_disagreement_is_known() -> None:
    float32, bfloat16 = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    run = build.run(repeats=2)
    build.decode(run, 1, ("blue", "blue", "red"), by=[float32, float32, bfloat16])
    build.decode(run, 2, ("red", "blue", "red"), by=[float32, bfloat16, bfloat16])
    first = run_report(run.pk).buckets[0].noise
    assert first.disagreement_rate == 1  # of the one case that it served twice
    assert (first.interval, first.reach, first.range5_points, first.overdispersion) == (None, None, None, None)


def test_the_suites_own_policy_says_at_which_look_it_resolves() -> None:
    run = build.finished_run(("blue", "blue", "red"), ("blue", "red", "red"), ("blue", "red", "red"))
    assert noise_of(run).resolution.repeats == 5
    settings = {"rule": "paired", "tolerance_points": 5.0, "guard_points": 5.0, "looks": [3, 10, 20]}
    own = PolicyRecord.objects.create(slug="quick", version=1, title="Quick", settings=settings, digest="e" * 64)
    Suite.objects.update(policy=own)
    assert noise_of(run).resolution.repeats == 3


def test_groups_of_cases_widen_the_reach() -> None:
    cases = [{"id": str(index), "prompt": "?", "target": "blue", "group": f"g{index // 10}"} for index in range(20)]
    document = {"slug": "grouped", "title": "Grouped", "scorer": {"kind": "exact"}, "cases": cases}
    alone = {**document, "slug": "alone", "cases": [{**case, "group": ""} for case in cases]}
    for each in (document, alone):
        for case in each["cases"]:
            if not case["group"]:
                del case["group"]
    widths = []
    for each in (document, alone):
        version = push_suite(document=each)[0]
        low, high = noise_of(build.finished_run(["blue"] * 10 + ["red"] * 10, version=version)).reach
        widths.append(high - low)
    assert widths[0] > 1.5 * widths[1]


def a_run(stage_: Any, **margins: float) -> RunRecord:
    """Two repeats by an engine; the named cases' third position has that margin."""
    by = stage_.worker()
    process = stage_.engine(by)
    run = stage_.start()

    def answer(repeat: int, case: int) -> Any:
        return stage_.reply(case, 1, 2, 3, margin=margins.get(f"case_{case}", 2.0))

    stage_.serve(by, process, answer=answer)
    run.refresh_from_db()
    return run


@pytest.fixture
def staged(db: None, settings: Any) -> Any:
    stage.stage(model_root=settings.MODEL_ROOTS[0], n_cases=6)
    return stage


def test_the_first_repeat_says_which_cases_are_likely_to_flip(staged: Any) -> None:
    run = a_run(staged, case_2=0.0, case_4=2.4e-6, case_5=0.01)
    assert chances_of(run) == pytest.approx([0, 0, 0.5, 0, 0.2743, 0], abs=5e-3)  # 2.4e-6 nats at 4e-6 of noise
    assert chances_of(run, 2) is None
    assert noise_of(run).n_likely_to_flip == 2
    likely = case_rows(run.pk, only="likely")
    assert [(row.case_index, row.is_likely_to_flip) for row in likely] == [(2, True), (4, True)]  # the likeliest first
    assert likely[0].flip_chance == 0.5
    assert not case_rows(run.pk, query="case-003")[0].is_likely_to_flip


@pytest.mark.parametrize("n_remembered", few([0, 3, 100], 1))
def test_chances_are_the_same_whether_remembered_or_read_again(
    staged: Any, monkeypatch: pytest.MonkeyPatch, n_remembered: int
) -> None:
    monkeypatch.setattr(flip_chances, "_remembered", {})
    monkeypatch.setattr(flip_chances, "MAX_REMEMBERED", n_remembered)
    n_read = 0

    def count(data: bytes, slots: list[int]) -> Any:
        nonlocal n_read
        n_read += len(slots)
        return read_traces(data, slots)

    monkeypatch.setattr(flip_chances, "read_traces", count)
    run = a_run(staged, case_2=0.0, case_4=2.4e-6, case_5=0.01)
    assert n_read == max(6 - n_remembered, 0)
    flip_chances._remembered.clear()
    at_the_end = chances_of(run)
    rollup.store_columns(run.repeats.get(index=1))
    assert n_read == max(6 - n_remembered, 0) + 6
    assert chances_of(run) == at_the_end


def test_they_are_known_while_the_second_repeat_is_at_work(staged: Any) -> None:
    by = staged.worker()
    process = staged.engine(by)
    run = staged.start()
    staged.serve(by, process, answer=lambda _, case: staged.reply(case, 1, 2, 3, margin=0.0), n_shards=1)
    report = run_report(run.pk)
    assert report.status == "running"
    assert report.noise.n_likely_to_flip == 6


def test_scoring_again_keeps_the_chances(staged: Any) -> None:
    run = a_run(staged, case_2=0.0)
    before = chances_of(run)
    rescore_run(run_id=run.pk, scorer={"kind": "exact", "normalise": {"case": "fold"}})
    assert chances_of(run) == before


def test_columns_of_an_earlier_version_have_no_chances(staged: Any) -> None:
    run = a_run(staged, case_2=0.0)
    CaseColumns.objects.filter(repeat__run=run).update(flip_chances=None)
    assert noise_of(run).n_likely_to_flip is None
    assert case_rows(run.pk)[0].flip_chance is None
    assert case_rows(run.pk, only="likely") == ()
    assert {row.flip_chance for row in response_rows(run.pk)} == {None}


def test_a_missing_response_and_one_without_alternatives_are_unknown(staged: Any) -> None:
    by = staged.worker()
    process = staged.engine(by)
    run = staged.start()
    plain = staged.reply(4, 1)
    lonely = replace(plain, trace=make_trace([1, 0], [-0.2, -0.1], [[(1, -0.2)], [(0, -0.1)]]))

    def answer(repeat: int, case: int) -> Any:
        return lonely if case == 4 else staged.some_missing(repeat, case)

    staged.serve(by, process, answer=answer)
    chances = chances_of(run)
    assert [index for index, chance in enumerate(chances) if np.isnan(chance)] == [3, 4]
    assert noise_of(run).n_likely_to_flip == 0


def test_a_damaged_block_leaves_cases_unknown_and_lets_the_repeat_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flip_chances, "_remembered", {})
    run = build.run(repeats=1)
    repeat = build.decode(run, 1, ("blue", "red", "blue"), ends=False)
    block = TraceBlock.objects.get(run=run)
    TraceBlock.objects.filter(pk=block.pk).update(data=bytes(block.data)[:-1])
    repeat.shards.update(status="finished")
    assert rollup.finish_repeat(repeat_id=repeat.pk)
    assert np.isnan(chances_of(run)).all()
    assert noise_of(run).n_likely_to_flip is None


@pytest.mark.nightly
@pytest.mark.parametrize("sampling", [{"temperature": 0.7}, {"repetition_penalty": 1.1}])
def test_margins_that_do_not_decide_predict_nothing(staged: Any, sampling: dict[str, float]) -> None:
    run = staged.start()
    run.profile.settings["sampling"] |= sampling
    run.profile.save()
    by = staged.worker()
    staged.serve(by, staged.engine(by))
    assert chances_of(run) is None
    assert noise_of(run).n_likely_to_flip is None


def test_the_noise_is_that_of_each_buckets_logits() -> None:
    """The same margins of 0.01 nats: far apart in float32, nearly a toss-up in bfloat16."""
    float32, bfloat16 = build.process(build.bucket("float32")), build.process(build.bucket("bfloat16"))
    run = build.run(repeats=1)
    build.decode(run, 1, ("blue", "blue", "red"), by=[float32, bfloat16, bfloat16], logprob=-1.99)
    assert chances_of(run) == pytest.approx([0, 0.4558, 0.4558], abs=1e-3)
    assert [bucket.noise.n_likely_to_flip for bucket in run_report(run.pk).buckets] == [0, 2]
    assert [row.flip_chance for row in response_rows(run.pk)] == pytest.approx(chances_of(run))
