"""Whether two stored runs are one computation: by every bit where repeats agree, by a test where they do not."""

from collections.abc import Sequence
from typing import Any

import pytest

from evalboard.contract.compare import Computation
from evalboard.core.trace import TokenTrace
from runs.compare import compare
from runs.models import EngineProcess, ReleaseRecord, RunRecord, SuiteVersionRecord
from runs.suites import push_suite
from tests import build
from tests.build import comparison_report
from tests.runs.judged import release as judge_release
from tests.runs.test_comparisons import Answer, cut, decode, moved, recorded, stored

pytestmark = pytest.mark.django_db
N_CASES = 24
NOISE = 0.0001  # nats: under the floor of float32


@pytest.fixture
def version(db: None) -> SuiteVersionRecord:
    return build.suite(case_ids=[f"case-{number:02}" for number in range(N_CASES)])


@pytest.fixture
def steady(db: None) -> EngineProcess:
    return build.process(build.bucket(batch_class="alone"))


@pytest.fixture
def batched(db: None) -> EngineProcess:
    return build.process(build.bucket(batch_class="mixed"))


def computation(baseline: RunRecord, candidate: RunRecord) -> Computation:
    made = comparison_report(compare(baseline=baseline.pk, candidate=candidate.pk).pk).computation
    assert made is not None
    return made


def repeats(traces: Sequence[TokenTrace], n: int, *, noise: float, seed: int) -> list[list[Answer | None]]:
    """The answers of n repeats, each with noise of its own."""
    return [
        [Answer(moved(trace, noise, seed=seed + 1000 * repeat + case)) for case, trace in enumerate(traces)]
        for repeat in range(n)
    ]


@pytest.mark.nightly
def test_a_bit_that_moved_under_one_steady_bucket_is_something_that_no_fingerprint_shows(
    version: SuiteVersionRecord, steady: EngineProcess
) -> None:
    ours: list[Answer | None] = [Answer(recorded(case)) for case in range(N_CASES)]
    theirs = [*ours[:7], Answer(moved(recorded(7), NOISE)), *ours[8:]]
    baseline, candidate = (stored(version, side, side, by=steady) for side in (ours, theirs))
    judged = computation(baseline, candidate)
    assert (judged.answer, judged.is_steady, judged.n_cases, judged.n_apart) == (
        "two",
        True,
        N_CASES,
        1,
    )
    assert judged.text == (
        "The sides differ in 1 of 24 cases, though repeats of each side agree to the bit. Something changed that no "
        "fingerprint shows."
    )
    assert computation(baseline, stored(version, ours, ours, by=steady)).answer == "one"


@pytest.mark.nightly
def test_noise_of_batches_is_one_computation_and_another_copy_of_the_weights_is_two(
    version: SuiteVersionRecord, batched: EngineProcess
) -> None:
    """Copies of the weights that move every logit by some 0.02 nats, under one name and one fingerprint."""
    traces = [recorded(case) for case in range(N_CASES)]
    copies = [moved(trace, 0.02, seed=77 + case) for case, trace in enumerate(traces)]
    baseline, again, altered = (
        stored(version, *repeats(side, 3, noise=NOISE, seed=seed), by=batched)
        for side, seed in ((traces, 1), (traces, 500), (copies, 900))
    )
    same = computation(baseline, again)
    assert (same.answer, same.n_cases, same.is_one_bucket) == ("one", N_CASES, True)
    assert same.text.startswith("Where both sides wrote the same tokens, logprobs differ as little as between repeats")
    judged = computation(baseline, altered)
    assert (judged.answer, judged.is_steady, judged.chance is not None and judged.chance < 0.001) == (
        "two",
        False,
        True,
    )
    assert judged.shift == pytest.approx(0.02, rel=0.2)
    assert judged.text.endswith("the same fingerprint, but different weights or kernels.")


def test_answers_that_end_at_another_limit_are_no_change_that_nothing_shows(
    version: SuiteVersionRecord, steady: EngineProcess
) -> None:
    ours: list[Answer | None] = [Answer(recorded(case)) for case in range(N_CASES)]
    baseline = stored(version, ours, ours, by=steady)
    cases = [
        {"id": case.case_id, "prompt": f"Which colour has {case.case_id}?", "target": build.TARGET}
        for case in version.cases.order_by("index")
    ]
    document = {"slug": "colours", "title": "Colours", "max_tokens": 8, "scorer": {"kind": "exact"}, "cases": cases}
    shorter, _ = push_suite(document=document)
    theirs: list[Answer | None] = [Answer(cut(recorded(case), 8)) for case in range(N_CASES)]
    judged = computation(baseline, stored(shorter, theirs, theirs, by=steady))
    assert (judged.answer, judged.is_steady, judged.n_cases, judged.n_apart) == (
        "one",
        False,
        N_CASES,
        0,
    )


@pytest.mark.nightly
def test_another_bucket_is_said_to_be_another_computation(
    version: SuiteVersionRecord, steady: EngineProcess, batched: EngineProcess
) -> None:
    traces = [recorded(case) for case in range(N_CASES)]
    [ours] = repeats(traces, 1, noise=0.02, seed=7000)  # a steady side repeats one draw of the noise
    baseline = stored(version, ours, ours, by=steady)
    candidate = stored(version, *repeats(traces, 3, noise=0.02, seed=5), by=batched)
    judged = computation(baseline, candidate)
    assert (judged.answer, judged.is_one_bucket) == (
        "one",
        False,
    )  # no further apart than the noisier side's repeats
    far = [moved(trace, 0.2, seed=50 + case) for case, trace in enumerate(traces)]
    judged = computation(baseline, stored(version, *repeats(far, 3, noise=0.02, seed=9), by=batched))
    assert judged.text.startswith("Over 24 cases logprobs differ by ")


def test_one_repeat_a_side_says_nothing(version: SuiteVersionRecord, batched: EngineProcess) -> None:
    traces = [recorded(case) for case in range(N_CASES)]
    baseline, candidate = (
        stored(version, *repeats(traces, 1, noise=NOISE, seed=seed), by=batched) for seed in (1, 500)
    )
    judged = computation(baseline, candidate)
    assert (judged.answer, judged.n_cases, judged.chance) == ("unknown", 0, None)
    assert "No case can show whether logprobs are equal; 10 are needed." in judged.text


def test_only_the_bucket_that_served_most_is_judged(
    version: SuiteVersionRecord, steady: EngineProcess, batched: EngineProcess
) -> None:
    ours: list[Answer | None] = [Answer(recorded(case)) for case in range(N_CASES)]
    far = [*ours[:3], Answer(moved(recorded(3), 0.5)), *ours[4:]]
    served = [steady, steady, steady, batched, *[steady] * (N_CASES - 4)]
    baseline, candidate = (build.run(version, repeats=2) for _ in range(2))
    for index in (1, 2):
        decode(baseline, index, ours, steady)
        decode(candidate, index, far, served)
    judged = computation(baseline, candidate)
    assert (judged.answer, judged.is_steady, judged.n_cases) == ("one", True, N_CASES - 1)


@pytest.mark.nightly
def test_responses_from_another_build_are_left_out(version: SuiteVersionRecord, batched: EngineProcess) -> None:
    """Five of the candidate's responses are half a nat off; both sides otherwise are one computation."""
    traces = [recorded(case) for case in range(N_CASES)]
    sides = [repeats(traces, 5, noise=NOISE, seed=seed) for seed in (1, 500)]
    for case in range(5):
        sides[1][case][case] = Answer(moved(traces[case], 0.5, seed=case))
    baseline, candidate = (stored(version, *side, by=batched) for side in sides)
    judged = computation(baseline, candidate)
    assert (judged.answer, judged.n_strays_baseline, judged.n_strays_candidate) == ("one", 0, 5)
    assert judged.noise == pytest.approx(NOISE, rel=0.5)
    assert judged.text.startswith("The candidate has outlier responses (5). Without them: where")


@pytest.mark.nightly
def test_copies_of_answers_are_no_sign_of_two_computations(version: SuiteVersionRecord, batched: EngineProcess) -> None:
    """Two repeats of five are copies on either side; or all but the first, of which nothing can be said."""
    traces = [recorded(case) for case in range(N_CASES)]
    for n_copies, answer in ((1, "one"), (3, "unknown")):
        sides = [repeats(traces, 5, noise=0.02, seed=seed) for seed in (1, 50_000)]
        for side in sides:
            side[5 - n_copies :] = [side[4 - n_copies]] * n_copies
        judged = computation(*(stored(version, *side, by=batched) for side in sides))
        assert (judged.answer, judged.n_differing) == (answer, N_CASES)


@pytest.mark.nightly
def test_a_release_of_two_computations_under_one_bucket_is_not_comparable(
    version: SuiteVersionRecord, steady: EngineProcess, batched: EngineProcess
) -> None:
    """One bit of a pinned run says so. Of batches that did not take turns, whose load may do it, it is a warning."""
    traces = [recorded(case) for case in range(N_CASES)]
    ours: list[Answer | None] = [Answer(trace) for trace in traces]
    theirs = [*ours[:7], Answer(moved(recorded(7), NOISE)), *ours[8:]]
    pinned = judge_release(*(stored(version, *[side] * 5, by=steady) for side in (ours, theirs)))
    assert [line["code"] for line in document(pinned)["reasons"]] == ["computation_apart"]
    assert [line["code"] for line in document(pinned)["next"]] == ["find_build", "judge_stack"]
    again = judge_release(*(stored(version, *[ours] * 5, by=steady) for _ in range(2)))
    assert "computation_apart" not in {line["code"] for line in document(again)["reasons"]}

    far = [moved(trace, 0.02, seed=77 + case) for case, trace in enumerate(traces)]
    sides = (repeats(each, 5, noise=NOISE, seed=seed) for each, seed in ((traces, 1), (far, 50_000)))
    loose = judge_release(*(stored(version, *side, by=batched) for side in sides))
    assert "computation_apart" not in {line["code"] for line in document(loose)["reasons"]}
    [warning] = [line for line in document(loose)["warnings"] if line["code"] == "computation_apart"]
    assert "Run both sides again, alternating" in warning["text"]


def document(release: ReleaseRecord) -> dict[str, Any]:
    assert release.verdict is not None
    return release.verdict.document
