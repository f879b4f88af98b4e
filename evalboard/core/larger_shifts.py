"""In how many cases the logits moved further than noise explains, where nothing else says why they did.

A count and no test: whether two runs are one computation is not read off it.
"""

from dataclasses import dataclass

# These say why a pair differs, however far its logits moved.
ESTABLISHED = frozenset(
    {
        "error",
        "scorer",
        "model_changed",
        "prompt_mismatch",
        "backend_changed",
        "whitespace",
        "length",
        "sampler_fault",
    }
)


@dataclass(frozen=True, slots=True)
class LargerShifts:
    """Numbers of cases, each counted once however many pairs it has.

    n_read: those with a pair that could be held against noise; n_cases: those of them with one that moved further.
    n_established: the others that have a pair of an established cause.
    """

    n_cases: int
    n_read: int
    n_established: int

    @property
    def sentence(self) -> str:
        """What was counted, in one sentence; "" where nothing could be held against noise."""
        if not self.n_read:
            return ""
        found = f"{self.n_cases:,} of {self.n_read:,} cases moved further than noise explains"
        verb = "differs" if self.n_established == 1 else "differ"
        more = f"; {self.n_established:,} more {verb} for an established cause" if self.n_established else ""
        return f"{found}{more}."


def is_larger(cause: str, numeric: str | None, ratio: float | None, limit: float | None) -> bool | None:
    """Whether a pair moved further than noise explains; None where nobody knows, or another cause is established.

    cause, numeric: as `cause.Cause` has them. ratio, limit: R of the pair and t(L), None where too few positions are
    usable.
    """
    if cause in ESTABLISHED:
        return None
    if "larger_shift" in (cause, numeric):
        return True
    if ratio is not None and limit is not None:
        return ratio > limit
    return False if "near_tie" in (cause, numeric) else None
