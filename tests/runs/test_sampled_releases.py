"""Releases over sampled runs: which policy, whether draws are paired, and what is refused."""

from typing import Any

import pytest

from runs.models import ReleaseRecord, RunRecord
from runs.release import settle_plans
from runs.run import run_report
from tests import build
from tests.runs import judged, logs

pytestmark = pytest.mark.django_db
# Four cases that pass in some draws, the same ones on both sides where nothing says otherwise.
SOMETIMES = {0: (1, 2), 1: (2, 5), 2: (3,), 3: (1, 4, 5)}


@pytest.fixture
def process(db: None) -> Any:
    return build.process()


@pytest.fixture
def sampled(process: Any) -> Any:
    version = judged.suite(n_cases=60)

    def make(seed: int = 42, **changes: Any) -> RunRecord:
        return judged.run(version, SOMETIMES, by=process, under="sampled", seed=seed, **changes)

    return make


def gate_of(release: ReleaseRecord) -> dict[str, Any]:
    assert release.verdict is not None
    gate: dict[str, Any] = release.verdict.document["gates"][0]
    return gate


def test_runs_of_one_seed_are_judged_draw_against_draw_under_paired(sampled: Any) -> None:
    release = judged.release(sampled(), sampled())
    gate = gate_of(release)
    assert (release.policy.slug, gate["method"], gate["difference"]) == ("paired", "seeds", 0.0)
    assert judged.codes(gate["warnings"])[0] == "sampled"
    apart = gate_of(judged.release(sampled(), sampled(seed=7)))
    assert (apart["verdict"] != "not_comparable", apart["method"]) == (True, "flips")  # a seed is no setting
    assert apart["high"] - apart["low"] > 1.5 * (gate["high"] - gate["low"])
    assert "(seeds 42 and 7)" in apart["warnings"][0]["text"]


@pytest.mark.nightly
def test_greedy_runs_are_judged_under_strict_as_before(process: Any) -> None:
    version = judged.suite(n_cases=60)
    release = judged.release(judged.run(version, by=process), judged.run(version, by=process))
    assert release.policy.slug == "strict"
    assert "sampled" not in judged.codes(gate_of(release)["warnings"])


@pytest.mark.nightly
def test_a_suites_own_policy_goes_before_that_of_sampled_runs(process: Any) -> None:
    version = judged.suite(n_cases=60, policy={"slug": "ours", "rule": "strict", "tolerance_points": 2.0})
    ours, theirs = (judged.run(version, SOMETIMES, by=process, under="sampled") for _ in range(2))
    release = judged.release(ours, theirs)
    assert release.policy.slug == "ours"
    assert "noisy" not in judged.codes(gate_of(release)["reasons"])


@pytest.mark.nightly
def test_draws_whose_repeats_are_other_ones_are_not_paired(sampled: Any) -> None:
    """Of one side repeat 2 was cancelled, so its third draw stands where the other's second does."""
    ours, theirs = sampled(repeats=6), sampled(repeats=6)
    ours.repeats.filter(index=2).update(status="cancelled")
    assert "they have different repeats" in gate_of(judged.release(ours, theirs))["warnings"][0]["text"]


@pytest.mark.nightly
def test_runs_of_before_are_one_draw_and_take_no_verdict(sampled: Any) -> None:
    ours, theirs = sampled(), sampled()
    RunRecord.objects.filter(pk=ours.pk).update(seed=None, is_one_draw=True)
    release = judged.release(ours, theirs)
    gate = gate_of(release)
    assert (gate["verdict"], judged.codes(gate["reasons"])) == ("inconclusive", ["one_draw"])
    assert (gate["k_baseline"], gate["noise"]["baseline"]["sd_points"]) == (1, None)
    assert settle_plans(release_id=release.pk).whole is None


@pytest.mark.nightly
def test_a_run_that_is_one_draw_says_nothing_of_noise(sampled: Any) -> None:
    run = sampled()
    assert run_report(run.pk).noise.n_unstable == 4
    RunRecord.objects.filter(pk=run.pk).update(seed=None, is_one_draw=True)
    found = run_report(run.pk).noise
    assert (found.n_repeats, found.sd_points, found.n_unstable, found.resolution) == (1, None, None, None)
    assert found.reach is not None  # what one draw says of other cases it says


def test_a_log_whose_repeats_had_one_seed_takes_no_verdict(db: None) -> None:
    def seeded(name: str, **changes: Any) -> RunRecord:
        found = [logs.response(case, n, seed=7, **changes) for case in logs.CASES for n in range(1, 6)]
        return logs.stored(logs.log(*found, sampling={"temperature": 0.7, "max_tokens": 24}), name)

    gate = gate_of(judged.release(seeded("one"), seeded("two", score=0.0)))
    assert judged.codes(gate["reasons"]) == ["one_draw"]
