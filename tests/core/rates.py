"""How many errors a simulation may show, so that a rule which errs more often than promised hardly ever passes.

Full-size simulations take one promise at a time and are nightly. The gate takes a few draws of each situation, and adds
up the errors of all situations that are promised the same. Where these are too few for rare errors, none is allowed.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

PASSES_BROKEN = 0.1  # the chance that a rule which errs so many times as often passes
# In a few draws only a rule that errs this many times as often is seen: more times where errors are rare.
TIMES_AS_OFTEN, TIMES_AS_OFTEN_RARE, RARE = 3.0, 10.0, 0.02


def count_errors_allowed(n: int, promised: float, *, times_as_often: float) -> int:
    """Return the most errors in n draws that a rule which errs so many times as often shows once in ten times."""
    if promised == 0.0:
        return 0
    share = min(times_as_often * promised, (1 + promised) / 2)
    chances = (math.comb(n, n_errors) * share**n_errors * (1 - share) ** (n - n_errors) for n_errors in range(n + 1))
    return sum(total <= PASSES_BROKEN for total in itertools.accumulate(chances)) - 1


def promised_errors(claim: Any) -> float:
    """Return the share of draws in which a claim may err, by its `at_most` or `at_least`."""
    return 1 - claim.at_least if claim.at_least is not None else claim.at_most or 0.0


def count_errors(claim: Any, share: float, n: int) -> int:
    """Return in how many of n draws a claim erred; share: of the draws that say what it says."""
    return round(n * (1 - share if claim.at_least is not None else share))


def group_by_promise(claims: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return the claims that are promised the same rate, together."""
    groups = defaultdict(list)
    for claim in claims:
        groups[claim.aim].append(claim)
    return [tuple(group) for group in groups.values()]


def assert_kept_in_few(claims: Sequence[Any], n_each: int) -> None:
    """Simulate n_each draws of each claim, and compare their errors with the one rate that all of them promise.

    A claim that says how many draws its full size takes, in `n_in_tests`, gets no more.
    """
    promised = promised_errors(claims[0])
    sizes = {claim: min(n_each, getattr(claim, "n_in_tests", n_each)) for claim in claims}
    errors = {claim: count_errors(claim, claim.measure(n), n) for claim, n in sizes.items()}
    times_as_often = TIMES_AS_OFTEN_RARE if promised <= RARE else TIMES_AS_OFTEN
    limit = max(count_errors_allowed(sum(sizes.values()), promised, times_as_often=times_as_often), 0)
    listed = ", ".join(f"{n} of {sizes[claim]} “{claim.situation}”" for claim, n in errors.items() if n)
    assert sum(errors.values()) <= limit, f"{claims[0].aim} is promised, and {limit} errors allowed: {listed}"
