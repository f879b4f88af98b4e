"""One pair has one cause, whoever asks and whatever was asked before."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evalboard.core.errors import NotFound
from evalboard.core.trace import TokenTrace
from runs.compare import compare, divergence_page, trace_pair
from runs.compare.read_divergences import DivergenceFilter
from runs.models import Case, ComparisonRecord, EngineProcess, ResponseRecord, RunRecord
from runs.pairs import measure_pair_noise
from tests import build
from tests.nightly import few, nightly
from tests.runs import logs
from tests.runs.test_comparisons import Answer, answers, decode, flipped, moved, near, recorded, stored

pytestmark = pytest.mark.django_db
N = 7
Said = dict[tuple[str, int, int], tuple[Any, ...]]


def measured(process: EngineProcess) -> tuple[RunRecord, RunRecord]:
    """The baseline's own repeats move by 0.001 nats; the candidate flips near ties by more than any floor explains."""
    version = build.suite(case_ids=[f"case-{number:02}" for number in range(N)])
    noisy = [Answer(moved(recorded(index), 0.001, seed=index)) for index in range(N)]
    theirs = [
        Answer(flipped(near(recorded(index), 8, 0.0014), 8, movement=0.0028, margin=0.0014), "red")
        for index in range(N)
    ]
    theirs[3] = Answer(moved(recorded(3), 0.001))
    base = stored(version, [Answer(near(recorded(index), 8, 0.0014)) for index in range(N)], noisy, by=process)
    return base, stored(version, theirs, theirs, by=process)


def mixed(process: EngineProcess) -> tuple[RunRecord, RunRecord]:
    """Two backends served the candidate; another's trace is missing, and one answer differs in its text alone."""
    version = build.suite(case_ids=[f"case-{number:02}" for number in range(N)])
    other = build.process(build.bucket("bfloat16"))
    theirs: list[Answer | None] = [Answer(moved(recorded(index), 0.02, seed=index)) for index in range(N)]
    theirs[0], theirs[4] = None, Answer(recorded(4), "blue ")
    theirs[5] = Answer(recorded(5), "a cat")
    run = build.run(version, repeats=2)
    decode(run, 1, theirs, [process] * 4 + [other] * 3)
    decode(run, 2, answers(N), [process] * 6 + [other])
    return stored(version, answers(N), by=process), run


def of_logs(_: EngineProcess) -> tuple[RunRecord, RunRecord]:
    """Two logs of two models: ids are given anew, so that equal ids and numbers may be other words."""
    one = [logs.response("sky"), logs.response("sea"), logs.response("sun", positions=None)]
    two = [
        logs.response("sky", 1, "so", " it", " is", score=0.0),
        logs.response("sea", 1, "so", " is", " blue", score=0.0),
        logs.response("sun", 1, "it", " is", " red", positions=None),
    ]
    return logs.stored(logs.log(*one)), logs.stored(logs.log(*two, model="lab/paint-2b"), "two")


def seeded(process: EngineProcess) -> tuple[RunRecord, RunRecord]:
    """Draws of one seed: of both repeats either side's bits are the same, and only equal repeats were sent one seed."""
    version = build.suite(case_ids=[f"case-{number:02}" for number in range(N)])
    ours = [Answer(recorded(index)) for index in range(N)]
    theirs = [Answer(drawn_otherwise(answer.trace, 6), "red") for answer in ours]
    theirs[4] = Answer(drawn_otherwise(moved(ours[4].trace, 0.0002), 6), "red")
    runs = [stored(version, each, each, by=process, under="sampled", seed=42) for each in (ours, theirs)]
    for run in runs:
        for repeat in (1, 2):
            ResponseRecord.objects.filter(repeat__run=run, repeat__index=repeat).update(seed_sent=40 + repeat)
    return runs[0], runs[1]


def drawn_otherwise(trace: TokenTrace, at: int) -> TokenTrace:
    """The trace with another of its alternatives chosen at one position."""
    ids, logprobs = trace.token_ids.copy(), trace.logprobs.copy()
    other = 1 if trace.alternative_ids[at, 0] == ids[at] else 0
    ids[at], logprobs[at] = trace.alternative_ids[at, other], trace.alternative_logprobs[at, other]
    return replace(trace, token_ids=ids, logprobs=logprobs)


@pytest.fixture
def process(db: None) -> EngineProcess:
    """Of a bucket whose bits may move with nothing changed."""
    return build.process(build.bucket(batch_class="mixed"))


def said_of_pairs(runs: tuple[RunRecord, RunRecord]) -> Said:
    """What the page of each pair says; pairs without a response are not there."""
    found = {}
    cases = Case.objects.filter(suite_version__runs=runs[0].pk).values_list("case_id", flat=True)
    for case in cases:
        for repeats in ((1, 1), (1, 2), (2, 1), (2, 2)):
            try:
                report = trace_pair(runs[0].pk, runs[1].pk, case_id=case, repeats=repeats)
            except NotFound:
                continue
            found[(case, *repeats)] = (report.cause, report.numeric, report.text)
    return found


def listed(runs: tuple[RunRecord, RunRecord], repeats: tuple[int, int] | None) -> Said:
    """What the list of a comparison says of each pair that it holds."""
    made = compare(baseline=runs[0].pk, candidate=runs[1].pk, repeats=repeats)
    assert made.status == ComparisonRecord.Status.FINISHED, made.error
    return {
        (row.case, row.repeat_baseline, row.repeat_candidate): (row.cause, row.numeric, row.text)
        for row in divergence_page(made.pk, DivergenceFilter()).rows
    }


@pytest.mark.nightly
@pytest.mark.parametrize("made", [mixed, *nightly([measured, of_logs, seeded])])
def test_the_order_in_which_a_pair_is_asked_for_changes_nothing(
    made: Callable[[EngineProcess], tuple[RunRecord, RunRecord]], process: EngineProcess
) -> None:
    runs = made(process)
    before = said_of_pairs(runs)
    assert len(set(before.values())) > 1
    asked: list[tuple[int, int] | None] = [None, (1, 1), (2, 1), (1, 2), (2, 2)]
    random.Random(7).shuffle(asked)
    n_listed = 0
    for repeats in asked:
        try:
            rows = listed(runs, repeats)
        except NotFound:
            continue  # one side has a single repeat
        assert rows.items() <= before.items()
        n_listed += len(rows)
        assert said_of_pairs(runs) == before
    assert n_listed > 2


def test_a_dropped_seed_is_named_only_where_both_sides_were_sent_it(process: EngineProcess) -> None:
    causes = {key: said[0] for key, said in said_of_pairs(seeded(process)).items()}
    for repeats in ((1, 1), (2, 2)):
        assert (causes["case-00", *repeats], causes["case-04", *repeats]) == ("seed_ignored", "unknown")
    assert {causes["case-00", *repeats] for repeats in ((1, 2), (2, 1))} == {"unknown"}


@pytest.mark.nightly
def test_a_pair_is_judged_by_what_its_runs_repeats_measure(process: EngineProcess) -> None:
    """Both flips moved by 0.0028 nats: more than float32's floor explains, and what repeats that move by 0.001 do."""
    runs = measured(process)
    causes = {key: said[0] for key, said in said_of_pairs(runs).items()}
    assert causes["case-00", 1, 1] == "near_tie"
    assert causes["case-03", 1, 1] == "drift_only"
    quiet = stored(runs[0].suite_version, [Answer(near(recorded(index), 8, 0.0014)) for index in range(N)], by=process)
    quieter = trace_pair(quiet.pk, runs[1].pk, case_id="case-00", repeats=(1, 1))
    assert (quieter.cause, quieter.evidence["is_assumed"]) == ("larger_shift", True)


@pytest.mark.nightly
def test_a_further_repeat_makes_the_comparison_of_two_repeats_anew(process: EngineProcess) -> None:
    """It measures the noise that their pairs are judged by."""
    version = build.suite(case_ids=[f"case-{number:02}" for number in range(N)])
    ours = [Answer(near(recorded(index), 8, 0.0014)) for index in range(N)]
    theirs = [Answer(flipped(answer.trace, 8, movement=0.0028, margin=0.0014), "red") for answer in ours]
    base, run = build.run(version, repeats=2), stored(version, theirs, by=process)
    decode(base, 1, ours, process)
    assert {said[0] for said in listed((base, run), (1, 1)).values()} == {"larger_shift"}
    decode(base, 2, [Answer(moved(recorded(index), 0.001, seed=index)) for index in range(N)], process)
    assert {said[0] for said in listed((base, run), (1, 1)).values()} == {"near_tie"}


@pytest.mark.parametrize("batch_class", few(["alone", "invariant", "fixed-8"], 1))
def test_within_a_steady_bucket_no_floor_stands_in_for_noise(batch_class: str) -> None:
    by = build.process(build.bucket(batch_class=batch_class))
    version = build.suite(case_ids=[f"case-{number:02}" for number in range(N)])
    same = [Answer(recorded(index)) for index in range(N)]
    other = [Answer(moved(recorded(index), 1e-6)) for index in range(N)]
    first, second = stored(version, same, by=by), stored(version, same, same, by=by)
    unsteady = stored(version, same, other, by=by)
    mixed = stored(version, same, by=build.process(build.bucket(batch_class="mixed")))
    bucket = by.bucket_id
    assert measure_pair_noise(first, second).between(bucket, bucket).is_zero
    assert not measure_pair_noise(first, unsteady).between(bucket, bucket).is_zero
    assert not measure_pair_noise(first, mixed).between(bucket, mixed.bucket_id).is_zero
    assert not measure_pair_noise(first, second).between(None, None).is_zero


def test_fixed_groups_of_another_suite_share_other_batches() -> None:
    by = build.process(build.bucket(batch_class="fixed-8"))
    same = [Answer(recorded(index)) for index in range(N)]
    ours, theirs = (
        stored(build.suite(case_ids=[f"{name}-{number:02}" for number in range(N)]), same, by=by)
        for name in ("case", "other")
    )
    assert not measure_pair_noise(ours, theirs).between(by.bucket_id, by.bucket_id).is_zero
