"""Whether an endpoint serves the weights of a reference, by forced scorings on the reference."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Id, Note, PageAddress, Share, page_only, says
from evalboard.contract.parts import Estimate
from evalboard.contract.probe import ProbeFinding

STATES = ("same_stack", "same_model_other_numerics", "other_model", "too_few_tokens")
STATISTICS = ("gap", "deficit")


class Band(Contract):
    """One set of scored answers, by the statistic."""

    mean: Annotated[
        Estimate, says(description="mean square of the statistic per response, in nats², with its 95 % interval")
    ]
    n_responses: Count
    n_tokens: Count


class JudgedAnswers(Contract):
    """The figures of an endpoint's answers next to those of answers of known origin."""

    state: Annotated[str, says(enum=STATES)]
    statistic: Annotated[
        str, says(enum=STATISTICS, description="`gap` if the endpoint gave every token's logprob, else `deficit`")
    ]
    limit: Annotated[float, says(minimum=0, description="the largest value of a position that counts, in nats")]
    endpoint: Band | None
    control: Band
    numerics: Band
    numerics_place: int = page_only  # of the farthest among those that were given
    planted: Band | None
    change: Annotated[
        float, says(minimum=0, description="the mean of the planted change, or twice that of numerics, in nats²")
    ]
    boundary: Annotated[
        float, says(minimum=0, description="geometric mean of numerics and it; at least twice numerics")
    ]
    p_above_control: Share | None
    p_above_numerics: Share | None
    p_below_change: Share | None
    n_more_tokens: Annotated[
        int | None,
        says(minimum=1, description="tokens still needed for `too_few_tokens`; null: no number would be enough"),
    ]
    are_bands_short: Annotated[bool, says(description="for `too_few_tokens`: the known answers are too few as well")]


class VerificationBand(Band):
    """The scored answers of one run, by the statistic."""

    forced: Annotated[Id, says(description="the forced scoring")]
    run: Id


class Verification(JudgedAnswers):
    """An endpoint's answers and those of known origin, all scored on one reference (docs/forced.md)."""

    bucket: Annotated[Id, says(description="the reference's")]
    endpoint: Annotated[
        VerificationBand | None, says(description="the judged answers; null if no token has the statistic")
    ]
    control: Annotated[VerificationBand, says(description="the reference's own answers")]
    numerics: Annotated[
        VerificationBand, says(description="answers of the same weights in another dtype; the most distant of several")
    ]
    planted: Annotated[VerificationBand | None, says(description="answers of slightly changed weights")]
    sentence: str
    warnings: tuple[Note, ...]
    url: Annotated[PageAddress, says(description="the page of the endpoint's forced scoring")]


def read_finding(finding: ProbeFinding) -> Verification:
    """Return the result of a probe of kind `verify`, whose numbers are the other fields."""
    return Verification.from_stored(finding.numbers, state=finding.state, sentence=finding.sentence)
