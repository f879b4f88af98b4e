"""A pair that differs as one row, from the comparison that finds it to the table that keeps it."""

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any

from evalboard.core.compare.divergence import Divergence


@dataclass(slots=True)
class Flip:
    """One pair of responses that differ, or of which one is missing; the fields are the columns that are stored.

    case_index: in the baseline's suite. numeric: as `cause.Cause` has it, "" for none. consequence: from
    `comparison.rank_consequence`. Positions count from 0, margins and gaps are in nats; None is "never" or "not known".
    token_*: chosen at the flip. evidence: what the cause rests on, with `n_tokens_*` of both traces, `text_position`
    and the `buckets` of both sides beside it.
    """

    case_index: int
    repeat_baseline: int
    repeat_candidate: int
    cause: str
    numeric: str
    consequence: int
    score_baseline: float | None
    score_candidate: float | None
    drift_onset: int | None = None
    flip_position: int | None = None
    margin_baseline: float | None = None
    margin_candidate: float | None = None
    gap_at_onset: float | None = None
    token_baseline: int | None = None
    token_candidate: int | None = None
    evidence: dict[str, Any] = field(default_factory=dict)

    def point(self, repeats: tuple[int, int]) -> dict[str, Any]:
        """Return what a chart of flips shows of the pair of these repeats, as a comparison's summary keeps it."""
        return {
            "case_index": self.case_index,
            "repeat_baseline": repeats[0],
            "repeat_candidate": repeats[1],
            "cause": self.cause,
            "flip_position": self.flip_position,
            "margin_baseline": self.margin_baseline,
            "gap_at_onset": self.gap_at_onset,
            "evidence__movement": self.evidence.get("movement"),
        }


# What of the evidence a comparison's summary rests on.
SUMMED_FACTS = ("ratio", "threshold", "movement", "also_moved")
PARTED = tuple(each.name for each in fields(Flip) if hasattr(Divergence, each.name))
_parted = attrgetter(*PARTED)


def parted_columns(parting: Divergence | None) -> dict[str, Any]:
    """Return the fields of Flip that say how two traces part."""
    return {} if parting is None else dict(zip(PARTED, _parted(parting), strict=True))
