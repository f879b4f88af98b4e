"""Steps of a training loop: how far its sampler was from its trainer (docs/forced.md)."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Id, Instant, PageAddress, says


class WorstPosition(Contract):
    """A position where the logprobs of sampler and trainer differ most."""

    response: Annotated[int, says(minimum=0, description="row of the batch, from 0")]
    position: Annotated[int, says(minimum=0, description="in its response, from 0")]
    log_ratio: Annotated[float, says(description="the trainer's logprob minus the sampler's")]


class WorstRolloutToken(WorstPosition):
    """The token of a step whose two logprobs differ most."""

    token_id: int
    sampler: Annotated[float, says(description="logprob in nats")]
    trainer: float


class TopKCheck(Contract):
    """What the likeliest tokens say of the whole distribution. Total variation (TV) is from 0 to 1."""

    n_positions: Count
    top_k: Count
    tv_low: Annotated[float, says(minimum=0, maximum=1, description="the mean TV is at least this")]
    tv_high: Annotated[float | None, says(description="and at most this; null without the sampler's top k")]
    confidence: Annotated[float | None, says(description="of tv_low; null where it is exact")]
    observed: Annotated[float, says(minimum=0, maximum=1, description="share of tokens within the trainer's top k")]
    expected: Annotated[float, says(minimum=0, maximum=1, description="the share that the trainer gives them")]


class RoutingCheck(Contract):
    """Which experts a mixture of experts chose for a sample of the step's tokens."""

    n_positions: Annotated[int, says(minimum=0, description="tokens looked at")]
    n_layers: Count
    top_k: Annotated[int, says(minimum=0, description="experts that one token has in one layer")]
    busiest_layer: Annotated[int, says(minimum=0, description="from 0, where one expert gets most tokens")]
    busiest_expert: Count
    busiest_share: Annotated[float, says(minimum=0, maximum=1, description="share of the tokens that it gets")]
    differs: Annotated[float | None, says(description="share of token and layer where the trainer chose others")]
    kl_same: Annotated[float | None, says(description="k3 of the tokens that both routed alike in every layer")]
    kl_other: Annotated[float | None, says(description="k3 of the tokens that they did not")]


class RolloutFigures(Contract):
    """How far the trainer was from the sampler in one step. Null: not known."""

    n_responses: Count
    n_tokens: Annotated[int, says(minimum=0, description="tokens that the model sampled")]
    n_compared: Annotated[int, says(minimum=0, description="those with a logprob on both sides")]
    is_identical: Annotated[bool, says(description="all logprobs are equal to the bit")]
    kl_k1: Annotated[float | None, says(description="mean of −log r, in nats per token")]
    kl_k3: Annotated[float | None, says(description="mean of r − 1 − log r, never negative")]
    kl_k3_error: Annotated[float | None, says(description="its standard error, over responses")]
    clip_range: Annotated[float, says(description="half-width of the range around 1")]
    clip_share: Annotated[float | None, says(minimum=0, maximum=1, description="share of tokens whose r is outside it")]
    worst: WorstRolloutToken | None
    distribution: Annotated[TopKCheck | None, says(description="null without top-k logprobs")]
    routing: Annotated[RoutingCheck | None, says(description="null without routed experts")]


class RolloutStep(RolloutFigures):
    """A step of a series, as it was logged last."""

    series: str
    step: Count
    max_kl: Annotated[float | None, says(description="the trainer's limit of k3; null: none")]
    max_clip_share: float | None
    is_over: Annotated[bool, says(description="a limit was exceeded")]
    n_logged: Annotated[int, says(minimum=1, description="how often it was logged; the last one counts")]
    logged_at: Instant


class RolloutSeries(Contract):
    """The steps of one training run."""

    id: Id
    name: str
    n_steps: Count
    n_over: Annotated[int, says(minimum=0, description="steps over a limit")]
    last: Annotated[RolloutStep, says(description="the step with the largest number")]
    worst: Annotated[RolloutStep, says(description="the step with the largest k3")]
    created_by: str | None
    created_at: Instant
    url: PageAddress
