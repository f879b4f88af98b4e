"""What is said of further repeats, held against what comes of them: simulated comparisons, followed to the last look.

True changes are spread evenly around the tolerance, from no change or half of it on, since nobody knows them.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from bench.simulated import (
    BATCHED,
    N_CASES,
    PAIRED,
    PINNED,
    REDRAWN,
    SEED,
    SETTLED,
    STRICT,
    Pair,
    Regime,
    judge,
    pairs,
)
from evalboard.core.release import settle
from evalboard.core.stats import DifferenceEstimate, estimate_difference, measure_noise, normal_quantile
from evalboard.core.suite import PolicySettings

LAST = PAIRED.looks[-1]
BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.01)  # of the chance that is said


@dataclass(frozen=True, slots=True)
class Setting:
    """Comparisons of one kind. n_broken: more cases broken than fixed in truth, each as often as the others."""

    regime: Regime
    n_broken: range
    n_cases: int = N_CASES
    rule: str = "paired"

    @property
    def name(self) -> str:
        return f"{self.regime.name}, {self.n_cases} cases, {self.rule}"


SETTINGS = (
    Setting(PINNED, range(4, 13)),
    Setting(BATCHED, range(17)),
    Setting(BATCHED, range(17), rule="strict"),
    Setting(PINNED, range(3), n_cases=60),
    Setting(REDRAWN, range(3), n_cases=60),
)


@dataclass(frozen=True, slots=True)
class Said:
    """What is said at a look that leaves a comparison open, and what the look that it names came to.

    chance: that this look settles it. is_hopeless: none is named, and the last one is meant. is_hopeless_by_root: a
    rule would have named none that takes the whole interval to narrow with the square root of repeats.
    """

    chance: float
    is_hopeless: bool
    is_hopeless_by_root: bool
    is_settled: bool
    is_settled_by_the_last: bool


def follow(setting: Setting, n_pairs: int, *, seed: int = SEED) -> Iterator[Said]:
    """What is said of n_pairs comparisons for each true change, at each look but the last until one settles them."""
    policy = STRICT if setting.rule == "strict" else PAIRED
    for n_broken in setting.n_broken:
        made = pairs(
            n_pairs,
            setting.regime,
            difference=-100 * n_broken / setting.n_cases,
            k=LAST,
            n_cases=setting.n_cases,
            seed=seed + n_broken,
        )
        for pair in made:
            for look in policy.looks[:-1]:
                if judge(pair.at(look), policy).reasons[0].code not in ("not_settled", "suite_too_small"):
                    break
                yield _said(pair, look, policy)


def _said(pair: Pair, look: int, policy: PolicySettings) -> Said:
    now = pair.at(look)
    found = estimate_difference(now.baseline, now.candidate)
    measured = measure_noise(now.baseline, now.candidate)
    settling = settle.find_settling(found.difference, measured, look, policy)
    last = judge(pair, policy)
    is_last = settling.look in (None, LAST)
    return Said(
        chance=settling.chance,
        is_hopeless=settling.look is None,
        is_hopeless_by_root=_is_hopeless_by_root(found, look, policy),
        is_settled=(last if is_last else judge(pair.at(settling.look or LAST), policy)).verdict in SETTLED,
        is_settled_by_the_last=last.verdict in SETTLED,
    )


def _is_hopeless_by_root(found: DifferenceEstimate, look: int, policy: PolicySettings) -> bool:
    """Whether 20 repeats give no 80 % chance where the whole SE falls as 1/√k and a later look spends 0.01."""
    off = abs(found.difference + policy.tolerance_points)
    reach = (normal_quantile(0.99) + normal_quantile(0.8)) * found.se * math.sqrt(look)
    return off < 1e-12 or (reach / off) ** 2 > LAST


def table(n_pairs: int) -> list[str]:
    """The measured table: how often each chance came true, and what became of those told that none is left."""
    found = [list(follow(setting, n_pairs)) for setting in SETTINGS]
    names = " | ".join(setting.name for setting in SETTINGS)
    lines = [f"| said of further repeats | {names} |", f"| --- {'| --- ' * len(SETTINGS)}|"]
    for low, high in itertools.pairwise(BINS):
        cells = [_share([each.is_settled for each in said if low <= each.chance < high]) for said in found]
        lines.append(_row(f"a chance of {100 * low:.0f} to {100 * min(high, 1.0):.0f} %: settled", cells))
    hopeless = [_share([each.is_settled for each in said if each.is_hopeless]) for said in found]
    by_root = [_share([each.is_settled_by_the_last for each in said if each.is_hopeless_by_root]) for said in found]
    lines.append(_row("“hardly”: settled all the same", hopeless))
    lines.append(_row("a rule by √k alone says never: settled all the same", by_root))
    return lines


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _share(came_true: list[bool]) -> str:
    return f"{100 * sum(came_true) / len(came_true):.0f} % of {len(came_true):,}" if came_true else "none"
