"""Two stacks that have scored the same answers are judged by these, and by what was decoded where they have not."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from evalboard.contract.compare import Computation
from evalboard.core.trace import Forced, TokenTrace
from runs.compare import compare
from runs.forced import ForcedOutcome, create_forced_pair, finish_forced, next_answers, record_forced
from runs.models import EngineProcess, ForcedScoringRecord, RunRecord, SuiteVersionRecord
from tests import build, forced
from tests.build import comparison_report
from tests.nightly import nightly
from tests.runs.test_comparisons import Answer, flipped, moved, recorded, stored

pytestmark = pytest.mark.django_db
N_CASES = 24
PROMPT = np.array([1, 2, 3], np.int32)
Read = Callable[[TokenTrace, int], TokenTrace]  # how a stack reads a trace, by a seed of its own


@pytest.fixture
def version(db: None) -> SuiteVersionRecord:
    return build.suite(case_ids=[f"case-{number:02}" for number in range(N_CASES)])


def engine(dtype: str, batch_class: str) -> EngineProcess:
    return build.process(build.bucket(dtype, batch_class=batch_class))


def by_noise(sd: float, *, off: float = 0.0) -> Read:
    """A stack whose logits have noise, and are off by as much in all readings."""

    def read(trace: TokenTrace, seed: int) -> TokenTrace:
        shifted = moved(trace, off, seed=len(trace)) if off else trace
        return moved(shifted, sd, seed=seed) if sd else shifted

    return read


def runs(
    version: SuiteVersionRecord, batch_class: str, *, repeats: int = 3, noise: float = 0.0
) -> tuple[RunRecord, RunRecord]:
    """Two runs of two stacks, every answer of which parts at its first token: nothing decoded can be compared."""
    build.endpoint("other")
    sides = []
    for dtype, is_parted in (("float32", False), ("bfloat16", True)):
        traces = [flipped(trace, 0) if is_parted else trace for trace in map(recorded, range(N_CASES))]
        by = engine(dtype, batch_class)
        answers = [
            [Answer(moved(trace, noise, seed=100 * at + repeat) if noise else trace) for at, trace in enumerate(traces)]
            for repeat in range(repeats)
        ]
        sides.append(stored(version, *answers, by=by, on="other" if is_parted else "local"))
    return sides[0], sides[1]


def score(
    baseline: RunRecord, candidate: RunRecord, ours: Read, theirs: Read, *, only: Sequence[RunRecord] = ()
) -> None:
    """Both sides on both stacks, as workers would. only: the runs whose answers are scored; both without it."""
    scorings = create_forced_pair(baseline_id=baseline.pk, candidate_id=candidate.pk)
    for (run_id, stack_id), scoring in scorings.items():
        lease = forced.claimed()
        assert lease.id == scoring.pk
        if only and run_id not in {run.pk for run in only}:
            finish_forced(lease=lease)
            continue
        stack, read = (baseline, ours) if stack_id == baseline.pk else (candidate, theirs)
        process = stack.repeats.get(index=1).engine_processes.get()
        seed = 1000 * scoring.pk
        while answers := next_answers(lease.id):
            outcomes = []
            for answer in answers:
                seed += 1
                assert answer.trace is not None
                trace = replace(read(answer.trace, seed), prompt_token_ids=PROMPT)
                scored = Forced(0, trace, n_cached_tokens=0, batch_min=1, batch_max=1)
                outcomes.append(ForcedOutcome(answer, "same", is_rendered=False, process=process, outcome=scored))
            record_forced(lease=lease, outcomes=outcomes)
        finish_forced(lease=lease)


def computation(baseline: RunRecord, candidate: RunRecord) -> Computation:
    judged = comparison_report(compare(baseline=baseline.pk, candidate=candidate.pk).pk).computation
    assert judged is not None
    return judged


def n_positions() -> int:
    return sum(len(recorded(case)) for case in range(N_CASES))


@pytest.mark.nightly
def test_steady_stacks_are_two_by_what_both_read_where_decoding_shows_nothing(version: SuiteVersionRecord) -> None:
    baseline, candidate = runs(version, "alone")
    decoded = computation(baseline, candidate)
    assert (decoded.answer, decoded.n_positions) == ("unknown", None)
    score(baseline, candidate, by_noise(0.0), by_noise(0.0, off=0.4))
    judged = computation(baseline, candidate)
    assert (judged.answer, judged.n_cases, judged.n_positions) == ("two", N_CASES, 2 * n_positions())
    assert judged.shift == pytest.approx(0.4, rel=0.2)
    assert judged.text.startswith(f"Over {2 * n_positions():,} positions of 24 cases logprobs differ by 0.4")


@pytest.mark.nightly
def test_steady_stacks_that_read_the_same_bits_are_one(version: SuiteVersionRecord) -> None:
    baseline, candidate = runs(version, "alone")
    score(baseline, candidate, by_noise(0.0), by_noise(0.0))
    judged = computation(baseline, candidate)
    assert (judged.answer, judged.n_apart, judged.noise) == ("one", 0, 0.0)
    assert judged.text == f"Logprobs agree to the bit at all {2 * n_positions():,} positions of 24 cases."


@pytest.mark.nightly
@pytest.mark.parametrize(("off", "answer"), [(0.2, "two"), *nightly([(0.0, "one")])])
def test_batched_stacks_are_held_against_the_noise_of_reading(
    version: SuiteVersionRecord, off: float, answer: str
) -> None:
    """Repeats whose bits differ are answers of their own, so that each stack reads the same tokens three times."""
    baseline, candidate = runs(version, "mixed", noise=0.1)
    score(baseline, candidate, by_noise(0.1), by_noise(0.1, off=off))
    judged = computation(baseline, candidate)
    assert (judged.answer, judged.n_cases, judged.n_positions) == (answer, N_CASES, 6 * n_positions())
    assert judged.noise is not None
    assert judged.noise > 0.05


@pytest.mark.nightly
def test_one_run_whose_answers_both_stacks_have_scored_is_enough(version: SuiteVersionRecord) -> None:
    baseline, candidate = runs(version, "alone", repeats=2)
    score(baseline, candidate, by_noise(0.0), by_noise(0.0, off=0.4), only=[candidate])
    judged = computation(baseline, candidate)
    assert (judged.answer, judged.n_positions) == ("two", n_positions())


@pytest.mark.nightly
def test_a_batched_stack_that_read_each_answer_once_shows_no_noise_to_judge_by(version: SuiteVersionRecord) -> None:
    baseline, candidate = runs(version, "mixed", repeats=2)
    score(baseline, candidate, by_noise(0.1), by_noise(0.1, off=0.4))
    assert computation(baseline, candidate).n_positions is None


@pytest.mark.nightly
def test_a_prompt_of_another_template_is_no_evidence(version: SuiteVersionRecord) -> None:
    baseline, candidate = runs(version, "alone")
    score(baseline, candidate, by_noise(0.0), by_noise(0.0, off=0.4))
    for scoring in ForcedScoringRecord.objects.all():
        scoring.answers.update(is_rendered=True)
    assert computation(baseline, candidate).n_positions is None


@pytest.mark.nightly
def test_asking_again_scores_nothing_twice(version: SuiteVersionRecord) -> None:
    baseline, candidate = runs(version, "alone")
    score(baseline, candidate, by_noise(0.0), by_noise(0.0))
    first = set(ForcedScoringRecord.objects.values_list("pk", flat=True))
    again = create_forced_pair(baseline_id=baseline.pk, candidate_id=candidate.pk)
    assert {scoring.pk for scoring in again.values()} == first
    assert len(first) == 4
