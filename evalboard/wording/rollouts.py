"""Sentences about a training step: its limits, its worst token and its further checks."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalboard.wording.numbers import counted, nats, nats_rounded, percent, percent_rounded, rounded

if TYPE_CHECKING:
    from evalboard.contract.rollouts import RolloutFigures, RoutingCheck, TopKCheck

DIGITS = 3
HIGH_SHARE = 0.01  # below it, a share is written with two digits


def explain_limits(figures: "RolloutFigures", *, max_kl: float | None, max_clip_share: float | None) -> str:
    """Say which limits a step exceeds; "" where it exceeds none."""
    parts = []
    if max_kl is not None and figures.kl_k3 is not None and figures.kl_k3 > max_kl:
        kl, limit = nats_rounded(figures.kl_k3, DIGITS), nats_rounded(max_kl, DIGITS)
        parts.append(f"The KL (k3) is {kl} per token, above the limit of {limit}.")
    if max_clip_share is not None and figures.clip_share is not None and figures.clip_share > max_clip_share:
        share, limit = write_share(figures.clip_share), write_share(max_clip_share)
        parts.append(f"{share} of the tokens are outside the clip range, above the limit of {limit}.")
    return " ".join(parts)


def describe_step(figures: "RolloutFigures") -> str:
    """Describe a step's distance in a sentence."""
    if figures.is_identical:
        return f"All {counted(figures.n_compared, 'logprob')} are equal to the bit."
    if figures.kl_k3 is None or figures.clip_share is None:
        return "No token has a logprob on both sides."
    return (
        f"The KL (k3) is {write_kl(figures.kl_k3, figures.kl_k3_error)} per token; "
        f"{write_share(figures.clip_share)} of {counted(figures.n_compared, 'token')} are outside the clip range."
    )


def describe_worst_token(figures: "RolloutFigures") -> str:
    """Name the most different token with both logprobs; "" where none is known."""
    worst = figures.worst
    if worst is None or not worst.log_ratio:
        return ""
    return (
        f"The worst is token {worst.token_id} at position {worst.position} of response {worst.response}: "
        f"{nats(worst.sampler)} on the sampler, {nats(worst.trainer)} on the trainer."
    )


def list_checks(figures: "RolloutFigures") -> Iterator[str]:
    """Yield what top-k logprobs and routed experts show, in sentences."""
    if figures.distribution is not None:
        yield _describe_top_k(figures.distribution)
    if figures.routing is not None:
        yield from _describe_routing(figures.routing)


def write_kl(value: float | None, error: float | None = None) -> str:
    """Write a KL in nats, with its standard error where it is known."""
    if value is None:
        return "–"
    return nats_rounded(value, DIGITS) + ("" if error is None else f" ± {rounded(error, 2)}")


def write_share(value: float | None) -> str:
    if value is None:
        return "–"
    return percent_rounded(value) if 0 < value < HIGH_SHARE else percent(value)


def _describe_top_k(check: "TopKCheck") -> str:
    inside = (
        f"{percent(check.observed)} of {counted(check.n_positions, 'token')} are among the trainer's {check.top_k} "
        f"likeliest, which gives them {percent(check.expected)}."
    )
    if check.tv_high is not None:
        return f"{inside} The mean total variation is {rounded(check.tv_low)} to {rounded(check.tv_high)}."
    if not check.tv_low:
        return f"{inside} That is no sign of another distribution."
    return f"{inside} So the mean total variation is at least {rounded(check.tv_low)}, 95 % sure."


def _describe_routing(check: "RoutingCheck") -> Iterator[str]:
    yield (
        f"Expert {check.busiest_expert} of layer {check.busiest_layer} is chosen for {percent(check.busiest_share)} of "
        f"{counted(check.n_positions, 'token')}, the most of all experts."
    )
    if check.differs is None:
        return
    both = f"The KL is {write_kl(check.kl_same)} where all layers agree, {write_kl(check.kl_other)} elsewhere."
    yield f"The trainer chose other experts in {write_share(check.differs)} of the layers' choices. {both}"
