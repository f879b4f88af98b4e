"""Two sampled runs of a suite, simulated: what seeds that both sides share do for the verdict (docs/verdict.md).

Three cases in ten pass in a share of their draws, drawn from Beta(3, 1); the others always or never. The two models'
draws of a case are the same as long as their texts do, and in a share of the cases the texts part: there the candidate
draws by itself. A drop takes chance away from such cases, so that the true difference is known exactly: of the mean, or
of pass@k and pass^k where one of these decides. With seeds apart every draw of the candidate is one by itself.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.simulated import MINUS, N_CASES, PASSING, SEED, Pair, Regime, Scores, draw_chances, follow, judge
from evalboard.contract.run import Draws
from evalboard.core.profile import call_seed
from evalboard.core.release.gate_verdict import GateVerdict
from evalboard.core.scoring import MEAN, PASS_ALL, PASS_AT, MetricSpec
from evalboard.core.suite import DEFAULT_POLICIES, SAMPLED_POLICY, parse_policy

UNSTABLE = 0.3  # of the cases
SETTINGS = parse_policy(DEFAULT_POLICIES[SAMPLED_POLICY]["settings"])
TEMPERATURE, RUN_SEED, OTHER_SEED = 0.7, 42, 43


@dataclass(frozen=True, eq=False)
class DrawnPair(Pair):
    """A pair of sampled runs; share_seeds: by one run's seed, so that draw r stands against draw r."""

    share_seeds: bool = True

    def at(self, k: int) -> "DrawnPair":
        return DrawnPair(self.baseline[:, :k], self.candidate[:, :k], self.difference, share_seeds=self.share_seeds)

    @property
    def draws(self) -> tuple[Draws, Draws]:
        repeats = tuple(range(1, self.baseline.shape[1] + 1))
        theirs = RUN_SEED if self.share_seeds else OTHER_SEED
        return Draws(TEMPERATURE, RUN_SEED, repeats=repeats), Draws(TEMPERATURE, theirs, repeats=repeats)


def pairs(
    n: int,
    *,
    parted: float,
    share_seeds: bool,
    difference: float = 0.0,
    k: int = 5,
    seed: int = SEED,
    metric: MetricSpec = MEAN,
) -> Iterator[DrawnPair]:
    """n pairs of runs of k draws, each of a suite of its own. parted: share of cases whose texts part.

    difference: the true one of the metric, in points.
    """
    rng = np.random.default_rng(seed)
    for _ in range(n):
        chances = (rng.random(N_CASES) < PASSING).astype(np.float64)
        unstable = rng.random(N_CASES) < UNSTABLE
        chances[unstable] = rng.beta(3, 1, int(unstable.sum()))
        lost = -difference * N_CASES / 100
        has_parted = _parted(rng, parted)
        while _true(chances[has_parted], metric).sum() < lost:  # cases that hardly ever pass have no such drop in them
            has_parted = _parted(rng, parted)
        changed = _changed(chances, has_parted, lost, metric)
        baseline = _drawn(rng, chances, k)
        apart = _drawn(rng, changed, k)
        candidate = np.where(has_parted[:, None], apart, baseline) if share_seeds else apart
        yield DrawnPair(baseline, candidate, difference, share_seeds=share_seeds)


def external_pairs(
    n: int, *, unstable: float, is_one_seed: bool = False, k: int = 5, seed: int = SEED
) -> Iterator[Pair]:
    """n pairs of equal external servers that refuse the temperature of a greedy profile and sample by the seed.

    unstable: share of cases that pass by chance. is_one_seed: all calls have the profile's, so that repeats are copies.
    """
    rng = np.random.default_rng(seed)
    sampling, cases = {"temperature": 0.0, "seed": RUN_SEED}, [f"case-{index}" for index in range(N_CASES)]
    sent = np.full((N_CASES, k), RUN_SEED, np.uint64)
    for repeat in () if is_one_seed else range(k):
        of_repeat = partial(call_seed, sampling, run_seed=RUN_SEED, repeat=repeat + 1, is_external=True)
        sent[:, repeat] = [of_repeat(case_id=case) for case in cases]
    for _ in range(n):
        chances = draw_chances(rng, Regime("external", unstable), N_CASES)
        servers = rng.integers(2**63, size=2, dtype=np.uint64)
        ours, theirs = ((sample_by_seed(sent, server) < chances[:, None]).astype(np.float64) for server in servers)
        yield Pair(ours, theirs, 0.0)


def sample_by_seed(seeds: NDArray[np.uint64], server: np.uint64) -> Scores:
    """Return what a server's sampler draws, from 0 to 1: float64[n_cases, k], the same for one case and seed."""
    mixed = seeds ^ server ^ (np.arange(len(seeds), dtype=np.uint64) << np.uint64(40))[:, None]
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 0x9E3779B97F4A7C15)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray((mixed ^ (mixed >> np.uint64(29))) / 2.0**64, np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnClaim:
    """What docs/verdict.md promises of sampled runs; look and aims as in simulated.Claim."""

    parted: float
    share_seeds: bool
    difference: float
    look: int | None
    says: str
    holds: Callable[[GateVerdict, float], bool]
    at_most: float | None = None
    at_least: float | None = None
    metric: MetricSpec = MEAN

    @property
    def situation(self) -> str:
        by = "" if self.metric.is_mean else f"by {self.metric.name}, "
        seeds = f"{by}shared seeds, {100 * self.parted:g} % of cases parted" if self.share_seeds else f"{by}seeds apart"
        moved = "no change" if not self.difference else f"true change of {MINUS}{-self.difference:g}"
        when = f"at k = {self.look}" if self.look else "by k = 20"
        return f"sampled, {seeds}, {moved}, {when}"

    @property
    def aim(self) -> str:
        return (
            f"at most {100 * self.at_most:g} %" if self.at_most is not None else f"at least {100 * self.at_least:g} %"
        )

    def measure(self, n: int, *, seed: int = SEED) -> float:
        """The share of n simulated pairs in which it holds."""
        made = pairs(
            n,
            parted=self.parted,
            share_seeds=self.share_seeds,
            difference=self.difference,
            k=self.look or SETTINGS.looks[-1],
            seed=seed,
            metric=self.metric,
        )
        settings = replace(SETTINGS, metric=self.metric)
        verdicts = (judge(pair, settings) if self.look else follow(pair, settings) for pair in made)
        return sum(self.holds(found, self.difference) for found in verdicts) / n

    def is_kept(self, share: float) -> bool:
        return (self.at_most is None or share <= self.at_most) and (self.at_least is None or share >= self.at_least)

    @staticmethod
    def told(share: float) -> str:
        return f"{100 * share:.1f} %"


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrower:
    """How many times narrower shared seeds make the interval at the first look, no change being there."""

    parted: float
    at_least: float

    says = "the interval is narrower than with seeds apart"

    @property
    def situation(self) -> str:
        return f"sampled, shared seeds, {100 * self.parted:g} % of cases parted, no change, at k = 5"

    @property
    def aim(self) -> str:
        return f"at least {self.at_least:g} times"

    def measure(self, n: int, *, seed: int = SEED) -> float:
        """The ratio of the mean widths over n simulated pairs of each."""
        shared, apart = (
            [_width(judge(pair, SETTINGS)) for pair in pairs(n, parted=self.parted, share_seeds=share_seeds, seed=seed)]
            for share_seeds in (True, False)
        )
        return float(np.mean(apart) / np.mean(shared))

    def is_kept(self, ratio: float) -> bool:
        return ratio >= self.at_least

    @staticmethod
    def told(ratio: float) -> str:
        return f"{ratio:.1f} times"


def table(n: int) -> list[str]:
    """The measured table of docs/verdict.md, of n pairs for each row."""
    measured = [claim.told(claim.measure(n)) for claim in CLAIMS]
    return [
        f"| {n:,} pairs of sampled runs each, 800 cases, tolerance 1.0 | says | measured | promised |",
        "| --- | --- | --- | --- |",
        *(
            f"| {claim.situation} | {claim.says} | {told} | {claim.aim} |"
            for claim, told in zip(CLAIMS, measured, strict=True)
        ),
    ]


def _is(word: str) -> Callable[[GateVerdict, float], bool]:
    return lambda found, _: found.verdict == word


def _covers(found: GateVerdict, true: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= true <= found.high


def _claims(parted: float, *, share_seeds: bool, metric: MetricSpec = MEAN) -> tuple[DrawnClaim, ...]:
    known = {"parted": parted, "share_seeds": share_seeds, "metric": metric}
    return (
        DrawnClaim(**known, difference=-1.0, look=None, says="ship", holds=_is("ship"), at_most=0.05),
        DrawnClaim(**known, difference=0.0, look=None, says="no-ship", holds=_is("no_ship"), at_most=0.01),
        DrawnClaim(**known, difference=0.0, look=5, says="the 94 % interval covers it", holds=_covers, at_least=0.92),
    )


CLAIMS: tuple[DrawnClaim | Narrower, ...] = (
    *_claims(0.02, share_seeds=True),
    *_claims(0.1, share_seeds=True),
    *_claims(1.0, share_seeds=True),
    *_claims(1.0, share_seeds=False),
    *(
        claim
        for metric in (MetricSpec(PASS_AT, 2), MetricSpec(PASS_ALL, 2), MetricSpec(PASS_AT, 4), MetricSpec(PASS_ALL, 4))
        for parted, share_seeds in ((0.1, True), (1.0, False))
        for claim in _claims(parted, share_seeds=share_seeds, metric=metric)
    ),
    Narrower(parted=0.02, at_least=5.0),
    Narrower(parted=0.1, at_least=2.5),
)


def _parted(rng: np.random.Generator, share: float) -> NDArray[np.bool_]:
    found = np.zeros(N_CASES, np.bool_)
    found[rng.permutation(N_CASES)[: round(share * N_CASES)]] = True
    return found


def _true(chances: Scores, metric: MetricSpec) -> Scores:
    """What ever more draws of each case would come to."""
    if metric.is_mean:
        return chances
    return 1 - (1 - chances) ** metric.k if metric.kind == PASS_AT else chances**metric.k


def _changed(chances: Scores, has_parted: NDArray[np.bool_], lost: float, metric: MetricSpec) -> Scores:
    """The chances with `lost` cases' worth less, taken from those that parted in proportion to what they have."""
    changed = chances.copy()
    of_parted = chances[has_parted]
    low, high = 0.0, 1.0
    while high - low > 1e-9 and lost:
        middle = (low + high) / 2
        is_enough = (_true(of_parted, metric) - _true(of_parted * (1 - middle), metric)).sum() >= lost
        low, high = (low, middle) if is_enough else (middle, high)
    changed[has_parted] *= 1 - (low if lost else 0.0)
    return changed


def _drawn(rng: np.random.Generator, chances: Scores, k: int) -> Scores:
    found: Scores = (rng.random((len(chances), k)) < chances[:, None]).astype(np.float64)
    return found


def _width(found: GateVerdict) -> float:
    assert found.low is not None
    assert found.high is not None
    return found.high - found.low
