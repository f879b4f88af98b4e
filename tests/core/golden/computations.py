"""Whether both sides are one computation, and responses of a run that another computation gave."""

from collections.abc import Sequence

import numpy as np

from bench.simulated_shifts import FLOOR, SEED, Stack, tables
from evalboard.contract.compare import OneComputation
from evalboard.core.stats import FAR_FLOORS, count_equal, find_strays, judge_distances, judge_steady, tell_apart
from evalboard.wording.computation import write_computation
from tests.core.golden.readers import Sentence, Situations, read_run_warnings
from tests.core.test_one_computation import compare
from tests.core.test_strays import table

NO_CASES = np.zeros((0, 2), np.int64)


def read_computation(judged: OneComputation, *, is_one_bucket: bool = True) -> list[Sentence]:
    text = write_computation({"is_one_bucket": is_one_bucket, **judged.to_stored()})
    steady = "steady " if judged.is_steady else ""
    return [Sentence("computation", f"{steady}{judged.answer}", text)]


def steady(n_cases: int, n_apart: int) -> OneComputation:
    return judge_steady(np.arange(n_cases) < n_apart)


def apart(n_cases: int, nats: float) -> OneComputation:
    """Two sides whose repeats show no noise and that lie so far apart in so many cases."""
    zero = np.zeros(n_cases)
    return judge_distances(np.full(n_cases, nats**2), (zero, zero), floor=FLOOR)


def scored(judged: OneComputation) -> list[Sentence]:
    """The same of answers that both stacks have scored, each of 60 positions."""
    return read_computation(judged.model_copy(update={"n_positions": 60 * judged.n_cases}), is_one_bucket=False)


def read_strays(
    cases: Sequence[np.ndarray],
    *,
    far_nats: float,
    is_steady: bool = False,
    n_same: int = 0,
    n_identical: int | None = None,
) -> list[Sentence]:
    """Read the run's warning of strays. n_same: responses to cases in which nothing differs. n_identical: that agree
    to the bit with another of their case; None: an earlier Evalboard did not count them.
    """
    strays = find_strays(np.array(cases), far=far_nats)
    assert strays is not None
    n_responses = n_same + sum(map(len, cases))
    facts = {
        "n_strays": len(strays.places),
        "n_stray_cases": len({case for case, _ in strays.places}),
        "noise": strays.noise,
        "distance": strays.distance,
        "is_steady": is_steady,
        "n_responses": n_responses,
        "n_agreeing": n_same + strays.n_agreeing,
        "n_identical": n_identical,
    }
    return read_run_warnings(strays=[facts])


SITUATIONS: Situations = {
    "Pinned sides that are the same to the bit": lambda: read_computation(steady(200, 0)),
    "Pinned sides of which one case differs": lambda: read_computation(steady(200, 1)),
    "Pinned sides of one case": lambda: read_computation(steady(1, 1)),
    "Pinned sides without logprobs": lambda: read_computation(steady(0, 0)),
    "Sides of two dtypes whose repeats are the same to the bit": lambda: read_computation(
        tell_apart(apart(24, FLOOR / 2), np.full((24, 2), 3), n_cases=60, floor=FLOOR), is_one_bucket=False
    ),
    "Two builds that differ in three cases, too few to judge": lambda: read_computation(
        count_equal(apart(3, FLOOR / 2).model_copy(update={"n_differing": 3}), NO_CASES, n_equal=57, n_differing=3),
        is_one_bucket=False,
    ),
    "Sides of one fingerprint whose repeats are the same to the bit": lambda: read_computation(
        tell_apart(apart(24, FLOOR / 2), np.full((24, 2), 3), n_cases=60, floor=FLOOR)
    ),
    "Noise alone": lambda: read_computation(compare(noise=(0.03, 0.03))),
    "Noise alone, and tokens that it does not explain": lambda: read_computation(
        compare(noise=(0.03, 0.03)).model_copy(update={"n_unexplained": 235})
    ),
    "Noise alone, and one response of the baseline from another build": lambda: read_computation(
        compare(noise=(0.03, 0.03)).model_copy(update={"n_strays_baseline": 1})
    ),
    "Noise alone, and responses of both sides from another build": lambda: read_computation(
        compare(noise=(0.03, 0.03)).model_copy(update={"n_strays_baseline": 43, "n_strays_candidate": 12})
    ),
    "Noise alone, in fewer than half of the cases that differ": lambda: read_computation(
        compare(noise=(0.03, 0.03)).model_copy(update={"n_differing": 100})
    ),
    "Logits that are off everywhere, under one fingerprint": lambda: read_computation(
        compare(noise=(0.03, 0.03), shift=0.03)
    ),
    "Logits that are off everywhere, under two fingerprints": lambda: read_computation(
        compare(noise=(0.03, 0.03), shift=0.03), is_one_bucket=False
    ),
    "Far apart, and repeats agree to the bit": lambda: read_computation(apart(40, 0.3)),
    "Ten cases that all lie far apart": lambda: read_computation(apart(10, 0.3)),
    "Both stacks scored the answers, to the same bits": lambda: scored(apart(40, 0.0)),
    "Both stacks scored the answers, within noise": lambda: scored(compare(noise=(0.03, 0.03))),
    "Both stacks scored the answers, and lie apart": lambda: scored(compare(noise=(0.03, 0.03), shift=0.03)),
    "Nine cases of ten lie far apart": lambda: read_computation(
        judge_distances(np.array([0.3**2] * 9 + [1e-12]), (np.zeros(10), np.zeros(10)), floor=FLOOR)
    ),
    "Nine cases": lambda: read_computation(apart(9, 0.3)),
    "One case": lambda: read_computation(apart(1, 0.3)),
    "Six in a hundred responses were routed elsewhere": lambda: read_strays(
        tables(Stack(0.03), 5, np.random.default_rng(SEED), routed=0.06, n_cases=200), far_nats=FAR_FLOORS * FLOOR
    ),
    "Six in a hundred were routed elsewhere, and most of the others are the same to the bit": lambda: read_strays(
        tables(Stack(0.03), 5, np.random.default_rng(SEED), routed=0.06, n_cases=200),
        far_nats=FAR_FLOORS * FLOOR,
        n_same=200,
        n_identical=830,
    ),
    "Three responses were routed elsewhere, and the others agree to the bit": lambda: read_strays(
        [table(0.33)] * 3, far_nats=FAR_FLOORS * FLOOR
    ),
    "Three responses of a pinned run differ": lambda: read_strays([table(1e-7)] * 3, far_nats=0.0, is_steady=True),
    "Three responses of 4,000 of a pinned run differ": lambda: read_strays(
        [table(1e-7)] * 3, far_nats=0.0, is_steady=True, n_same=3985
    ),
    "Repeats of a pinned run differ in one case": lambda: read_run_warnings(
        unsteady=[{"batch_class": "alone", "n_cases": 200, "n_apart": 1, "cases": ["sky"]}]
    ),
    "Repeats in fixed groups differ in twelve cases": lambda: read_run_warnings(
        unsteady=[{"batch_class": "fixed-8", "n_cases": 200, "n_apart": 12, "cases": ["sky", "sea", "sun"]}]
    ),
}
