"""Whether an endpoint serves the weights of a reference, by forced scorings on the reference."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Id, Note, PageAddress, Share, page_only, says
from evalboard.contract.forced import Estimate
from evalboard.contract.probe import ProbeFinding

STATES = ("same_stack", "same_model_other_numerics", "other_model", "too_few_tokens")
STATISTICS = ("gap", "deficit")


class Band(Contract):
    """One set of scored answers, by the statistic."""

    mean: Annotated[
        Estimate, says(description="of the statistic's square over each response, in nats², with its interval at 95 %")
    ]
    n_responses: Count
    n_tokens: Count


class JudgedAnswers(Contract):
    """What the positions of an endpoint's answers come to beside those of answers of known origin."""

    state: Annotated[str, says(enum=STATES)]
    statistic: Annotated[
        str, says(enum=STATISTICS, description="`gap` where the endpoint gave every token's logprob, else `deficit`")
    ]
    limit: Annotated[float, says(minimum=0, description="nats that a position counts with at most")]
    endpoint: Band | None
    control: Band
    numerics: Band
    numerics_place: int = page_only  # of the farthest among those that were given
    planted: Band | None
    change: Annotated[
        float, says(minimum=0, description="the mean of the planted change, or of twice what numerics do, in nats²")
    ]
    boundary: Annotated[
        float, says(minimum=0, description="halfway from numerics to it, as a ratio; twice numerics or more")
    ]
    p_above_control: Share | None
    p_above_numerics: Share | None
    p_below_change: Share | None
    n_more_tokens: Annotated[
        int | None,
        says(minimum=1, description="that the endpoint should still answer, of `too_few_tokens`; null: none would do"),
    ]
    are_bands_short: Annotated[bool, says(description="of `too_few_tokens`: the known answers are too few as well")]


class VerificationBand(Band):
    """The scored answers of one run, by the statistic."""

    forced: Annotated[Id, says(description="the forced scoring")]
    run: Id


class Verification(JudgedAnswers):
    """An endpoint's answers beside those of known origin, all scored on one reference (docs/forced.md)."""

    bucket: Annotated[Id, says(description="of the reference")]
    endpoint: Annotated[
        VerificationBand | None, says(description="what is judged; null where none of its tokens has the statistic")
    ]
    control: Annotated[VerificationBand, says(description="the reference's own answers")]
    numerics: Annotated[
        VerificationBand, says(description="answers of the same weights in a second dtype; of several the farthest")
    ]
    planted: Annotated[VerificationBand | None, says(description="answers of weights that were changed a little")]
    sentence: str
    warnings: tuple[Note, ...]
    url: Annotated[PageAddress, says(description="the page of the endpoint's forced scoring")]


def read_finding(finding: ProbeFinding) -> Verification:
    """Return what a probe of kind `verify` found, whose numbers are the rest of it."""
    return Verification.from_stored(finding.numbers, state=finding.state, sentence=finding.sentence)
