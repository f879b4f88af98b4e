"""Sentences of a verification: its state, each figure in words, and its limitations."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evalboard.wording.numbers import counted, nats_rounded, p_value, rounded

if TYPE_CHECKING:
    from evalboard.contract.verification import Band, JudgedAnswers

UNKNOWN = "not known"
DIGITS = 2


def describe_verification(verification: "JudgedAnswers") -> str:
    """Return the state in a sentence or two, the word first."""
    own, change = verification.endpoint, _name_change(verification)
    if own is None:
        return f"Too few tokens: no {verification.statistic} is known of any. {_count_more(verification)}"
    what = f"{counted(own.n_tokens, 'token')} of {counted(own.n_responses, 'answer')}"
    if verification.state == "same_stack":
        return f"Same stack: {what} lie no farther from the reference than its own answers do."
    if verification.state == "same_model_other_numerics":
        return (
            f"Same model, other numerics: {what} lie farther from the reference than its own answers do, as the same "
            f"weights with other numerics do, and not as far as {change}."
        )
    if verification.state == "other_model":
        return (
            f"Another model: {what} lie farther from the reference than other numerics explain "
            f"({p_value(verification.p_above_numerics or 0.0)}), and nearer to {change}."
        )
    if verification.n_more_tokens is None:
        return f"No number of tokens would tell: {change} lies no farther from the reference than other numerics do."
    return (
        f"Too few tokens: {what} do not tell the same weights with other numerics from {change}. "
        f"{_count_more(verification)}"
    )


def describe_numbers(verification: "JudgedAnswers") -> Iterator[tuple[str, str]]:
    """Yield the name and the words of each band and each p-value."""
    yield "statistic", f"mean square of the {verification.statistic}, at most {nats_rounded(verification.limit)} each"
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
            "The run of the control is not of the reference’s own bucket: what it shows is not the noise of the "
            "reference alone."
        )
    if code == "rendered":
        return (
            f"{counted(n, 'prompt')} of the endpoint {'is' if n == 1 else 'are'} rendered with the reference’s chat "
            "template: where the endpoint’s is another one, its tokens look farther off than its weights make them."
        )
    return f"Only the first {counted(n, 'answer')} of a scoring count: to read all of them would take too long."


def _name_change(verification: "JudgedAnswers") -> str:
    return "a change twice as large" if verification.planted is None else "the planted change"


def _count_more(verification: "JudgedAnswers") -> str:
    n = verification.n_more_tokens
    if n is None:
        return "No number of tokens would tell."
    short = " Control, numerics and what was planted need more answers as well." if verification.are_bands_short else ""
    return f"About {counted(n, 'more token')} would tell, with a chance of 80 %.{short}"


def _describe_band(band: "Band | None") -> str:
    if band is None:
        return UNKNOWN
    mean = band.mean
    value = f"{rounded(mean.value, DIGITS)} nats²"
    if mean.low is not None and mean.high is not None:
        value = f"{value} ({rounded(mean.low, DIGITS)} to {rounded(mean.high, DIGITS)})"
    return f"{value}, {counted(band.n_tokens, 'token')} of {counted(band.n_responses, 'answer')}"


def _describe_chance(chance: float | None) -> str:
    return UNKNOWN if chance is None else p_value(chance)
