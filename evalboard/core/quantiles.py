"""The few distributions that intervals and tests rest on: quantiles and tails, one number at a time."""

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


def beta(level: float, a: float, b: float) -> float:
    """The value that Beta(a, b) stays below with probability `level`; a and b above 0."""
    return float(special.betaincinv(a, b, level))
