"""Sentences of a verification: its state, each figure in words, and its limitations."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalboard.wording.numbers import counted, nats_rounded, p_value, rounded

if TYPE_CHECKING:
    from evalboard.contract.verification import Band, JudgedAnswers

UNKNOWN = "not known"
STATISTICS = {"deficit": "gap to the top choice"}
DIGITS = 2


def describe_verification(verification: "JudgedAnswers") -> str:
    """Return the state in a sentence or two, the word first."""
    own, change = verification.endpoint, _name_change(verification)
    if own is None:
        return f"Too few tokens: none has a known {_name_statistic(verification)}. {_count_more(verification)}"
    what = f"{counted(own.n_tokens, 'token')} of {counted(own.n_responses, 'answer')}"
    if verification.state == "same_stack":
        return f"Same stack: {what} differ from the reference no more than its own repeats do."
    if verification.state == "same_model_other_numerics":
        return (
            f"Same model, other numerics: {what} differ from the reference more than its own repeats do. Another "
            f"dtype of the same weights differs as much, and {change} differs more."
        )
    if verification.state == "other_model":
        return (
            f"Another model: {what} are farther from the reference than other numerics explain "
            f"({p_value(verification.p_above_numerics or 0.0)}), and nearer to {change}."
        )
    if verification.n_more_tokens is None:
        return f"More tokens would not decide: {change} is no farther from the reference than other numerics."
    return f"Too few tokens: {what} cannot distinguish other numerics from {change}. {_count_more(verification)}"


def describe_numbers(verification: "JudgedAnswers") -> Iterator[tuple[str, str]]:
    """Yield the name and the words of each band and each p-value."""
    yield (
        "statistic",
        f"mean square of the {_name_statistic(verification)}, each capped at {nats_rounded(verification.limit)}",
    )
    yield "endpoint", _describe_band(verification.endpoint)
    yield "control", _describe_band(verification.control)
    yield "numerics", _describe_band(verification.numerics)
    planted = verification.planted
    if planted is None:
        yield "twice numerics", f"{rounded(verification.change, DIGITS)} nats²"
    else:
        yield "planted", _describe_band(planted)
    yield "boundary", f"{rounded(verification.boundary, DIGITS)} nats²"
    yield "above control", _describe_chance(verification.p_above_control)
    yield "above numerics", _describe_chance(verification.p_above_numerics)
    yield f"below {'twice numerics' if planted is None else 'planted'}", _describe_chance(verification.p_below_change)


def warn_of_verification(code: str, n: int) -> str:
    """Say what takes from a verification's weight; n: how many answers, or prompts, it is about."""
    if code == "control_of_other_bucket":
        return (
            "The run of the control is not of the reference’s own bucket, so it shows more than the noise of the "
            "reference."
        )
    if code == "rendered":
        return (
            f"{counted(n, 'prompt')} of the endpoint {'is' if n == 1 else 'are'} rendered with the reference’s chat "
            "template. If the endpoint’s differs, its tokens look farther off than its weights make them."
        )
    return f"Only the first {counted(n, 'answer')} of a scoring count, to save time."


def _name_change(verification: "JudgedAnswers") -> str:
    return "a change twice as large" if verification.planted is None else "a slight change of the weights"


def _name_statistic(verification: "JudgedAnswers") -> str:
    return STATISTICS.get(verification.statistic, verification.statistic)


def _count_more(verification: "JudgedAnswers") -> str:
    n = verification.n_more_tokens
    if n is None:
        return "More tokens would not decide."
    short = " Control, numerics and planted need more answers too." if verification.are_bands_short else ""
    return f"About {counted(n, 'more token')} decide with a probability of 80 %.{short}"


def _describe_band(band: "Band | None") -> str:
    if band is None:
        return UNKNOWN
    mean = band.mean
    value = f"{rounded(mean.value, DIGITS)} nats²"
    if mean.low is not None and mean.high is not None:
        value = f"{value} (95 % interval {rounded(mean.low, DIGITS)} to {rounded(mean.high, DIGITS)})"
    return f"{value}, {counted(band.n_tokens, 'token')} of {counted(band.n_responses, 'answer')}"


def _describe_chance(chance: float | None) -> str:
    return UNKNOWN if chance is None else p_value(chance)
