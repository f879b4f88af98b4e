"""The distributions that intervals and tests use: quantiles and tails, one number at a time."""

import math

from evalboard.core import special


def normal_quantile(level: float) -> float:
    """Return the value that a standard normal stays below with probability `level`: z(0.97) is 1.88."""
    return float(special.ndtri(level))


def student_quantile(level: float, df: float) -> float:
    """Return the value that Student's t with `df` degrees of freedom stays below with probability `level`."""
    return float(special.stdtrit(df, level))


def normal_cdf(value: float) -> float:
    """Return the probability that a standard normal is below `value`."""
    return float(special.ndtr(value))


def student_cdf(value: float, df: float) -> float:
    """Return the probability that Student's t with `df` degrees of freedom is below `value`."""
    return float(special.stdtr(df, value))


def chi2_tail(value: float, df: float) -> float:
    """Return the probability that chi-squared with `df` degrees of freedom is above `value`."""
    return float(special.chdtrc(df, value))


def binomial_tail(n: int, at_least: int, chance: float) -> float:
    """Return the probability of `at_least` or more successes in n trials."""
    return 1.0 if at_least <= 0 else float(special.bdtrc(at_least - 1, n, chance))


def hypergeometric_tail(n: int, n_marked: int, n_drawn: int, at_least: int) -> float:
    """Return the chance that n_drawn of n include at_least of the n_marked: Fisher's exact test."""
    most = min(n_marked, n_drawn)
    ways = sum(math.comb(n_marked, k) * math.comb(n - n_marked, n_drawn - k) for k in range(at_least, most + 1))
    return ways / math.comb(n, n_drawn)


def beta_quantile(level: float, a: float, b: float) -> float:
    """Return the value that Beta(a, b) stays below with probability `level`; a and b above 0."""
    return float(special.betaincinv(a, b, level))
