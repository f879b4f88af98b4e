"""Verdicts with further repeats of the noisiest cases alone: their error rates, and what such repeats are worth.

Cases are as in simulated. What foretells the noisy ones is right of a share of them: so much of the noise the chosen
fifth holds on either side, and the rest lies among the others.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.simulated import (
    BATCHED,
    MINUS,
    N_CASES,
    PAIRED,
    SEED,
    SETTLED,
    Regime,
    asked,
    change_cases,
    draw_chances,
    draw_repeats,
)
from evalboard.core.release import GateQuestion, TargetedScores, judge_gate
from evalboard.core.release.gate_verdict import GateVerdict
from evalboard.core.stats import NOISIEST, normal_quantile
from evalboard.core.suite import TARGETED_REPEATS

Scores = NDArray[np.float64]
FORETOLD = (0.4, 0.6, 0.8)  # of the noisy cases
LAST = PAIRED.looks[-1]


@dataclass(frozen=True, eq=False)
class TargetedPair:
    """Two sides' repeats of all cases, and of the chosen ones alone: float64[n_cases, k] each."""

    whole: tuple[Scores, Scores]
    targeted: tuple[Scores, Scores]
    is_chosen: NDArray[np.bool_]

    def judge(self, k: int, *, n_before: int | None = None) -> GateVerdict:
        """The verdict on k repeats of all cases; n_before: of these, how many came before the targeted ones, if any."""
        n_cases = len(self.is_chosen)
        ours, theirs = (side[:, :k] for side in self.whole)
        known = None
        if n_before is not None:
            known = TargetedScores(
                is_chosen=self.is_chosen, baseline=self.targeted[0], candidate=self.targeted[1], n_before=n_before
            )
        question = GateQuestion(
            case_ids=[f"case-{index}" for index in range(n_cases)],
            groups=[""] * n_cases,
            baseline=ours,
            candidate=theirs,
            setup_baseline=asked("a"),
            setup_candidate=asked("b"),
            noisiest=self.is_chosen,
            targeted=known,
        )
        return judge_gate(question, PAIRED)

    def follow(self, first: int = 5) -> GateVerdict:
        """The verdict of the first look that settles it: the whole looks up to `first`, its targeted one, the last."""
        looks = [(look, None) for look in PAIRED.looks if look <= first]
        later = [(look, first) for look in PAIRED.later_looks(first, is_targeted=True)]
        for k, n_before in (*looks, (first, first), *later):
            found = self.judge(k, n_before=n_before)
            if found.verdict in SETTLED:
                break
        return found


def targeted_pairs(
    n: int, regime: Regime, *, difference: float, foretold: float, first: int = 5, seed: int = SEED
) -> Iterator[TargetedPair]:
    """n pairs with repeats up to the last look, and the targeted ones of `first`."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        chances = draw_chances(rng, regime, N_CASES)
        changed = change_cases(rng, chances, round(-difference * N_CASES / 100))
        chosen = _choose(rng, chances, foretold)
        whole = [draw_repeats(rng, each, regime, LAST) for each in (chances, changed)]
        more = [draw_repeats(rng, each, regime, TARGETED_REPEATS[first]) for each in (chances, changed)]
        more = [np.where(chosen[:, None], scores, np.nan) for scores in more]
        yield TargetedPair((whole[0], whole[1]), (more[0], more[1]), chosen)


def _choose(rng: np.random.Generator, chances: Scores, foretold: float) -> NDArray[np.bool_]:
    """A fifth of the cases, with that share of the noisy ones among them, whichever these are."""
    is_noisy = (chances > 0) & (chances < 1)
    noisy, others = (rng.permutation(np.flatnonzero(each)) for each in (is_noisy, ~is_noisy))
    n_chosen = len(chances) // NOISIEST
    caught = noisy[: min(round(foretold * len(noisy)), n_chosen)]
    chosen = np.zeros(len(chances), np.bool_)
    chosen[np.concatenate([caught, others[: n_chosen - len(caught)]])] = True
    return chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetedClaim:
    """What docs/verdict.md promises of verdicts with targeted repeats, as simulated.Claim does of others.

    first: the whole look after which they come. is_followed: to the last look; else the targeted look is taken.
    """

    difference: float
    foretold: float
    says: str
    holds: Callable[[GateVerdict, float], bool]
    first: int = 5
    is_followed: bool = False
    at_most: float | None = None
    at_least: float | None = None

    @property
    def situation(self) -> str:
        moved = "no change" if not self.difference else f"true change of {MINUS}{-self.difference:g}"
        when = "by k = 20" if self.is_followed else "at the targeted look"
        share = f"{100 * self.foretold:.0f} % of the noisy cases foretold"
        return f"batched, k = {self.first}, then {TARGETED_REPEATS[self.first]} of a fifth, {share}, {moved}, {when}"

    @property
    def aim(self) -> str:
        if self.at_most is not None:
            return f"at most {100 * self.at_most:g} %"
        return "" if self.at_least is None else f"at least {100 * self.at_least:g} %"

    def measure(self, n: int, *, seed: int = SEED) -> float:
        """The share of n simulated pairs in which it holds."""
        made = targeted_pairs(
            n, BATCHED, difference=self.difference, foretold=self.foretold, first=self.first, seed=seed
        )
        verdicts = (
            pair.follow(self.first) if self.is_followed else pair.judge(self.first, n_before=self.first)
            for pair in made
        )
        return sum(self.holds(found, self.difference) for found in verdicts) / n

    def is_kept(self, share: float) -> bool:
        return (self.at_most is None or share <= self.at_most) and (self.at_least is None or share >= self.at_least)


def _ships(found: GateVerdict, _: float) -> bool:
    return found.verdict == "ship"


def _does_not_ship(found: GateVerdict, _: float) -> bool:
    return found.verdict == "no_ship"


def _covers(found: GateVerdict, true: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= true <= found.high


CLAIMS = (
    *(
        TargetedClaim(
            difference=-1.0, foretold=share, first=first, is_followed=True, says="ship", holds=_ships, at_most=0.06
        )
        for first in (5, 10)
        for share in FORETOLD
    ),
    *(TargetedClaim(difference=-1.0, foretold=share, says="ship", holds=_ships, at_most=0.03) for share in FORETOLD),
    TargetedClaim(difference=0.0, foretold=0.6, is_followed=True, says="no-ship", holds=_does_not_ship, at_most=0.01),
    *(
        TargetedClaim(
            difference=0.0, foretold=share, says="the 97.5 % interval covers it", holds=_covers, at_least=0.96
        )
        for share in FORETOLD
    ),
)


def half_widths(n: int, foretold: float, *, seed: int = SEED) -> tuple[list[float], list[float], float]:
    """The mean standard errors of n pairs with 5 repeats, with 12 more of the chosen fifth, and with 10 of all cases;
    the same of those pairs in which the 12 count; and the share of these: where whole runs scatter by more than flips,
    by chance as well, they do not.
    """
    rows, is_counted = [], []
    for pair in targeted_pairs(n, BATCHED, difference=0.0, foretold=foretold, seed=seed):
        judged = (pair.judge(5), pair.judge(5, n_before=5), pair.judge(10))
        rows.append(
            [((each.high or 0.0) - (each.low or 0.0)) / 2 / normal_quantile(1 - (each.alpha or 0.5)) for each in judged]
        )
        is_counted.append(judged[1].targeted is not None)
    errors, counted = np.array(rows), np.array(is_counted)
    return errors.mean(axis=0).tolist(), errors[counted].mean(axis=0).tolist(), float(counted.mean())


def table(n: int) -> list[str]:
    """The measured table: error rates, and what the repeats narrow."""
    lines = [
        f"| {n:,} pairs each, 800 cases, tolerance 1.0 | says | measured | promised |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {claim.situation} | {claim.says} | {100 * claim.measure(n):.1f} % | {claim.aim} |" for claim in CLAIMS
    ]
    lines += [
        "",
        "| standard error, points | 5 repeats | 12 more of a fifth | 10 repeats | 12 count in | then: 5, 12 more, 10 |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for share in FORETOLD:
        every, counted, part = half_widths(n, share)
        errors, those = (sep.join(f"{each:.3f}" for each in found) for sep, found in ((" | ", every), (", ", counted)))
        name = f"batched, {100 * share:.0f} % of the noisy cases foretold"
        lines.append(f"| {name} | {errors} | {100 * part:.0f} % | {those} |")
    return lines
