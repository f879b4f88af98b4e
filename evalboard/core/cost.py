"""Estimate what runs will take, from the pace of earlier ones, and price tokens exactly."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Any

from evalboard.contract.run import RunCost

PRICES = ("input", "output", "cached", "reasoning")
FORM = "Such as input=2.50,output=10,cached=1.25,currency=USD, for a million tokens."
PRICE = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?", re.ASCII)
CURRENCY = re.compile(r"[A-Za-z]{1,10}", re.ASCII)
MILLION = 6  # as a power of ten
EXACT = 60  # digits, more than any sum of counts times a price has
ESTIMATE = Context(prec=6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The token counts of answered calls, summed.

    n_uncounted: calls without counts, whose tokens are not in it. n_cached: of the prompts' tokens. n_tokens: of the
    answers, n_reasoning thinking included.
    """

    n_calls: int = 0
    n_uncounted: int = 0
    n_prompt: int = 0
    n_cached: int = 0
    n_tokens: int = 0
    n_reasoning: int = 0


def parse_price(text: str) -> dict[str, str]:
    """Return the fields of a price that a person typed; the currency is USD unless it says another."""
    parts = [part.partition("=") for part in text.split(",") if part.strip()]
    return {"currency": "USD"} | {name.strip(): value.strip() for name, _, value in parts}


def price_problem(price: Mapping[str, Any]) -> str | None:
    """Return the problem of a price: decimals `input`, `output`, maybe `cached`, `reasoning`; a currency."""
    given = {name: value for name, value in price.items() if value is not None}
    if not {"input", "output", "currency"} <= given.keys() <= {*PRICES, "currency"}:
        return f"Give input, output and currency, and where they differ cached and reasoning. {FORM}"
    wrong = [name for name in PRICES if name in given and not PRICE.fullmatch(str(given[name]))]
    if wrong:
        return f"{' and '.join(wrong)} must be a decimal, with at most 6 digits before and after the point. {FORM}"
    return None if CURRENCY.fullmatch(str(given["currency"])) else f"The currency is 1 to 10 letters. {FORM}"


def clean_price(price: Mapping[str, Any] | None) -> dict[str, str]:
    """Return a price as it is stored: its fields as text; {} where it is not known."""
    return {name: str(value) for name, value in (price or {}).items() if value is not None}


def price_usage(price: Mapping[str, str], usage: Usage) -> Decimal | None:
    """Return what tokens cost, exactly; None where the counts of a call are missing."""
    if usage.n_uncounted:
        return None
    with localcontext(Context(prec=EXACT)):
        prices = {name: Decimal(price[name]) for name in PRICES if price.get(name) is not None}
        cached, reasoning = prices.get("cached", prices["input"]), prices.get("reasoning", prices["output"])
        sums = (usage.n_prompt - usage.n_cached) * prices["input"] + usage.n_cached * cached
        sums += (usage.n_tokens - usage.n_reasoning) * prices["output"] + usage.n_reasoning * reasoning
        return sums.scaleb(-MILLION)


def scale_amount(amount: Decimal, n: int, of: int) -> str:
    """Return an amount for n calls, by that for `of` calls, as a decimal of at most 6 digits."""
    return write_amount(ESTIMATE.divide(ESTIMATE.multiply(amount, Decimal(n)), Decimal(of)))


def write_amount(amount: Decimal) -> str:
    """Write an exact amount in digits, without an exponent or idle zeros."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True, slots=True)
class Pace:
    """Measured seconds and tokens of one pass over the suite, and seconds of an engine start.

    None if not measured yet.
    """

    pass_seconds: float | None = None
    pass_tokens: float | None = None
    start_seconds: float | None = None


def estimate_cost(n_runs: int, *, pace: Pace, is_restarted: bool, has_engine: bool) -> RunCost:
    """Estimate the cost of n passes. External servers have no engine starts; minutes are those of calls."""
    n_starts = 0 if not (has_engine and n_runs) else n_runs if is_restarted else min(n_runs, 2)
    seconds: float | None = None
    if pace.pass_seconds is not None and (pace.start_seconds is not None or not n_starts):
        seconds = n_runs * pace.pass_seconds + n_starts * (pace.start_seconds or 0.0)
    tokens = None if pace.pass_tokens is None else n_runs * pace.pass_tokens
    minutes = None if seconds is None else seconds / 60
    return RunCost(n_runs=n_runs, n_starts=n_starts, tokens=tokens, minutes=minutes)
