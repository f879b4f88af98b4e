"""Sentences of a forced scoring: how many answers and tokens were scored, and how far they differ."""

from evalboard.contract.forced import ForcedFigures, ForcedScoring
from evalboard.core.forced import MAX_KL, OnPolicyState, judge_kl
from evalboard.core.trace import ERROR_CODES
from evalboard.wording.numbers import counted, listed, nats, percent
from evalboard.wording.on_policy import describe_on_policy, explain_no_kl

BY_BYTES, AS_GIVEN, RETOKENISED = "by_bytes", "as_given", "retokenised"


def explain_forced(scoring: ForcedScoring) -> tuple[str, ...]:
    """Say how far the scoring stack is from the one that answered, then the limitations.

    For a trainer's logprobs, whether training is on-policy comes first; for several buckets, their number.
    """
    return (*_on_policy(scoring), *_several(scoring), *_distances(scoring), *_limits(scoring))


def describe_distance(scoring: ForcedScoring) -> str:
    """Say how far the scoring stack is from the one that answered; "" if unknown."""
    return " ".join(_distances(scoring))


def describe_furthest(log_ratio: float) -> str:
    return f"The most different token is {nats(abs(log_ratio))} away."


def judge_trainer(scoring: ForcedScoring) -> OnPolicyState | None:
    """Judge a trainer's logprobs by the default limit; None if our own stack scored."""
    figures = scoring.figures
    if not scoring.is_reported or figures is None:
        return None
    return judge_kl(figures.kl_k3, is_identical=figures.is_identical, max_kl=MAX_KL, are_draws=scoring.are_draws)


def _on_policy(scoring: ForcedScoring) -> list[str]:
    state = judge_trainer(scoring)
    if state is None or scoring.figures is None:
        return []
    return [describe_on_policy(state, scoring.figures, MAX_KL)]


def _several(scoring: ForcedScoring) -> list[str]:
    if scoring.figures is not None or not scoring.tokens:
        return []
    each = "bucket" if scoring.by_bucket else "answer"
    return [f"Several buckets gave these answers, so each {each} has its own numbers."]


def _distances(scoring: ForcedScoring) -> list[str]:
    """Describe the distance of all answers, or of each bucket separately."""
    if scoring.figures is not None:
        return _distance(scoring.figures)
    return [
        f"Bucket {part.bucket} ({part.fingerprint.label}): {' '.join(_distance(part.figures))}"
        for part in scoring.by_bucket
    ]


def _distance(figures: ForcedFigures) -> list[str]:
    tokens = f"{counted(figures.n_positions, 'token')} of {counted(figures.n_responses, 'answer')}"
    where = f"Over {tokens}"
    if figures.n_compared < figures.n_positions:
        where = f"Over {figures.n_compared:,} of the {tokens}, those with a logprob on both sides,"
    if figures.is_identical:
        return [f"{where} all logprobs are equal to the bit."]
    sentences = []
    if figures.gap_median is not None and figures.gap_p99 is not None:
        median, high = nats(figures.gap_median.value), nats(figures.gap_p99.value)
        most = "" if figures.worst is None else f", at most by {nats(abs(figures.worst.log_ratio))}"
        sentences.append(
            f"{where} the logprobs differ by {median} (median), at 1 in 100 tokens by more than {high}{most}."
        )
    if figures.n_ranked:
        n, ranked = figures.n_not_top, counted(figures.n_ranked, "token")
        share = percent(n / figures.n_ranked)
        sentences.append(
            f"{n:,} of {ranked} ({share}) {_is(n)} not its first choice."
            if n
            else f"All {ranked} {_is(figures.n_ranked)} its first choice."
        )
    return sentences


def _limits(scoring: ForcedScoring) -> list[str]:
    sentences = []
    figures = scoring.figures
    n_scored = sum(scoring.tokens.values())
    if scoring.is_reported:
        sentences.append(
            "The trainer’s logprobs come from the log: no engine here scored anything, so nothing verifies them."
        )
    elif scoring.is_sampled and (why := explain_no_kl(scoring.reshaped_by, is_sampled=True)):
        sentences.append(why)
    if figures is not None and figures.n_responses < n_scored:
        sentences.append(f"The figures are of the first {figures.n_responses:,} of {counted(n_scored, 'answer')}.")
    if n := scoring.tokens.get(BY_BYTES):
        sentences.append(
            f"{counted(n, 'answer')} {_is(n)} scored by tokens with the same bytes, as the run’s ids are not those of "
            "this tokenizer."
        )
    if n := scoring.tokens.get(AS_GIVEN):
        sentences.append(
            f"{counted(n, 'answer')} {_is(n)} scored by the ids in the log, which does not say that they are those of "
            "this tokenizer."
        )
    if n := scoring.tokens.get(RETOKENISED):
        sentences.append(
            f"{counted(n, 'answer')} {_is(n)} retokenised: the text is scored in tokens of this tokenizer, without the "
            "token that ended it and without logprobs of the run."
        )
    if n := scoring.n_rendered:
        sentences.append(
            f"{counted(n, 'prompt')} {_is(n)} rendered with the chat template of endpoint {scoring.endpoint}: the "
            "tokens really sent are unknown."
        )
    if scoring.errors:
        reasons = [
            f"{n:,}: {ERROR_CODES[code][0].lower()}{ERROR_CODES[code][1:].rstrip('.')}"
            for code, n in scoring.errors.items()
        ]
        n = sum(scoring.errors.values())
        sentences.append(f"{counted(n, 'answer')} could not be scored ({listed(reasons)}).")
    return sentences


def _is(n: int) -> str:
    return "is" if n == 1 else "are"
