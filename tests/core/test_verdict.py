"""The rules of docs/verdict.md, row by row, with numbers worked out by hand."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from evalboard.contract.run import Draws
from evalboard.core.release import verdict
from evalboard.core.release.gate import GateQuestion, VerdictLine
from evalboard.core.release.gate_verdict import GateInput, GateVerdict
from evalboard.core.stats import EarlierNoise
from evalboard.core.stats.quantiles import normal_quantile, student_cdf
from evalboard.core.suite import policy
from tests.core.questions import (
    ASKED,
    FIVE,
    JUDGE,
    NEWER,
    PAIRED,
    PATCHED,
    SERVED,
    SHIPPED,
    STRICT,
    pinned,
    question,
    reasons,
    runs,
    served,
    steps,
    warnings,
)

NAN = math.nan
SAMPLE = policy.parse_policy({"rule": "paired", "tolerance_points": 5.0, "guard_points": 5.0})


def codes(lines: tuple[VerdictLine, ...]) -> list[str]:
    return [line.code for line in lines]


def judged(asked: GateQuestion, settings: policy.PolicySettings = STRICT) -> tuple[str, str, GateVerdict]:
    found = verdict.judge_gate(asked, settings)
    return found.verdict, found.reasons[0].code, found


# Rows 1 to 5: may they be compared


def test_81_4_against_79_6_with_one_run_each_is_a_lean_at_most() -> None:
    for n_churned in (0, 20, 60):
        candidate = runs(637, n_cases=800)
        candidate[:n_churned], candidate[800 - n_churned :] = 0, 1
        word, code, found = judged(question(runs(651, n_cases=800), candidate))
        assert (word, code, found.look) == ("inconclusive", "too_few_repeats", None)
        assert found.outlook.leaning == "none"
        assert found.outlook.repeats_needed == 4


def test_a_run_of_two_fingerprints_is_not_compared_and_its_buckets_are_not_pooled() -> None:
    mixed = replace(ASKED, served=[replace(SERVED, share=0.94), replace(SERVED, share=0.06, **NEWER)])
    word, code, found = judged(question(runs(*FIVE, n_cases=800), runs(*FIVE, n_cases=800), setup_candidate=mixed))
    assert (word, code) == ("not_comparable", "mixed_fingerprint")
    assert codes(found.next) == ["pin_batch"]
    assert (found.next[0].facts["sides"], found.next[0].facts["block"]) == (["candidate"], "mixed_fingerprint")
    both = question(runs(*FIVE, n_cases=800), runs(*FIVE, n_cases=800), setup_baseline=mixed, setup_candidate=mixed)
    assert judged(both)[2].next[0].facts["sides"] == ["baseline", "candidate"]
    assert (found.candidate.score, found.candidate.range, found.difference) == (None, None, None)
    assert found.baseline.score == pytest.approx(81.375)


LOGGED = replace(ASKED, is_logged=True)


def test_nothing_of_a_log_is_to_be_run_here_and_new_logs_are_asked_for_instead() -> None:
    few = question(runs(651, n_cases=800), runs(651, n_cases=800), setup_baseline=LOGGED, setup_candidate=LOGGED)
    _, code, found = judged(few)
    assert (code, codes(found.next)) == ("too_few_repeats", ["import_again"])
    assert "5 repeats on each side" in steps(found)[0]
    noisy = runs(640, 655, 645, 660, 650, n_cases=800)
    _, code, found = judged(
        question(
            noisy,
            noisy,
            setup_candidate=replace(LOGGED, served=served(batch_class="observed").served),
            setup_baseline=served(batch_class="observed"),
        )
    )
    assert (code, codes(found.next)) == ("noisy", ["import_again", "use_paired"])
    assert steps(found)[0].startswith("The candidate is from a log.")
    incomplete = runs(*FIVE, n_cases=800)
    incomplete[:100] = NAN
    _, code, found = judged(question(incomplete, runs(*FIVE, n_cases=800), setup_baseline=LOGGED))
    assert (code, codes(found.next)) == ("incomplete", ["import_again"])
    parsed = question(
        runs(*FIVE, n_cases=800),
        runs(*FIVE, n_cases=800),
        setup_baseline=LOGGED,
        setup_candidate=replace(LOGGED, scorer_digest="0" * 64),
    )
    _, code, found = judged(parsed)
    assert (code, steps(found)[0]) == ("scorer_changed", "Score the baseline again with the candidate's scorer.")
    _, _, kept = judged(question(runs(*FIVE, n_cases=800), runs(*FIVE, n_cases=800), setup_baseline=LOGGED))
    assert codes(kept.next) == ["sign"]


def test_another_dtype_is_a_rebaseline_and_no_regression_unless_the_stack_is_judged() -> None:
    other = served(fingerprint="f" * 64, manifest={"versions": {"vllm": "0.31.2"}, "engine": {"dtype": "bfloat16"}})
    worse = question(runs(*FIVE, n_cases=800), runs(*[600] * 5, n_cases=800), setup_candidate=other)
    word, code, found = judged(worse)
    assert (word, code, found.difference) == ("not_comparable", "rebaseline", None)
    assert "dtype float32 → bfloat16" in reasons(found)[0]
    assert codes(found.next) == ["rebaseline"]
    word, code, found = judged(replace(worse, treatment="stack"))
    assert (word, code) == ("no_ship", "regression")
    assert codes(found.warnings)[0] == "stack_judged"


def test_two_builds_of_one_version_are_a_rebaseline() -> None:
    worse = question(runs(*FIVE, n_cases=800), runs(*[600] * 5, n_cases=800))
    built = replace(worse, setup_baseline=served(**SHIPPED), setup_candidate=served(**PATCHED))
    word, code, found = judged(built)
    assert (word, code, found.difference) == ("not_comparable", "rebaseline", None)
    assert "(vLLM code 11111111 → 22222222). The versions are the same and the engine code differs" in reasons(found)[0]
    assert judged(replace(built, setup_candidate=served(**SHIPPED)))[:2] == ("no_ship", "regression")
    _, _, upgraded = judged(replace(worse, setup_candidate=served(**NEWER)))
    _, _, unknown = judged(replace(worse, setup_candidate=served(**PATCHED)))
    assert "engine code differs" not in reasons(upgraded)[0] + reasons(unknown)[0]


APART = {"answer": "two", "is_steady": False, "n_cases": 60, "n_apart": 60, "shift": 0.02, "noise": 0.005}
STEADY = APART | {"is_steady": True, "n_apart": 7, "shift": None, "noise": None}


@pytest.mark.parametrize(
    ("batch_class", "is_in_turn", "next_codes"),
    [
        ("alone", False, ["find_build", "judge_stack"]),
        ("mixed", True, ["find_build", "judge_service"]),
        ("observed", True, ["find_build", "judge_service"]),
    ],
)
def test_one_bucket_of_two_computations_is_not_comparable(
    batch_class: str, is_in_turn: bool, next_codes: list[str]
) -> None:
    setup = served(batch_class=batch_class)
    same = question(
        runs(*FIVE, n_cases=800),
        runs(*[600] * 5, n_cases=800),
        setup_baseline=setup,
        setup_candidate=setup,
        is_in_turn=is_in_turn,
    )
    assert judged(same, PAIRED)[:2] == ("no_ship", "regression")
    word, code, found = judged(replace(same, computation=APART), PAIRED)
    assert (word, code, codes(found.next)) == ("not_comparable", "computation_apart", next_codes)
    assert "their logprobs differ by 0.02 nats more than repeats do" in reasons(found)[0]
    for treatment in ("stack", "service"):
        apart, told = (
            judged(replace(same, computation=known, treatment=treatment), PAIRED)[2] for known in (APART, None)
        )
        assert (apart.verdict, codes(apart.reasons)) == (told.verdict, codes(told.reasons))


def test_bits_of_a_steady_bucket_that_differ_are_counted() -> None:
    same = question(runs(*FIVE, n_cases=800), runs(*FIVE, n_cases=800), computation=STEADY)
    assert "7 of 60 cases differ" in reasons(judged(same)[2])[0]


def test_load_alone_may_put_sides_apart_that_did_not_take_turns() -> None:
    setup = served(batch_class="mixed")
    same = question(runs(*FIVE, n_cases=800), runs(*FIVE, n_cases=800), setup_baseline=setup, setup_candidate=setup)
    word, _, found = judged(replace(same, computation=APART), PAIRED)
    assert (word, codes(found.warnings)[0]) == ("ship", "computation_apart")
    assert warnings(found, "computation_apart")[0].endswith("Load may explain that. Run both sides again, alternating.")


@pytest.mark.parametrize("sampled", ["", "draws_baseline", "draws_candidate"])
def test_in_fixed_groups_load_moves_bits_once_a_side_samples(sampled: str) -> None:
    setup = served(batch_class="fixed-8")
    same = question(runs(*FIVE, n_cases=800), runs(*FIVE, n_cases=800), setup_baseline=setup, setup_candidate=setup)
    drawn = {sampled: Draws(0.7, 7, repeats=(1, 2, 3, 4, 5))} if sampled else {}
    _, code, found = judged(replace(same, computation=APART, **drawn), PAIRED)
    assert (code == "computation_apart") is not bool(sampled)
    assert ("computation_apart" in codes(found.warnings)) is bool(sampled)


def test_an_unknown_fingerprint_is_unknown_on_both_sides() -> None:
    unknown = served(fingerprint="")
    same = runs(*FIVE, n_cases=800)
    word, code, found = judged(question(same, same, setup_baseline=unknown, setup_candidate=unknown))
    assert (word, code) == ("not_comparable", "unknown_stack")
    assert codes(found.next) == ["log_more"]


def test_an_unknown_fingerprint_is_assumed_the_same_only_in_turn_within_the_window_of_a_paired_policy() -> None:
    unknown = served(fingerprint="")
    same = question(
        runs(*FIVE, n_cases=800),
        runs(*FIVE, n_cases=800),
        setup_baseline=unknown,
        setup_candidate=unknown,
        is_in_turn=True,
        span_hours=3.0,
    )
    _, _, found = judged(same, PAIRED)
    assert (found.verdict, codes(found.warnings)) == ("ship", ["identity_assumed"])
    refused = (
        judged(same, STRICT),
        judged(replace(same, is_in_turn=False), PAIRED),
        judged(replace(same, span_hours=None), PAIRED),
        judged(replace(same, span_hours=PAIRED.window_hours + 1), PAIRED),
    )
    assert [each[:2] for each in refused] == [("not_comparable", "unknown_stack")] * 4


def test_two_services_that_share_nothing_are_judged_as_services() -> None:
    other = served(fingerprint="f" * 64, manifest={"versions": {"vllm": "0.32.0"}}, weights_digest="0" * 64)
    worse = question(runs(*FIVE, n_cases=800), runs(*[600] * 5, n_cases=800), setup_candidate=other)
    assert judged(worse)[:2] == ("not_comparable", "stack_changed")
    word, code, found = judged(replace(worse, treatment="service"))
    assert (word, code, codes(found.warnings)[0]) == ("no_ship", "regression", "service_judged")


EXPIRED = {
    "baseline": 7,
    "expired_at": "2026-11-20 08:00 UTC",
    "first_run": 9,
    "endpoint": "local",
    "profile": "pinned",
}


def test_an_expired_baseline_ships_nothing_and_says_since_when() -> None:
    expired = replace(pinned(), expired=EXPIRED)
    why = (
        "The baseline, run 7, expired on 2026-11-20 08:00 UTC: another serving stack began to answer at endpoint "
        "local under profile pinned (run 9). Run the baseline again."
    )
    word, code, found = judged(expired)
    assert (word, code, reasons(found)[0]) == ("not_comparable", "rebaseline", why)
    assert judged(replace(expired, treatment="prompt"))[:2] == ("not_comparable", "rebaseline")
    word, _, found = judged(replace(expired, treatment="stack", setup_candidate=served(**NEWER)))
    assert word == "ship"
    assert warnings(found, "baseline_expired") == [why.removesuffix(" Run the baseline again.")]


def test_what_the_question_changed_comes_before_what_the_stack_did() -> None:
    changed = replace(served(**NEWER), max_tokens=8)
    found = verdict.judge_gate(replace(pinned(), setup_candidate=changed, expired=EXPIRED), STRICT)
    assert codes(found.reasons) == ["params_changed", "rebaseline", "rebaseline"]
    assert found.reasons[1].facts == EXPIRED
    assert codes(found.next) == ["rebaseline"]


def test_two_reasons_that_one_step_undoes_ask_for_the_sides_of_the_first() -> None:
    changed = replace(served(**NEWER), scorer_digest="0" * 64, max_tokens=8)
    _, _, found = judged(replace(pinned(), setup_candidate=changed, treatment="stack"))
    assert (codes(found.reasons), codes(found.warnings)) == (["scorer_changed", "params_changed"], ["stack_judged"])
    assert [(step.facts["block"], step.facts["sides"]) for step in found.next] == [("scorer_changed", [])]


# Rows 6 and 7: incomplete, too few


def test_missing_responses_that_cannot_matter_leave_the_verdict_and_are_said() -> None:
    asked = pinned()
    asked.candidate[3, 2] = NAN
    asked.baseline[700, 0] = NAN
    word, _, found = judged(asked)
    assert word == "ship"
    assert (found.missing.n_baseline, found.missing.n_candidate, found.missing.share) == (1, 1, 0.0)
    assert found.missing.low is not None
    assert found.missing.low < found.low < found.high <= found.missing.high
    assert codes(found.warnings) == ["missing"]


def test_missing_responses_that_decide_leave_it_open() -> None:
    """6 of 800 broke: −0.75, in [−0.87, −0.63]. How three more cases would have come out decides."""
    assert judged(pinned(n_broken=6))[0] == "ship"
    asked = pinned(n_broken=6)
    asked.candidate[100:103] = NAN
    word, code, found = judged(asked)
    assert (word, code, found.n_cases_judged) == ("inconclusive", "incomplete", 797)
    assert found.missing.low < -1 < found.low
    assert codes(found.next) == ["rerun_missing"]


def test_a_drop_is_not_blocked_while_missing_responses_could_undo_it() -> None:
    """Twelve of 800 broke, −1.5: no ship, and still so unless those without an answer were all fixed."""
    assert judged(pinned(n_broken=12))[0] == "no_ship"
    few, many = pinned(n_broken=12), pinned(n_broken=12)
    few.candidate[799] = NAN
    many.candidate[795:] = NAN
    assert judged(few)[:2] == ("no_ship", "regression")
    assert judged(many)[:2] == ("inconclusive", "incomplete")


@pytest.mark.parametrize(("n_cases_lost", "word"), [(8, "ship"), (9, "inconclusive")])
def test_more_than_one_percent_of_the_cases_missing_decides_nothing(n_cases_lost: int, word: str) -> None:
    wide = replace(PAIRED, tolerance_points=5.0)
    asked = pinned()
    asked.candidate[:n_cases_lost] = NAN
    assert judged(asked, wide)[0] == word


def test_a_repeat_that_never_ran_is_none() -> None:
    asked = pinned()
    asked.candidate[:, 2] = NAN
    word, code, found = judged(asked)
    assert (word, code, found.k_candidate, found.outlook.repeats_needed) == ("inconclusive", "too_few_repeats", 4, 1)


@pytest.mark.parametrize("lost", ["all", "nobody"])
def test_without_a_score_on_both_sides_nothing_is_compared(lost: str) -> None:
    asked = pinned(n_cases=10) if lost == "all" else question(np.zeros((0, 5)), np.zeros((0, 5)))
    asked.candidate[:] = NAN
    word, code, found = judged(asked)
    assert (word, code, found.difference, found.outlook.leaning) == ("inconclusive", "incomplete", None, None)
    json.dumps(verdict.decide_from_gates([GateInput("critical", "colours", found)]), allow_nan=False)


@pytest.mark.parametrize(("n_broken", "lean"), [(0, "ship"), (8, "none"), (24, "no_ship")])
def test_one_candidate_run_against_five_leans_with_borrowed_noise(n_broken: int, lean: str) -> None:
    """Nothing seen to flip in 5 runs: SE = 100 · sqrt(0.6 / 5 + 1.25 · 0.6) / 800 = 0.117 points."""
    asked = pinned(n_broken=n_broken)
    word, code, found = judged(replace(asked, candidate=asked.candidate[:, :1]))
    assert (word, code, found.outlook.leaning) == ("inconclusive", "too_few_repeats", lean)
    half = normal_quantile(0.95) * 100 * math.sqrt(0.6 / 5 + 1.25 * 0.6) / 800
    assert found.low == pytest.approx(-100 * n_broken / 800 - half)
    assert (found.level, found.outlook.repeats_needed) == (0.9, 4)
    assert codes(found.next) == ["add_repeats"]


def test_a_quick_policy_decides_at_three() -> None:
    quick = policy.parse_policy({"rule": "paired", "tolerance_points": 1.0, "looks": [3, 10, 20]})
    found = verdict.judge_gate(pinned(k=3), quick)
    assert (found.verdict, found.look, found.alpha) == ("ship", 3, 0.03)
    assert verdict.judge_gate(pinned(k=3), PAIRED).reasons[0].code == "too_few_repeats"


# Row 8: the guard


def steps_if_batched(asked: GateQuestion, settings: policy.PolicySettings, batch_class: str = "mixed") -> list[str]:
    """What to do next where both sides were batched as they came, or like this."""
    mixed = served(batch_class=batch_class)
    return codes(verdict.judge_gate(replace(asked, setup_baseline=mixed, setup_candidate=mixed), settings).next)


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        pytest.param([640, 644, 645, 646, 648], "within_tolerance", id="8-of-800-is-one-point-and-no-more"),
        pytest.param([640, 644, 645, 646, 649], "noisy", id="9-of-800-is-more"),
    ],
)
def test_a_range_over_one_point_is_noisy_and_at_one_point_it_is_not(counts: list[int], code: str) -> None:
    steady = runs(*[645] * 5, n_cases=800)
    guarded = replace(STRICT, tolerance_points=3.0)  # so that the guard alone decides
    word, found_code, found = judged(question(steady, runs(*counts, n_cases=800)), guarded)
    assert (found_code, word) == (code, "inconclusive" if code == "noisy" else "ship")
    swapped = verdict.judge_gate(question(runs(*counts, n_cases=800), steady), guarded)
    assert swapped.reasons[0].code == code
    if code == "noisy":
        assert codes(found.next) == ["use_paired"]  # it is decoded alone already
        noisy = question(steady, runs(*counts, n_cases=800))
        assert steps_if_batched(noisy, guarded, "fixed-8") == ["use_paired"]
        assert steps_if_batched(noisy, guarded) == ["pin_batch", "use_paired"]
        asked = question(steady, runs(*counts, n_cases=800))
        assert steps_if_batched(asked, guarded) == ["pin_batch", "use_paired"]
        assert found.outlook.repeats_needed is None
        assert "1.1 points over 5 repeats" in reasons(found)[0]


def test_what_a_noisy_side_spreads_over_is_that_of_the_noisier() -> None:
    noisy, noisier = runs(640, 650, 645, 660, 655, n_cases=800), runs(600, 650, 645, 660, 655, n_cases=800)
    alone, *both = (
        judged(question(*sides))[2].reasons[0].facts["scatter"]
        for sides in ((runs(*FIVE, n_cases=800), noisier), (noisy, noisier), (noisier, noisy))
    )
    assert both == pytest.approx([alone] * 2)


@pytest.mark.parametrize(
    ("share", "next_codes"),
    [(0.4, ["pin_batch", "use_paired"]), (0.5, ["pin_batch", "use_paired"]), (0.6, ["judge_more", "use_paired"])],
)
def test_a_judge_is_to_be_steadier_where_most_of_the_variance_is_its_own(share: float, next_codes: list[str]) -> None:
    """Of one side: the other's judge is as exact as a scorer."""
    noisy = runs(640, 655, 645, 660, 650, n_cases=800)
    sd_points = judged(question(noisy, noisy))[2].candidate.noise.sd_points or 0.0
    sides = (0.0, math.sqrt(share) * sd_points * (1 - 1e-12))
    setups = [replace(served(batch_class="mixed"), judge=replace(JUDGE, sd_points=each)) for each in sides]
    for baseline, candidate in (setups, reversed(setups)):
        asked = question(noisy, noisy, setup_baseline=baseline, setup_candidate=candidate)
        assert codes(judged(asked)[2].next) == next_codes


def test_a_noisy_bucket_is_no_regression_however_low_it_is() -> None:
    worse = question(runs(*FIVE, n_cases=800), runs(500, 510, 520, 530, 540, n_cases=800))
    word, code, found = judged(worse)
    assert (word, code, found.outlook.leaning) == ("inconclusive", "noisy", "no_ship")
    word, code, found = judged(worse, PAIRED)
    assert (word, code) == ("no_ship", "regression")
    assert "noisy_bucket" in codes(found.warnings)


def test_the_guard_of_more_repeats_is_that_of_five_of_them() -> None:
    """Twenty runs of which one is low: the plain range is 2 points, that of 5 of them 0.5 in the mean."""
    counts = [645] * 19 + [629]
    found = verdict.judge_gate(question(runs(*[645] * 20, n_cases=800), runs(*counts, n_cases=800)), STRICT)
    assert found.candidate.range == (pytest.approx(78.625), pytest.approx(80.625))
    assert found.candidate.noise.range5_points == pytest.approx(2.0 * 5 / 20)
    assert found.reasons[0].code != "noisy"


def test_a_missing_response_fakes_no_range() -> None:
    asked = question(runs(*[645] * 5, n_cases=800), runs(*[645] * 5, n_cases=800))
    asked.candidate[0, 0] = asked.candidate[1, 1] = NAN
    found = verdict.judge_gate(asked, STRICT)
    assert found.candidate.noise.range5_points == 0.0


# Rows 9 to 11: the interval and the tolerance


@pytest.mark.parametrize(
    ("n_broken", "n_fixed", "word", "code"),
    [
        pytest.param(0, 0, "ship", "within_tolerance", id="nothing-changed"),
        pytest.param(4, 4, "ship", "within_tolerance", id="as-many-fixed"),
        pytest.param(0, 8, "ship", "better", id="better"),
        pytest.param(4, 0, "ship", "small_real_drop", id="a-small-real-drop"),
        pytest.param(8, 0, "inconclusive", "not_settled", id="on-the-tolerance"),
        pytest.param(16, 0, "no_ship", "regression", id="twice-the-tolerance"),
    ],
)
def test_the_interval_against_the_tolerance(n_broken: int, n_fixed: int, word: str, code: str) -> None:
    """Half of the interval is 1.881 · 100 · sqrt(2 · 0.6 / 5) / 800 = 0.115 points."""
    found = judged(pinned(n_broken, n_fixed))
    assert found[:2] == (word, code)
    half = 100 * normal_quantile(0.97) * math.sqrt(2 * 0.6 / 5) / 800
    difference = 100 * (n_fixed - n_broken) / 800
    assert (found[2].low, found[2].high) == (pytest.approx(difference - half), pytest.approx(difference + half))
    assert (found[2].level, found[2].method) == (0.94, "flips")
    changed = found[2].changed
    assert (changed.n_fixed, changed.n_broken, changed.n_unstable) == (n_fixed, n_broken, 0)
    assert changed.broken == tuple(f"case-{case:04d}" for case in range(n_broken))


def test_later_looks_have_their_own_level() -> None:
    found = verdict.judge_gate(pinned(k=12), STRICT)
    assert (found.look, found.alpha, found.level, found.k_candidate) == (10, 0.017, 0.966, 12)
    assert "The others count once each side has 20" in warnings(found, "repeats_kept")[0]


def test_repeats_beyond_a_look_change_nothing_yet() -> None:
    asked = pinned(n_broken=4, k=5)
    more = replace(asked, candidate=np.hstack([asked.candidate, np.zeros((800, 3))]))
    before, after = verdict.judge_gate(asked, STRICT), verdict.judge_gate(more, STRICT)
    assert (after.verdict, after.low, after.high, after.k_candidate) == (before.verdict, before.low, before.high, 8)
    assert codes(after.warnings) == ["repeats_kept"]


def test_thirty_cases_are_too_few_for_one_point_and_do_for_five() -> None:
    same = runs(*[20] * 5, n_cases=30)
    word, code, found = judged(question(same, same))
    assert (word, code) == ("inconclusive", "suite_too_small")
    assert found.cases_needed == {5: 93, 10: 52, 20: 26}
    for number in ("93 cases at 5 repeats or 52 at 10.", "±3.1 points"):
        assert number in reasons(found)[0]
    assert "26 at 20" not in reasons(found)[0]  # for 20 repeats these cases are enough
    assert (found.outlook.repeats_needed, found.outlook.expected.repeats) == (15, 20)
    assert codes(found.next) == ["settle", "larger_suite"]
    word, code, found = judged(question(same, same), SAMPLE)
    assert (word, code) == ("ship", "within_tolerance")
    assert "few_cases" in codes(found.warnings)


def test_a_suite_too_small_for_every_look_needs_more_cases() -> None:
    same = runs(*[20] * 5, n_cases=25)
    found = verdict.judge_gate(question(same, same), STRICT)
    assert (found.reasons[0].code, found.outlook.repeats_needed) == ("suite_too_small", None)
    assert codes(found.next) == ["larger_suite", "decide_by_hand"]


def test_a_small_suite_still_decides_what_is_plain() -> None:
    assert judged(pinned(n_broken=10, n_cases=30))[:2] == ("no_ship", "regression")
    assert judged(pinned(n_fixed=10, n_cases=30))[:2] == ("ship", "better")


def test_not_settled_says_how_many_repeats_would() -> None:
    """Spread evenly over runs, 49 cases of 800 flip on both sides: SD 0.48 points, SE 0.30 at 5 repeats."""
    baseline, candidate = np.ones((800, 5)), np.ones((800, 5))
    for case in range(49):
        baseline[case, [case % 5, (case + 1) % 5]] = 0
        candidate[case + 100, [case % 5, (case + 1) % 5]] = 0
    candidate[200:203] = 0
    word, code, found = judged(question(baseline, candidate), PAIRED)
    assert (word, code) == ("ship", "within_tolerance")
    candidate[203:205] = 0
    word, code, found = judged(question(baseline, candidate), PAIRED)
    assert (word, code, found.outlook.leaning) == ("inconclusive", "not_settled", "none")
    assert (found.outlook.repeats_needed, found.outlook.expected.repeats) == (15, 20)
    assert "20 repeats per side would decide it about 6 times in 10." in reasons(found)[0]
    assert codes(found.next) == ["settle", "larger_suite", "decide_by_hand"]
    in_batches = steps_if_batched(question(baseline, candidate), PAIRED)
    assert in_batches == ["settle", "pin_batch", "larger_suite", "decide_by_hand"]
    candidate[300:302] = np.array([[1], [1]])
    candidate[204] = 1
    word, code, found = judged(question(baseline, candidate), PAIRED)
    assert (code, found.outlook.repeats_needed, found.outlook.expected.repeats) == ("not_settled", 15, 20)
    assert "20 repeats per side would decide it about 8 times in 10." in reasons(found)[0]


def test_what_repeats_are_likely_to_settle_is_left_to_them() -> None:
    """-0.91 in ±0.12: at 10 repeats ±0.07 are left, and nothing was seen to move."""
    word, code, found = judged(pinned(n_broken=7, n_cases=770))
    assert (word, code, found.outlook.repeats_needed) == ("inconclusive", "not_settled", 5)
    assert "10 repeats per side would decide it more than 9 times in 10." in reasons(found)[0]
    assert codes(found.next) == ["settle"]


def test_on_the_tolerance_nobody_is_sent_to_run_more_repeats() -> None:
    word, code, found = judged(pinned(n_broken=8))
    assert (word, code, found.outlook.repeats_needed, found.outlook.expected) == (
        "inconclusive",
        "not_settled",
        None,
        None,
    )
    assert "More repeats rarely help: 20 per side would decide it less than once in 10." in reasons(found)[0]
    assert codes(found.next) == ["larger_suite", "decide_by_hand"]
    last = verdict.judge_gate(pinned(n_broken=8, k=20), STRICT)
    assert "More repeats do not help: the policy stops at 20 per side." in reasons(last)[0]


def test_both_sides_are_described_over_the_cases_judged() -> None:
    found = verdict.judge_gate(pinned(n_broken=4), STRICT)
    assert (found.baseline.score, found.candidate.score) == (50.0, 49.5)
    assert found.candidate.points == (49.5,) * 5
    assert found.candidate.score - found.baseline.score == pytest.approx(found.difference)
    assert (found.candidate.range, found.candidate.noise.sd_points, found.candidate.noise.n_unstable) == (
        (49.5, 49.5),
        0.0,
        0,
    )
    low, high = found.candidate.interval
    assert low < 49.5 < high


def test_runs_that_move_as_a_whole_carry_a_badge_and_their_own_noise() -> None:
    shifted = question(runs(*[400] * 5, n_cases=800), runs(380, 390, 400, 410, 420, n_cases=800))
    found = verdict.judge_gate(shifted, PAIRED)
    assert found.method == "runs"
    assert "overdispersed" in codes(found.warnings)
    se = math.sqrt(np.var([380, 390, 400, 410, 420], ddof=1) / 5) / 8
    assert found.p_no_ship == pytest.approx(student_cdf(1.0 / se, 8))


def test_a_clear_change_of_a_few_cases_says_in_the_same_sentence_what_is_known_of_others() -> None:
    [small] = reasons(verdict.judge_gate(pinned(n_fixed=1, n_cases=30), PAIRED))
    [large] = reasons(verdict.judge_gate(pinned(n_fixed=8), PAIRED))
    assert small == (
        "On these 30 cases the change is +3.3 points, in [+0.3, +6.4] (94 % interval). The candidate is better than "
        "the baseline. For new cases the interval is [−6.2, +12.4]."
    )
    assert "new cases" not in large


@pytest.mark.parametrize(("n_cases", "is_said"), [(49, True), (50, False)])
def test_under_fifty_cases_it_is_said_that_the_promised_rates_do_not_hold(n_cases: int, is_said: bool) -> None:
    [text] = warnings(verdict.judge_gate(pinned(n_cases=n_cases), PAIRED), "few_cases")
    assert ("a wrong verdict is likelier" in text) == is_said


def test_coarse_is_said_only_where_the_verdict_is_open() -> None:
    """What resolves less than the tolerance may ship all the same, and has no doubt then."""
    flips, places = np.ones((800, 5)), np.arange(100)
    flips[places, places % 5] = flips[places, (places + 1) % 5] = 0
    for n_broken, word in ((0, "ship"), (8, "inconclusive"), (80, "no_ship")):
        candidate = np.roll(flips, 100, axis=0)
        candidate[300 : 300 + n_broken] = 0
        found = verdict.judge_gate(question(flips, candidate), PAIRED)
        assert (found.verdict, (found.resolution_points or 0) > PAIRED.tolerance_points) == (word, True)
        assert ("coarse" in codes(found.warnings)) == (word == "inconclusive")


def test_where_too_few_groups_changed_nothing_else_is_said_of_new_cases() -> None:
    grouped = replace(pinned(12), groups=[f"group-{case // 5}" for case in range(800)])
    found = verdict.judge_gate(grouped, PAIRED)
    assert "reach_wide" in codes(verdict.judge_gate(pinned(16), PAIRED).warnings)
    assert (found.reach and found.reach.is_concentrated, found.reach and found.reach.low < -2) == (True, True)
    assert codes(found.warnings) == ["concentrated"]
    small = replace(pinned(0, 3, n_cases=150), groups=[f"group-{case // 3}" for case in range(150)])
    assert "new cases" not in reasons(verdict.judge_gate(small, PAIRED))[0]


@pytest.mark.parametrize(
    ("counts", "said"),
    [((0, 0), "No case changed its score. Sign off."), ((4, 4), "Look at the cases that changed"), ((1, 0), "Look at")],
)
def test_a_ship_sends_to_the_cases_that_changed_where_there_are_some(counts: tuple[int, int], said: str) -> None:
    [step] = steps(verdict.judge_gate(pinned(*counts), PAIRED))
    assert step.startswith(said)


@pytest.mark.parametrize(("n_broken", "leaning"), [(0, "ship"), (8, "none"), (40, "no_ship")])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_noise_of_earlier_runs_gives_a_lean_before_the_first_look_and_changes_nothing_else(
    k: int, n_broken: int, leaning: str
) -> None:
    early = EarlierNoise(20, 1.0)
    without = pinned(n_broken, k=k)
    foretold = verdict.judge_gate(replace(without, early_baseline=early, early_candidate=early), PAIRED)
    lean = foretold.outlook.early_lean
    plain = verdict.judge_gate(without, PAIRED)
    assert (foretold.verdict, foretold.low, foretold.high, foretold.outlook.leaning) == (
        plain.verdict,
        plain.low,
        plain.high,
        plain.outlook.leaning,
    )
    if k == 5:
        assert lean is None
        return
    assert lean is not None
    assert lean.leaning == leaning
    assert plain.low is not None
    assert lean.low > plain.low
    assert "Experimental: with the noise of earlier runs" in reasons(foretold)[0]
    assert "earlier runs" not in reasons(plain)[0]


def test_draws_have_no_early_lean() -> None:
    early = EarlierNoise(20, 1.0)
    asked = replace(
        pinned(k=2), early_baseline=early, early_candidate=early, draws_candidate=Draws(0.7, 1, repeats=(1, 2))
    )
    assert verdict.judge_gate(asked, PAIRED).outlook.early_lean is None
