"""An endpoint beside answers of known origin: each of the four words, and how often an honest one is accused."""

import math
from typing import Any

import numpy as np
import pytest

from evalboard.contract.verification import JudgedAnswers
from evalboard.core.forced import ForcedPositions, choose_statistic, verify_endpoint

NAN = math.nan
LENGTH = 50


def answer(scale: float, n: int, seed: int, *, has_logprobs: bool = True) -> ForcedPositions:
    """n responses whose log r scatters by `scale`, more in some responses; a deficit where it scatters far."""
    rng = np.random.default_rng(seed)
    spread = np.repeat(np.exp(rng.normal(0, 0.3, n)), LENGTH)
    log_ratios = rng.normal(0, 1, n * LENGTH) * scale * spread
    deficits = np.where(rng.random(n * LENGTH) < 0.2, np.maximum(-log_ratios, 0), 0.0)
    unknown = np.full(len(log_ratios), NAN)
    return ForcedPositions(np.arange(n + 1) * LENGTH, log_ratios if has_logprobs else unknown, deficits)


CONTROL, NUMERICS, PLANTED = answer(0.0, 40, 1), answer(0.012, 40, 2), answer(0.025, 40, 3)


def verify(endpoint: ForcedPositions, *, control: ForcedPositions = CONTROL, seed: int = 0) -> JudgedAnswers:
    return verify_endpoint(endpoint, control=control, numerics=[NUMERICS], planted=PLANTED, random_seed=seed)


@pytest.mark.parametrize("has_logprobs", [True, False], ids=["gap", "deficit"])
@pytest.mark.parametrize(
    ("scale", "state"),
    [(0.0, "same_stack"), (0.012, "same_model_other_numerics"), (0.025, "other_model"), (0.4, "other_model")],
)
def test_each_origin_has_its_word(scale: float, state: str, has_logprobs: bool) -> None:
    verification = verify(answer(scale, 60, 10, has_logprobs=has_logprobs))
    assert verification.state == state
    assert verification.statistic == ("gap" if has_logprobs else "deficit")
    assert verification.n_more_tokens is None


def test_the_bands_stand_in_their_order_and_the_boundary_between() -> None:
    verification = verify(answer(0.012, 60, 11))
    assert verification.planted is not None
    assert verification.endpoint is not None
    assert verification.control.mean.value == 0.0
    assert verification.numerics.mean.value < verification.boundary < verification.planted.mean.value
    assert verification.change == verification.planted.mean.value
    assert (verification.endpoint.n_responses, verification.endpoint.n_tokens) == (60, 60 * LENGTH)


def test_few_tokens_say_how_many_more_and_so_many_are_enough() -> None:
    few = verify(answer(0.012, 2, 12))
    assert few.state == "too_few_tokens"
    assert few.n_more_tokens is not None
    assert not few.are_bands_short
    n = math.ceil((2 * LENGTH + few.n_more_tokens) / LENGTH)
    states = [verify(answer(0.025, n, seed)).state for seed in range(100, 150)]
    assert states.count("other_model") >= 30  # with a chance of 0.8, less three standard errors


def test_bands_that_are_too_short_say_so() -> None:
    known: Any = {"control": CONTROL, "numerics": [answer(0.012, 3, 4)], "planted": answer(0.025, 3, 5)}
    verification = verify_endpoint(answer(0.014, 40, 13), **known)
    assert verification.state == "too_few_tokens"
    assert verification.are_bands_short


def test_a_change_no_larger_than_numerics_is_told_by_no_number_of_tokens() -> None:
    verification = verify_endpoint(answer(0.012, 40, 14), control=CONTROL, numerics=[NUMERICS], planted=NUMERICS)
    assert verification.state == "too_few_tokens"
    assert verification.n_more_tokens is None


def test_without_a_planted_change_twice_the_numerics_is_told() -> None:
    words = [
        verify_endpoint(answer(scale, 40, 15), control=CONTROL, numerics=[NUMERICS]).state for scale in (0.012, 0.024)
    ]
    assert words == ["same_model_other_numerics", "other_model"]


@pytest.mark.parametrize("n", [30, pytest.param(100, marks=pytest.mark.nightly)])
def test_an_honest_endpoint_is_accused_at_most_once_in_a_hundred(n: int) -> None:
    accused = sum(verify(answer(0.012, 20, seed), seed=seed).state == "other_model" for seed in range(200, 200 + n))
    assert accused <= n / 100 + 3 * math.sqrt(n / 100)


def test_a_little_more_than_numerics_accuses_nobody_however_many_tokens() -> None:
    """Other kernels lie a little above the second dtype, and with tokens enough that is significant."""
    verification = verify(answer(0.0142, 400, 16))
    assert verification.p_above_numerics is not None
    assert verification.p_above_numerics <= 0.01
    assert verification.state == "same_model_other_numerics"


def test_of_several_honest_sets_the_farthest_counts() -> None:
    """Kernels of another vendor lie farther off than a second dtype: what lies no farther than they do is honest."""
    endpoint, farther = answer(0.025, 60, 19), answer(0.025, 40, 20)
    known: Any = {"control": CONTROL, "planted": answer(0.05, 40, 21)}
    one = verify_endpoint(endpoint, numerics=[NUMERICS], **known)
    several = verify_endpoint(endpoint, numerics=[NUMERICS, farther], **known)
    assert (one.state, several.state) == ("other_model", "same_model_other_numerics")
    assert (several.numerics_place, several.numerics.mean.value) > (0, one.numerics.mean.value)


def test_nothing_nearer_than_root_two_of_the_honest_gap_is_another_model() -> None:
    """A planted change that is hardly one leaves the boundary at twice the mean square."""
    known: Any = {"control": CONTROL, "numerics": [NUMERICS], "planted": answer(0.0145, 400, 22)}
    verification = verify_endpoint(answer(0.0155, 400, 23), **known)
    assert verification.boundary == pytest.approx(2 * verification.numerics.mean.value)
    assert verification.endpoint is not None
    assert verification.change < verification.endpoint.mean.value < verification.boundary
    assert verification.state == "too_few_tokens"


def test_one_position_accuses_nobody() -> None:
    endpoint = answer(0.012, 40, 17)
    endpoint.log_ratios[77] = -400.0
    assert verify(endpoint).state == "same_model_other_numerics"


@pytest.mark.parametrize(
    ("n_moved", "state"), [(0, "same_stack"), (1, "same_stack"), (20, "same_model_other_numerics")]
)
def test_a_still_control_makes_nobody_another_stack_by_a_single_bit(n_moved: int, state: str) -> None:
    """40 answers that never moved leave room for 1 in 14 that do; many that move by a bit are another stack's."""
    endpoint = answer(0.0, 40, 18)
    endpoint.log_ratios[: n_moved * LENGTH : LENGTH] = 1e-7
    assert verify(endpoint).state == state


@pytest.mark.parametrize(("n_seeds", "n_moved_allowed"), [(20, 0), pytest.param(60, 2, marks=pytest.mark.nightly)])
def test_noise_of_single_bits_is_told_as_noise_of_any_size_is(n_seeds: int, n_moved_allowed: int) -> None:
    """Five answers in 120 move by a millionth: whichever 40 of them are the control, the rest are the same stack's."""
    moved = 0
    for seed in range(n_seeds):
        steps = np.zeros(120)
        steps[np.random.default_rng(seed).permutation(120)[:5]] = 1e-6
        log_ratios = np.repeat(steps, LENGTH)
        starts = np.arange(121) * LENGTH
        parts = [
            ForcedPositions(starts[: n + 1], log_ratios[first * LENGTH : (first + n) * LENGTH], np.zeros(n * LENGTH))
            for first, n in ((0, 40), (40, 80))
        ]
        moved += verify(parts[1], control=parts[0]).state != "same_stack"
    assert moved <= n_moved_allowed


def test_the_noise_of_the_control_is_nobody_s_fault() -> None:
    """On a GPU prefill and decode run other kernels: the same stack is not still."""
    noisy = answer(0.006, 40, 19)
    assert verify(answer(0.006, 60, 20), control=noisy).state == "same_stack"
    assert verify(answer(0.012, 60, 21), control=noisy).state == "same_model_other_numerics"


def test_the_gap_is_taken_where_every_token_has_a_logprob() -> None:
    endpoint = answer(0.012, 4, 22)
    assert choose_statistic(endpoint) == "gap"
    endpoint.log_ratios[3] = NAN
    assert choose_statistic(endpoint) == "deficit"


def test_an_endpoint_without_answers_is_not_judged() -> None:
    verification = verify(answer(0.012, 0, 1))
    assert verification.state == "too_few_tokens"
    assert verification.endpoint is verification.p_above_numerics is None
    assert verification.n_more_tokens


def test_bands_without_answers_are_refused() -> None:
    with pytest.raises(ValueError, match="each need a response"):
        verify(answer(0.012, 4, 23), control=answer(0.0, 0, 1))


def test_a_seed_gives_the_same_judgement() -> None:
    endpoint = answer(0.015, 20, 24)
    assert verify(endpoint) == verify(endpoint)
