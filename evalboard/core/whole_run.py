"""What all pairs of two runs say together: one response whose logits moved too far is an anecdote."""

import math
from dataclasses import dataclass

NULL_SHARE = 0.01  # at most so many pairs look shifted when nothing but noise moved them
SIGNIFICANT = 0.001


@dataclass(frozen=True, slots=True)
class WholeRun:
    """n_pairs: pairs whose R is known, those with equal traces included; n_larger: those of them with R above t(L).

    p_value: the chance of so many if only noise were at work. share: of responses whose backend or weights differ,
    as far as they show; None where noise explains what was seen.
    """

    n_pairs: int
    n_larger: int
    p_value: float
    share: float | None

    @property
    def sentence(self) -> str:
        counted = f"{self.n_larger:,} of {self.n_pairs:,} pairs moved further than noise explains"
        if self.share is None:
            return f"No sign that backend or weights differ for some responses: {counted}."
        return f"The backend or weights differ for about {_percent(self.share)} of responses: {counted} (p < 0.001)."


def read_whole_run(n_pairs: int, n_larger: int) -> WholeRun:
    """Test the share of pairs with a larger shift against what noise gives, exactly."""
    if not 0 <= n_larger <= n_pairs:
        raise ValueError(f"{n_larger} of {n_pairs} pairs cannot be")
    p_value = binomial_tail(n_pairs, n_larger, NULL_SHARE)
    return WholeRun(n_pairs, n_larger, p_value, n_larger / n_pairs if p_value < SIGNIFICANT else None)


def binomial_tail(n: int, at_least: int, chance: float) -> float:
    """The exact probability of `at_least` or more successes in n trials."""
    if at_least <= 0:
        return 1.0
    # From the first term on, each follows from the one before; logarithms keep the first from underflowing.
    log_term = (
        math.lgamma(n + 1)
        - math.lgamma(at_least + 1)
        - math.lgamma(n - at_least + 1)
        + at_least * math.log(chance)
        + (n - at_least) * math.log1p(-chance)
    )
    terms, relative, odds = [1.0], 1.0, chance / (1 - chance)
    for successes in range(at_least, n):
        relative *= (n - successes) / (successes + 1) * odds
        terms.append(relative)
        if relative < 1e-18 * terms[0] and successes > n * chance:
            break
    total = math.fsum(terms)
    return min(1.0, math.exp(min(log_term + math.log(total), 0.0)))


def _percent(share: float) -> str:
    points = 100 * share
    return f"{points:.0f} %" if points >= 2 else f"{points:.1f} %"
