"""What an on-policy check comes to: its state as a sentence, and each number with its interval."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalboard.wording.numbers import counted, nats, nats_rounded, percent, percent_rounded, rounded

if TYPE_CHECKING:
    from evalboard.contract import forced as contract
    from evalboard.core import forced as core

    Estimate = core.Estimate | contract.Estimate
    Figures = core.ForcedFigures | contract.ForcedFigures  # as they are computed, or as REST answers them

UNKNOWN = "not known"
DIGITS = 3


def describe_on_policy(state: str, figures: "Figures", max_kl: float) -> str:
    """Return the state in one sentence."""
    limit = nats_rounded(max_kl)
    if state == "bit_identical":
        n = counted(figures.n_compared, "logprob")
        return f"Bit-identical: training is on-policy. Of {n} none differs by one bit."
    if state == "on_policy":
        return f"On-policy within {limit} a token: the whole interval of the KL lies below."
    if state == "off_policy":
        return f"Off-policy: the KL is above {limit} a token with its whole interval."
    if not figures.n_compared:
        return "Nothing is known: no token has a logprob on both sides."
    return f"Too few tokens: they do not tell whether the KL is above {limit} a token. Add responses."


def describe_figures(figures: "Figures") -> Iterator[tuple[str, str]]:
    """Yield each number's name and its value in words; nothing but their count of bits that are equal."""
    yield "compared", f"{counted(figures.n_compared, 'token')} of {counted(figures.n_responses, 'response')}"
    n_unknown = figures.n_positions - figures.n_compared
    if n_unknown:
        yield "left out", f"{counted(n_unknown, 'token')} without a logprob on one side"
    if figures.is_identical:
        return
    yield "KL a token (k3)", _in_nats(figures.kl_k3)
    yield "KL a token (k1)", _in_nats(figures.kl_k1)
    yield "KL a response", _in_nats(figures.sequence_kl)
    low, high = 1 - figures.clip_range, 1 + figures.clip_range
    yield f"ratio outside {low:g} to {high:g}", _as_share(figures.beyond_clip)
    yield "effective sample size, of the tokens", _as_share(figures.weight_ess)
    yield "effective sample size, of the responses", _as_share(figures.sequence_ess)


def describe_worst(name: str, position: int, log_ratio: float) -> tuple[str, str]:
    """Return where a token lies and how far it is from its likelihood on the other side; name: of its response."""
    return f"{name}, position {position}", f"log r is {nats(log_ratio)}"


def note_on_sampling(temperature: float | None) -> str | None:
    """Return what to know of a run that did not sample at a temperature of 1, None where it did.

    temperature: None where it was 0, or is not known.
    """
    if temperature is None:
        return (
            "The run is not known to have sampled. Over answers that are no draws a KL is none; equal bits are equal."
        )
    if temperature != 1:
        return (
            f"The run sampled at a temperature of {temperature:g}, and the logprobs are those at 1, from which it did "
            "not draw: what stands here as a KL is none. Equal bits are equal."
        )
    return None


def _in_nats(estimate: "Estimate | None") -> str:
    if estimate is None:
        return UNKNOWN
    value = nats_rounded(estimate.value, DIGITS)
    if estimate.low is None or estimate.high is None:
        return f"{value}, too few responses for an interval"
    return f"{value} ({rounded(estimate.low, DIGITS)} to {rounded(estimate.high, DIGITS)})"


def _as_share(estimate: "Estimate | None") -> str:
    if estimate is None:
        return UNKNOWN
    if estimate.low is None or estimate.high is None:
        return percent(estimate.value)
    # Few tokens lie out there, or few do not: what is rounded to none of them would say too much.
    write = percent_rounded if 0 < estimate.value < 0.01 else percent
    return f"{write(estimate.value)} ({write(estimate.low)} to {write(estimate.high)})"
