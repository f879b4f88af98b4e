"""A forced scoring in words: its numbers as rows."""

from collections.abc import Callable
from dataclasses import dataclass

from evalboard.contract.forced import Estimate, ForcedFigures
from evalboard.wording.numbers import nats, percent

Table = tuple[tuple[str, str, str], ...]  # a number's label, its field and what it says


@dataclass(frozen=True, slots=True)
class NumberRow:
    label: str
    value: str
    means: str


NATS: Table = (
    ("gap, median", "gap_median", "how far the logprobs of a token lie apart"),
    ("gap, 99th percentile", "gap_p99", "1 token in 100 is further off"),
    ("gap, mean", "gap_mean", ""),
    ("deficit, mean", "deficit_mean", "how much likelier its first choice is than the token; 0 where it is the token"),
    ("deficit, 99th percentile", "deficit_p99", ""),
)
SHARES: Table = (("first choice", "match_rate", "tokens that it would have chosen too"),)
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


def list_numbers(figures: ForcedFigures, *, are_drawn: bool) -> tuple[NumberRow, ...]:
    """List what is known of a scoring's figures, each with its interval; are_drawn: its answers were sampled."""
    rows: list[NumberRow] = []
    tables: list[tuple[Table, Callable[[float], str]]] = [(NATS, nats), (SHARES, percent)]
    if are_drawn:
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
    low, high = (write(end).removesuffix(" nats").removesuffix(" %") for end in (estimate.low, estimate.high))
    return f"{write(estimate.value)}, {low} to {high}"
