"""A forced scoring in words: its numbers as rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evalboard.contract.forced import ForcedFigures, ForcedScoring, GapsOfStretch
from evalboard.contract.parts import Estimate, FingerprintNamed
from evalboard.wording.numbers import nats, percent, percent_rounded
from frontend.forced import chart
from frontend.shell.findings import NumberRow

SMALL = 0.01  # a share below is not rounded to none of the tokens, which would say too much
Table = tuple[tuple[str, str, str], ...]  # a number's label, its field and what it says


@dataclass(frozen=True, slots=True)
class NumberPart:
    """The numbers of some answers: of all, or of those that one of several buckets gave."""

    bucket: str
    fingerprint: FingerprintNamed | None
    n_responses: int
    n_positions: int
    rows: tuple[NumberRow, ...]
    stretches: tuple[GapsOfStretch, ...]
    figure: dict[str, Any] | None

    @property
    def figure_id(self) -> str:
        return f"gaps{self.bucket}"


NATS: Table = (
    ("gap, median", "gap_median", "difference of a token's logprobs"),
    ("gap, 99th percentile", "gap_p99", "1 token in 100 is further off"),
    ("gap, mean", "gap_mean", ""),
    ("gap to the top choice, mean", "deficit_mean", "lead of the other stack’s top choice over this token"),
    ("gap to the top choice, 99th percentile", "deficit_p99", ""),
)
SHARES: Table = (("first choice", "match_rate", "tokens that it would also choose"),)
# What only answers tell that were drawn from the sampler's own distribution.
DRAWN_NATS: Table = (
    ("KL per token, k1", "kl_k1", "mean of −log r"),
    ("KL per token, k3", "kl_k3", "mean of r − 1 − log r, never negative"),
    ("KL per answer", "sequence_kl", ""),
)
DRAWN_SHARES: Table = (
    ("beyond the clip range", "beyond_clip", "tokens whose probability differs by more than 20 %"),
    ("effective sample size, tokens", "weight_ess", "of importance weights"),
    ("effective sample size, answers", "sequence_ess", "of importance weights over whole answers"),
)


def list_parts(scoring: ForcedScoring) -> tuple[NumberPart, ...]:
    """List the figures of a scoring: of all its answers, or of each bucket."""
    if scoring.figures is not None:
        return (_part(scoring, scoring.figures),)
    return tuple(_part(scoring, each.figures, each.bucket, each.fingerprint) for each in scoring.by_bucket)


def _part(
    scoring: ForcedScoring, figures: ForcedFigures, bucket: str = "", fingerprint: FingerprintNamed | None = None
) -> NumberPart:
    rows = list_numbers(figures, are_draws=scoring.are_draws)
    stretches = figures.by_position or ()
    figure = chart.figure(stretches)
    return NumberPart(bucket, fingerprint, figures.n_responses, figures.n_positions, rows, stretches, figure)


def list_numbers(figures: ForcedFigures, *, are_draws: bool) -> tuple[NumberRow, ...]:
    """List the known figures, each with its interval. are_draws: as in `ForcedScoring`."""
    rows: list[NumberRow] = []
    tables: list[tuple[Table, Callable[[float], str]]] = [(NATS, nats), (SHARES, percent)]
    if are_draws:
        tables += [(DRAWN_NATS, nats), (DRAWN_SHARES, percent)]
    for table, write in tables:
        for label, name, means in table:
            estimate: Estimate | None = getattr(figures, name)
            if estimate is not None:
                rows.append(NumberRow(label, _with_interval(estimate, write), means))
    return tuple(rows)


def _with_interval(estimate: Estimate, write: Callable[[float], str]) -> str:
    if estimate.low is None or estimate.high is None:
        return write(estimate.value)
    if write is percent and 0 < estimate.value < SMALL:
        write = percent_rounded
    low, high = (write(end).removesuffix(" nats").removesuffix(" %") for end in (estimate.low, estimate.high))
    return f"{write(estimate.value)}, {low} to {high}"
