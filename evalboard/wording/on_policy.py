"""What an on-policy check comes to: its state as a sentence, and each number with its interval."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalboard.wording.numbers import counted, listed, nats, nats_rounded, percent, percent_rounded, rounded

if TYPE_CHECKING:
    from evalboard.contract.forced import ForcedFigures
    from evalboard.contract.parts import Estimate

UNKNOWN = "not known"
DIGITS = 3
MUCH = 0.5  # of the KL; where one token makes more, no interval of it can be trusted
# By state: whether a person must act; other states are unknown.
KINDS = {"off_policy": "warning", "bit_identical": "fine", "on_policy": "fine"}
MAX_EXPONENT = 700.0  # e to a larger one is no float64


def describe_on_policy(state: str, figures: "ForcedFigures", max_kl: float) -> str:
    """Describe the state in a sentence or two, without why nothing is compared with the limit."""
    limit = nats_rounded(max_kl)
    if state == "bit_identical":
        n = counted(figures.n_compared, "logprob")
        return f"Bit-identical: training is on-policy. All {n} are equal to the bit."
    if state == "on_policy":
        return f"On-policy: the KL is below {limit} per token with its whole interval."
    if state == "off_policy":
        return f"Off-policy: the KL is above {limit} per token with its whole interval."
    if state == "no_kl":
        return "These tokens give no KL, so nothing is compared with the limit."
    if not figures.n_compared:
        return "Unknown: no token has a logprob on both sides."
    unknown = f"Too few tokens to say whether the KL is above {limit} per token."
    share = _share_of_worst(figures)
    if share > MUCH:
        return f"{unknown} One token makes {percent(share)} of the KL: look at it first, it is the worst."
    return f"{unknown} Add responses."


def _share_of_worst(figures: "ForcedFigures") -> float:
    """Return the share of the KL (k3) that its worst token makes, 0 where either is not known."""
    if figures.worst is None or figures.kl_k3 is None or not figures.kl_k3.value:
        return 0.0
    log_ratio = min(figures.worst.log_ratio, MAX_EXPONENT)
    return min((math.expm1(log_ratio) - log_ratio) / (figures.n_compared * figures.kl_k3.value), 1.0)


def describe_figures(figures: "ForcedFigures", *, are_draws: bool = True) -> Iterator[tuple[str, str]]:
    """Yield each number's name and its value in words; nothing but their count of bits that are equal.

    are_draws: of tokens that were not drawn from the distribution that their logprobs are of, no KL and no ratio.
    """
    yield "compared", f"{counted(figures.n_compared, 'token')} of {counted(figures.n_responses, 'response')}"
    n_unknown = figures.n_positions - figures.n_compared
    if n_unknown:
        yield "left out", f"{counted(n_unknown, 'token')} without a logprob on one side"
    if figures.is_identical:
        return
    if not are_draws:
        yield "gap, median", _in_nats(figures.gap_median)
        yield "gap, 99th percentile", _in_nats(figures.gap_p99)
        return
    yield "KL per token (k3)", _in_nats(figures.kl_k3)
    yield "KL per token (k1)", _in_nats(figures.kl_k1)
    yield "KL per response", _in_nats(figures.sequence_kl)
    low, high = 1 - figures.clip_range, 1 + figures.clip_range
    yield f"ratio outside {low:g} to {high:g}", _as_share(figures.beyond_clip)
    yield "effective sample size, of the tokens", _as_share(figures.weight_ess)
    yield "effective sample size, of the responses", _as_share(figures.sequence_ess)


def explain_no_kl(reshaped_by: Sequence[str] | None, *, is_sampled: bool) -> str:
    """Say why the logprobs of a run's tokens give no KL, and what to do; "" where they do.

    reshaped_by: as contract.forced.ForcedScoring has it; None where a server does not say.
    """
    if not is_sampled:
        return (
            "A KL needs sampled tokens, and it is unknown whether this run sampled. Sample at temperature 1 with "
            "nothing cut off."
        )
    if reshaped_by is None:
        return "The server does not report whether it reshaped the distribution that was sampled. Update the server."
    if not reshaped_by:
        return ""
    return (
        f"The run’s {listed(reshaped_by)} changed the distribution that was sampled, so its logprobs give no KL. "
        "Sample at temperature 1 with nothing cut off."
    )


def describe_worst(name: str, position: int, log_ratio: float) -> tuple[str, str]:
    """Return a token's response and position, and its log r. name: of the response."""
    return f"{name}, position {position}", f"log r is {nats(log_ratio)}"


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
