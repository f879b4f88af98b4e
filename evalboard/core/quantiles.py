"""The few distributions that intervals and tests rest on: quantiles and tails, one number at a time."""

import math

from scipy import special


def z(level: float) -> float:
    """The value that a standard normal stays below with probability `level`: z(0.97) is 1.88."""
    return float(special.ndtri(level))


def t(level: float, df: float) -> float:
    """The value that Student's t with `df` degrees of freedom stays below with probability `level`."""
    return float(special.stdtrit(df, level))


def normal_below(value: float) -> float:
    """The probability that a standard normal is below `value`."""
    return float(special.ndtr(value))


def t_below(value: float, df: float) -> float:
    """The probability that Student's t with `df` degrees of freedom is below `value`."""
    return float(special.stdtr(df, value))


def chi2_above(value: float, df: float) -> float:
    """The probability that chi-squared with `df` degrees of freedom is above `value`."""
    return float(special.chdtrc(df, value))


def binomial_above(n: int, at_least: int, chance: float) -> float:
    """The probability of `at_least` or more successes in n trials."""
    return 1.0 if at_least <= 0 else float(special.bdtrc(at_least - 1, n, chance))


def hypergeometric_above(n: int, n_marked: int, n_drawn: int, at_least: int) -> float:
    """The chance that n_drawn of n, drawn at once, hold `at_least` or more of the n_marked, Fisher's exact test."""
    most = min(n_marked, n_drawn)
    ways = sum(math.comb(n_marked, k) * math.comb(n - n_marked, n_drawn - k) for k in range(at_least, most + 1))
    return ways / math.comb(n, n_drawn)


def beta(level: float, a: float, b: float) -> float:
    """The value that Beta(a, b) stays below with probability `level`; a and b above 0."""
    return float(special.betaincinv(a, b, level))
