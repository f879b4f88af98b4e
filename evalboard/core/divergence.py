"""How two traces of one case part: drift onset, flip, and what the numbers were there.

Nothing after the flip is looked at: from there the two sides read different texts, and their logprobs no longer
answer the same question. Logprobs are in nats. docs/divergence.md defines every number.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evalboard.core import drift
from evalboard.core.alignment import Alignment, Shorter, align, align_by_bytes
from evalboard.core.trace import NO_TOKEN, Trace
from evalboard.core.vocabulary import Vocabulary

Kind = Literal["identical", "drift_only", "flipped", "text_only"]

NOT_GREEDY = 1e-6  # nats below top-1; logprobs of equal logits may differ by float32 rounding
MOST = -drift.IMPOSSIBLE  # a movement across a forbidden token has no number: it is at least this


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """How two traces part. Positions count from 0; None is "never" for a position and "not known" for a number.

    drift_onset, parts_at: positions on the baseline's side; `*_candidate` are the candidate's, which are the same
    unless the comparison is approximate. shorter: the side that ends where the other goes on; else the tokens at
    `parts_at` differ, which is the flip. token_*, margin_*: of each side at the flip. gap_at_onset,
    gap_before_flip: the largest gap of the tokens that both sides list, at the onset and at the last position that
    agrees. n_shared: positions that agree. n_usable: those of them on which the top-2 gap shift D is known;
    shift_rms: its root mean square. movement: by how much the logit difference of the two chosen tokens moved at the
    flip, which is the sum of the margins where `are_both_top` (each side chose its top-1); a lower bound unless
    `are_both_listed`.
    not_greedy_*: the first position, up to the parting, where the chosen token was not top-1. start_*: of position 0.
    text_position: the first character that differs, where there are texts and no tokens.
    """

    drift_onset: int | None = None
    drift_onset_candidate: int | None = None
    parts_at: int | None = None
    parts_at_candidate: int | None = None
    shorter: Shorter | None = None
    n_baseline: int = 0
    n_candidate: int = 0
    token_baseline: int | None = None
    token_candidate: int | None = None
    margin_baseline: float | None = None
    margin_candidate: float | None = None
    gap_at_onset: float | None = None
    gap_before_flip: float | None = None
    n_shared: int = 0
    n_usable: int = 0
    shift_rms: float | None = None
    are_top_two_equal: bool | None = None
    are_both_listed: bool = False
    are_both_top: bool = False
    movement: float | None = None
    not_greedy_baseline: int | None = None
    not_greedy_candidate: int | None = None
    start_gap: float | None = None
    are_start_top_two_equal: bool | None = None
    has_logprobs: bool = False
    is_approximate: bool = False
    text_position: int | None = None

    @property
    def flip(self) -> int | None:
        """The baseline's position of the first tokens that differ; None where one side merely ends."""
        return self.parts_at if self.shorter is None else None

    @property
    def flip_candidate(self) -> int | None:
        return self.parts_at_candidate if self.shorter is None else None

    @property
    def kind(self) -> Kind:
        """What differs. A side that merely ends earlier has parted too, so it counts as flipped."""
        if self.text_position is not None:
            return "text_only"
        if self.parts_at is not None:
            return "flipped"
        return "identical" if self.drift_onset is None else "drift_only"


def find_divergence(
    baseline: Trace,
    candidate: Trace,
    *,
    vocabularies: tuple[Vocabulary, Vocabulary] | None = None,
    is_decimal: bool = False,
) -> Divergence:
    """Find how two traces part.

    vocabularies: the baseline's and the candidate's where they are not the same one; then tokens are compared by
    their bytes. is_decimal: a log gave the logprobs as decimals, so their last bits mean nothing.
    """
    side_by_side = align_by_bytes(baseline, candidate, *vocabularies) if vocabularies else align(baseline, candidate)
    moved = drift.measure(side_by_side, is_decimal=is_decimal)
    onset = int(moved.differs.argmax()) if moved.differs.any() else None
    shifts = moved.shifts[~np.isnan(moved.shifts)]
    parts_at = side_by_side.parts_at or (None, None)
    reach = side_by_side.parts_at or (len(baseline), len(candidate))
    return Divergence(
        drift_onset=None if onset is None else int(moved.baseline_positions[onset]),
        drift_onset_candidate=None if onset is None else int(moved.candidate_positions[onset]),
        parts_at=parts_at[0],
        parts_at_candidate=parts_at[1],
        shorter=side_by_side.shorter,
        n_baseline=len(baseline),
        n_candidate=len(candidate),
        gap_at_onset=None if onset is None else _number(moved.gaps[onset]),
        gap_before_flip=_number(moved.gaps[-1]) if side_by_side.flip and len(moved.gaps) else None,
        n_shared=len(moved.gaps),
        n_usable=len(shifts),
        shift_rms=math.sqrt(float(shifts @ shifts) / len(shifts)) if len(shifts) else None,
        not_greedy_baseline=first_not_greedy(baseline, reach[0] + 1),
        not_greedy_candidate=first_not_greedy(candidate, reach[1] + 1),
        has_logprobs=_has_logprobs(baseline, reach[0] + 1) and _has_logprobs(candidate, reach[1] + 1),
        is_approximate=side_by_side.is_approximate,
        **_at_start(side_by_side),
        **_at_flip(side_by_side, baseline, candidate),
    )


def find_text_divergence(baseline: str, candidate: str) -> Divergence:
    """Find how two texts part that came without tokens: the first character that differs, and no more."""
    if baseline == candidate:
        return Divergence()
    n = min(len(baseline), len(candidate))
    position = next((place for place in range(n) if baseline[place] != candidate[place]), n)
    shorter: Shorter = "baseline" if len(baseline) < len(candidate) else "candidate"
    return Divergence(text_position=position, shorter=shorter if position == n else None)


def first_not_greedy(trace: Trace, end: int | None = None) -> int | None:
    """The first position before `end` whose chosen token another alternative beats by more than NOT_GREEDY nats."""
    if not trace.k:
        return None
    top = drift.highest(trace.alternative_logprobs[:end])
    with np.errstate(invalid="ignore"):  # -inf minus -inf: both forbidden, none beats the other
        is_beaten = top - trace.logprobs[:end] > NOT_GREEDY
    first = int(is_beaten.argmax()) if len(is_beaten) else 0
    return first if len(is_beaten) and is_beaten[first] else None


def _has_logprobs(trace: Trace, end: int) -> bool:
    logprobs = trace.logprobs[:end]
    return not len(logprobs) or not math.isnan(logprobs[0]) or not bool(np.isnan(logprobs).all())


def _at_start(sides: Alignment) -> dict[str, Any]:
    """What position 0 says of the prompts: after equal ones the two sides list nearly the same there."""
    if not len(sides.baseline) or not len(sides.candidate):
        return {}
    listed, other = _listed(sides.baseline, 0), _listed(sides.candidate, 0)
    if not listed or not other:
        return {}
    return {
        "start_gap": _number(max(listed.values()) - max(other.values())),
        "are_start_top_two_equal": _are_top_two_equal(listed, other),
    }


def _at_flip(sides: Alignment, baseline: Trace, candidate: Trace) -> dict[str, Any]:
    """Tokens as each side's own ids, margins, and how far the logits must have moved."""
    if sides.flip is None:
        return {}
    at, at_too = sides.flip
    listed, other = _listed(sides.baseline, at), _listed(sides.candidate, at_too)
    token, token_too = int(sides.baseline.token_ids[at]), int(sides.candidate.token_ids[at_too])
    logprob, logprob_too = float(baseline.logprobs[at]), float(candidate.logprobs[at_too])
    lead, lead_too = _lead(listed, token, token_too, logprob), _lead(other, token_too, token, logprob_too)
    return {
        "token_baseline": int(baseline.token_ids[at]),
        "token_candidate": int(candidate.token_ids[at_too]),
        "margin_baseline": _margin(listed),
        "margin_candidate": _margin(other),
        "are_top_two_equal": _are_top_two_equal(listed, other),
        "are_both_listed": all(chosen in found for chosen in (token, token_too) for found in (listed, other)),
        "are_both_top": _is_top(listed, logprob) and _is_top(other, logprob_too),
        "movement": None if lead is None or lead_too is None else min(lead + lead_too, MOST),
    }


def _listed(trace: Trace, position: int) -> dict[int, float]:
    """Token → logprob of the alternatives at a position, NaN left out, every forbidden one at -inf."""
    return {
        int(token): logprob if logprob > drift.IMPOSSIBLE else -math.inf
        for token, logprob in zip(
            trace.alternative_ids[position].tolist(), trace.alternative_logprobs[position].tolist(), strict=True
        )
        if token != NO_TOKEN and not math.isnan(logprob)
    }


def _are_top_two_equal(listed: dict[int, float], other: dict[int, float]) -> bool | None:
    """Whether the two sides can agree on their top two; where logprobs are equal, a side has several."""
    if len(listed) < 2 or len(other) < 2:
        return None
    return len(_top_two(listed) & _top_two(other)) >= 2


def _top_two(listed: dict[int, float]) -> set[int]:
    second = sorted(listed.values())[-2]
    return {token for token, logprob in listed.items() if logprob >= second}


def _margin(listed: dict[int, float]) -> float | None:
    first, second = (sorted(listed.values(), reverse=True) + [-math.inf] * 2)[:2]
    return _number(first - second)


def _lead(listed: dict[int, float], chosen: int, rival: int, logprob: float) -> float | None:
    """By how much a side prefers its chosen token to the other side's; a lower bound where the rival is not listed."""
    if not listed or math.isnan(logprob):
        return None
    lead = listed.get(chosen, logprob) - listed.get(rival, min(listed.values()))
    return None if math.isnan(lead) else min(lead, MOST)


def _is_top(listed: dict[int, float], logprob: float) -> bool:
    return bool(listed) and max(listed.values()) - logprob <= NOT_GREEDY


def _number(value: float) -> float | None:
    """A finite distance, or None."""
    return abs(float(value)) if math.isfinite(value) else None
