"""What the answers of a run come to on another stack: how many were scored and by which tokens, and how far it is."""

from evalboard.contract.forced import ForcedScoring
from evalboard.core.trace import ERROR_CODES
from evalboard.wording.numbers import counted, listed, nats, percent

BY_BYTES, RETOKENISED = "by_bytes", "retokenised"


def explain_forced(scoring: ForcedScoring) -> tuple[str, ...]:
    """Say how far the stack that scored is from the one that answered, then what limits that."""
    return (*_distance(scoring), *_limits(scoring))


def describe_distance(scoring: ForcedScoring) -> str:
    """Say how far the stack that scored is from the one that answered; "" where that is not known."""
    return " ".join(_distance(scoring))


def _distance(scoring: ForcedScoring) -> list[str]:
    figures = scoring.figures
    if figures is None:
        return []
    where = f"Over {counted(figures.n_positions, 'token')} of {counted(figures.n_responses, 'answer')}"
    if figures.is_identical:
        return [f"{where} no logprob differs by one bit."]
    sentences = []
    if figures.gap_median is not None and figures.gap_p99 is not None:
        median, high = nats(figures.gap_median.value), nats(figures.gap_p99.value)
        sentences.append(f"{where} the logprobs differ by {median} (median), at 1 in 100 tokens by more than {high}.")
    if figures.n_ranked:
        n, total = figures.n_not_top, figures.n_ranked
        what = (
            f"{n:,} of {counted(total, 'token')} ({percent(n / total)})" if n else f"None of {counted(total, 'token')}"
        )
        sentences.append(f"{what} {'is' if n < 2 else 'are'} not its first choice.")
    return sentences


def _limits(scoring: ForcedScoring) -> list[str]:
    sentences = []
    figures = scoring.figures
    n_scored = sum(scoring.tokens.values())
    if figures is None and n_scored:
        sentences.append(
            "Several buckets gave these answers: no number is taken over them together, and each answer has its own."
        )
    if figures is not None and figures.n_responses < n_scored:
        sentences.append(f"The figures are of the first {figures.n_responses:,} of {counted(n_scored, 'answer')}.")
    if n := scoring.tokens.get(BY_BYTES):
        sentences.append(
            f"{counted(n, 'answer')} {_is(n)} scored by the tokens that have the same bytes: the run’s own ids are not "
            "those of this tokenizer."
        )
    if n := scoring.tokens.get(RETOKENISED):
        sentences.append(
            f"{counted(n, 'answer')} {_is(n)} retokenised: the text is scored in tokens of this tokenizer, without the "
            "token that ended it, and no logprob of the run stands beside."
        )
    if n := scoring.n_rendered:
        sentences.append(
            f"{counted(n, 'prompt')} {_is(n)} rendered with the chat template of endpoint {scoring.endpoint}: the "
            "tokens that were really sent are not known."
        )
    if scoring.errors:
        why = [
            f"{n:,}: {ERROR_CODES[code][0].lower()}{ERROR_CODES[code][1:].rstrip('.')}"
            for code, n in scoring.errors.items()
        ]
        n = sum(scoring.errors.values())
        sentences.append(f"{counted(n, 'answer')} could not be scored ({listed(why)}).")
    return sentences


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
