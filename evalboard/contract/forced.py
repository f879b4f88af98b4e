"""Forced re-scoring: the answers of a run scored on another stack, token by token."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Id, Instant, PageAddress, page_only, says
from evalboard.contract.parts import Estimate, FingerprintNamed

STATUSES = ("queued", "running", "finished", "failed")
TOKENS = ("same", "by_bytes", "as_given", "retokenised")


class ForcedCost(Contract):
    """The cost of scoring the answers of a run; equal answers of a case are scored once."""

    n_answers: Count
    n_tokens: Annotated[int, says(minimum=0, description="answer tokens to score")]
    n_prompt_tokens: Annotated[int, says(minimum=0, description="prompt tokens to process")]
    n_uncounted: Annotated[int, says(minimum=0, description="answers whose number of tokens is unknown")]


class WorstToken(Contract):
    """The token furthest from its likelihood on the other stack."""

    answer: Annotated[Id, says(description="of its scored answer")]
    position: Count
    log_ratio: Annotated[float, says(description="its logprob on the scoring stack minus that of the run")]


class GapsOfStretch(Contract):
    """How far the tokens at a stretch of positions differ from the other side's logprob, in nats."""

    first: Count
    last: Count
    n: Count
    median: float
    highest: float


class ForcedFigures(Contract):
    """How far the scoring stack is from the one that answered (docs/forced.md). Null: not known."""

    # r: the ratio of the chosen token's probabilities. match_rate: share of n_ranked. deficit_*: of the largest logprob
    # minus the chosen token's. gap_*: of |log r|. kl_*: per token; sequence_kl: per response. beyond_clip: share of
    # n_compared. weight_ess: effective sample size of the weights r, as a share of n_compared; sequence_ess: of their
    # product over each response, as a share of the responses. by_position: |log r| as responses go on.
    n_responses: Annotated[int, says(minimum=0, description="scored answers in these figures")]
    n_positions: Count
    n_compared: Annotated[int, says(minimum=0, description="tokens with a logprob on both sides")]
    n_ranked: Annotated[int, says(minimum=0, description="tokens for which the scoring stack names its top choice")]
    n_not_top: Annotated[int, says(minimum=0, description="those of them that are not its top choice")]
    is_identical: Annotated[bool, says(description="all logprobs are equal to the bit")]
    clip_range: Annotated[
        float, says(description="half-width of the range around 1 outside which beyond_clip counts ratios")
    ]
    match_rate: Estimate | None
    deficit_mean: Estimate | None
    deficit_p99: Estimate | None
    gap_mean: Estimate | None
    gap_median: Estimate | None
    gap_p99: Estimate | None
    kl_k1: Estimate | None
    kl_k3: Estimate | None
    sequence_kl: Estimate | None
    beyond_clip: Estimate | None
    weight_ess: Estimate | None
    sequence_ess: Estimate | None
    worst: WorstToken | None
    by_position: tuple[GapsOfStretch, ...] | None = page_only  # None of a scoring that ended before these were kept


class AnswerFigures(Contract):
    """The same for one answer, without intervals."""

    n_positions: Count
    n_compared: Count
    n_ranked: Count
    n_not_top: Count
    is_identical: bool
    deficit_mean: float | None
    gap_mean: float | None
    kl_k1: float | None
    kl_k3: float | None
    n_beyond_clip: Count
    worst_at: Annotated[int | None, says(description="the position of its most different token")]
    worst_log_ratio: float | None


class ForcedOfBucket(Contract):
    """The figures of the answers that one of several buckets gave."""

    bucket: Id
    fingerprint: FingerprintNamed
    figures: ForcedFigures


class ForcedScoring(Contract):
    """The answers of a run, scored on another stack."""

    id: Id
    run: Id
    is_reported: Annotated[
        bool,
        says(description="the logprobs are a trainer's, from the run's log; no engine here scored them"),
    ]
    endpoint: Annotated[str | None, says(description="slug of the scoring endpoint; null if a trainer's")]
    profile: str | None
    model: Annotated[dict[str, Any] | None, says(description="another checkpoint of the endpoint's model line")]
    status: Annotated[str, says(enum=STATUSES)]
    repeats: Annotated[tuple[int, ...], says(description="the run whose answers are scored")]
    n_cases: Annotated[int | None, says(description="number of chosen cases; null: all of the suite")]
    n_answers: Annotated[int, says(minimum=0, description="distinct answers to score")]
    n_tokens: Annotated[int, says(minimum=0, description="tokens of these answers, as far as counted by the run")]
    n_done: Count
    errors: Annotated[dict[str, int], says(description="answers that could not be scored, by code")]
    tokens: Annotated[dict[str, int], says(description="scored answers by the origin of their tokens")]
    n_rendered: Annotated[int, says(minimum=0, description="answers whose prompt the target's template rendered")]
    bucket: Annotated[Id | None, says(description="of the scoring stack; null before the first answer")]
    is_sampled: Annotated[bool, says(description="whether the answers were sampled; greedy ones have no KL")]
    reshaped_by: Annotated[
        tuple[str, ...] | None,
        says(
            description="settings by which they were drawn from another distribution than their logprobs are of, such "
            "as a temperature other than 1; with any, k1 and k3 are no KL"
        ),
    ]
    figures: Annotated[
        ForcedFigures | None, says(description="set once it has ended; null if several buckets gave the answers")
    ]
    by_bucket: Annotated[
        tuple[ForcedOfBucket, ...], says(description="used instead if several buckets gave the answers")
    ]
    reading: Annotated[tuple[str, ...], says(description="the findings in sentences; empty until it has ended")]
    error: Annotated[str | None, says(description="why it failed, or was last returned to the queue")]
    created_by: str | None
    created_at: Instant
    finished_at: Instant | None
    url: PageAddress

    @property
    def is_terminal(self) -> bool:
        return self.status in ("finished", "failed")

    @property
    def are_draws(self) -> bool:
        """Return whether tokens were sampled from the logprobs' distribution, as a KL requires."""
        return self.is_sampled and self.reshaped_by == ()


class ForcedError(Contract):
    """Why an answer could not be scored."""

    code: str
    detail: str


class ForcedAnswer(Contract):
    """One answer of a case, scored."""

    id: Id
    case: str
    repeat: Annotated[int, says(minimum=1, description="the first repeat with this answer to the case")]
    n_tokens: int | None
    tokens: Annotated[str | None, says(enum=(*TOKENS, None), description="the origin of its tokens")]
    is_rendered: Annotated[bool, says(description="whether the target's template rendered the prompt")]
    engine_process: Id | None
    figures: AnswerFigures | None
    error: ForcedError | None


class ForcedPair(Contract):
    """Both sides of a comparison, each scored on the other's stack and on its own; null if not scored.

    Two runs of one stack have no scoring on their own stack.
    """

    baseline: Annotated[ForcedScoring | None, says(description="the baseline's answers on the candidate's stack")]
    candidate: Annotated[ForcedScoring | None, says(description="the candidate's answers on the baseline's stack")]
    baseline_own: Annotated[
        ForcedScoring | None, says(description="the baseline's answers on its own stack: the control")
    ]
    candidate_own: Annotated[ForcedScoring | None, says(description="the candidate's answers on its own stack")]
