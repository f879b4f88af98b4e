"""Combine targeted repeats, those of the noisiest cases, with the repeats of all cases."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evalboard.core.release import settle
from evalboard.core.release.gate import Scores, TargetedScores
from evalboard.core.release.sides import has_score
from evalboard.core.stats import Bools, SideDraws, Strata, measure_noise, move_as_a_whole
from evalboard.core.suite import TARGETED_REPEATS, PolicySettings


def choose_entering(
    look: int | None, targeted: TargetedScores | None, policy: PolicySettings, *, is_sampled: bool
) -> tuple[int | None, TargetedScores | None]:
    """Return the checkpoint and the targeted repeats that count at it.

    They replace the checkpoint after the one at which they were added. Before and after that checkpoint, none count.
    """
    if targeted is None or look is None or is_sampled:
        return look, None
    base = settle.choose_look(policy, targeted.n_before)
    n = min(targeted.baseline.shape[1], targeted.candidate.shape[1])
    if base is None or base not in TARGETED_REPEATS or not n:
        return look, None
    later = policy.later_looks(base, is_targeted=True)
    look = max((each for each in later if each <= look), default=min(base, look))
    needed = TARGETED_REPEATS[base]
    if n < needed:
        return look, None
    return look, replace(targeted, baseline=targeted.baseline[:, :needed], candidate=targeted.candidate[:, :needed])


def moves_as_a_whole(ours: Scores, theirs: Scores) -> bool:
    """Tell whether the noise is one of whole repeats, so that no single cases are the noisy ones."""
    has_both = has_score(ours) & has_score(theirs)
    return bool(has_both.any()) and move_as_a_whole(measure_noise(ours[has_both], theirs[has_both]))


def join_targeted(entering: Sequence[SideDraws], targeted: TargetedScores) -> tuple[SideDraws, ...]:
    """Return both sides with targeted repeats as more columns, empty for the other cases."""
    others = ~targeted.is_chosen[:, None]
    return tuple(
        SideDraws(
            np.hstack([side.scores, np.where(others, np.nan, scores)]),
            np.hstack([side.is_left_out, np.broadcast_to(others, scores.shape)]),
            side.places,
        )
        for side, scores in zip(entering, (targeted.baseline, targeted.candidate), strict=True)
    )


def make_strata(is_noisy: Bools | None, is_judged: Bools, look: int | None) -> Strata | None:
    """Split the judged cases (bool[n] of all cases) into noisy and others; None if not applicable."""
    if is_noisy is None or look is None or not is_noisy[is_judged].any():
        return None
    return Strata(is_noisy[is_judged], look)
