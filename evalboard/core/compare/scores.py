"""Find which cases broke, were fixed or are unstable between two sides, and the share of noise."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.compare.comparison import CASE_PARTS, MatchedRuns
from evalboard.core.compare.sides import Indexes, Scores, Side
from evalboard.core.profile import have_same_seeds
from evalboard.core.stats import (
    CASE_OUTCOMES,
    DifferenceNoise,
    find_case_outcomes,
    is_left_out,
    measure_noise_share,
)

Codes = NDArray[np.uint8]
DoAgree = Callable[[Side], bool]


class ScoreNoise:
    """How noise moves the difference of two runs, and some cases' part of it (docs/divergence.md).

    do_agree: tells whether the repeats of a side are the same.
    """

    def __init__(self, *sides: Side, do_agree: DoAgree) -> None:
        (ours, drawn), (theirs, drawn_too) = (side.scored_draws for side in sides)
        self._scores = (ours.scores, theirs.scores)
        self._are_one = tuple(
            draws.is_one or _is_one_draw(side, do_agree) for side, draws in zip(sides, (drawn, drawn_too), strict=True)
        )
        self._has_copies = any(
            not side.effective.is_one_answer and (side.effective.marks != side.marks).any() for side in sides
        )
        self._share_seeds = have_same_seeds(drawn, drawn_too)
        self._has_left_out = any((is_left_out(side.marks) & ~np.isnan(side.scores)).any() for side in sides)
        self._cases = _find_scored(ours.scores, theirs.scores)

    def share(self) -> DifferenceNoise:
        """Return how much of the whole difference is noise."""
        return self._measure(self._cases)

    def measure_cases(self, cases: Indexes) -> float | None:
        """Return how many points noise moves the difference by these cases; None if not known.

        cases: int64, rows of the inputs with a score on both sides.
        """
        up_to = self._measure(cases).up_to
        return None if up_to is None else up_to * len(cases) / len(self._cases)

    def _measure(self, cases: Indexes) -> DifferenceNoise:
        if self._has_left_out:
            return DifferenceNoise(None, "left_out")
        if self._has_copies:
            return DifferenceNoise(None, "copies")
        ours, theirs = (scores[cases] for scores in self._scores)
        if not (ours.shape[1] and theirs.shape[1]):  # every repeat of a side was cancelled or failed
            return DifferenceNoise(None, "one_repeat")
        one, one_too = self._are_one
        return measure_noise_share(ours, theirs, is_one_draw=(one, one_too), share_seeds=self._share_seeds)


def find_noise_share(
    baseline: Side, candidate: Side, matched: MatchedRuns, *, do_agree: DoAgree
) -> dict[str, Any] | None:
    """Return the fields of NoiseShare for a comparison's summary; None without a difference."""
    if matched.is_mixed or not matched.is_scored or not matched.pairing.is_paired.any():
        return None
    return asdict(ScoreNoise(baseline, candidate, do_agree=do_agree).share())


def judge_outcomes(baseline: Side, candidate: Side, *, look: int | None = None) -> dict[str, Any]:
    """Return {"counts", "cases": {outcome: its cases, in their order}} by the rule of a verdict.

    A case is a list: its index in the baseline's suite, both sides' scores by repeat, null where there is no draw, its
    chance and whether it is beyond chance, as core.stats.OutcomeIndexes has them. look: judged by the first so many
    repeats of each side. Counts are None where several buckets served a side.
    """
    if any(len(side.bucket_ids) > 1 for side in (baseline, candidate)):
        return {"counts": None, "cases": dict.fromkeys(CASE_OUTCOMES, ())}
    scores = [side.scored_draws[0].first(look).scores for side in (baseline, candidate)]
    has_both = _find_scored(*scores)
    is_steady = baseline.is_steady and candidate.is_steady
    judged = find_case_outcomes(scores[0][has_both], scores[1][has_both], is_steady=is_steady)
    cases = {}
    for outcome in CASE_OUTCOMES:
        chosen = getattr(judged, outcome)
        places = has_both[chosen]
        columns = (
            baseline.case_indexes[places].tolist(),
            *(list_scores(each[places]) for each in scores),
            list_scores(judged.chances[chosen]),
            judged.is_beyond_chance[chosen].tolist(),
        )
        cases[outcome] = [list(case) for case in zip(*columns, strict=True)]
    return {"counts": judged.counts.to_stored(), "cases": cases}


def find_case_parts(baseline: Side, candidate: Side, matched: MatchedRuns, judged: dict[str, Any]) -> Codes:
    """Return uint8[n_cases]: the place in CASE_PARTS of each case.

    judged: from `judge_outcomes`, over all repeats. Where several buckets served a side no case is judged as a whole.
    """
    parts = np.full(matched.pairing.n_cases, CASE_PARTS.index("missing"), np.uint8)
    parts[baseline.is_there.any(axis=1) & candidate.is_there.any(axis=1)] = CASE_PARTS.index("unscored")
    parts[matched.pairing.cases] = CASE_PARTS.index("same_text")
    parts[matched.pairing.cases[matched.has_other_text]] = CASE_PARTS.index("other_text")
    parts[matched.has_moved] = CASE_PARTS.index("changed")
    for outcome, cases in judged["cases"].items():
        indexes = [index for index, *_ in cases]
        parts[np.isin(baseline.case_indexes, indexes)] = CASE_PARTS.index(outcome)
    return parts


def count_parts(parts: Codes, baseline: Side, candidate: Side) -> dict[str, int]:
    """Return the number of cases of each part, and of those without a response on either side."""
    counts = np.bincount(parts, minlength=len(CASE_PARTS)).tolist()
    n_on_neither = np.count_nonzero(~(baseline.is_there.any(axis=1) | candidate.is_there.any(axis=1)))
    return {**dict(zip(CASE_PARTS, counts, strict=True)), "missing_on_both": int(n_on_neither)}


def list_scores(values: Scores) -> list[Any]:
    """Return an array as lists, None for NaN."""
    rows = values.astype(object)
    rows[np.isnan(values)] = None
    return list(rows.tolist())


def _find_scored(ours: Scores, theirs: Scores) -> Indexes:
    """Return the places of the cases that have a draw on both sides."""
    return np.flatnonzero(~(np.isnan(ours).all(axis=1) | np.isnan(theirs).all(axis=1)))


def _is_one_draw(side: Side, do_agree: DoAgree) -> bool:
    """Return whether repeats cannot differ, by a steady batch class or as copies.

    Digests of decimals differ where the traces are equal to a step, so do_agree reads these; not where an independent
    run says which repeats count.
    """
    if len(side.repeats) < 2:
        return False
    if side.is_steady or side.effective.is_one_answer:
        return True
    return side.is_reported and side.usual is None and not side.draws.may_sample and do_agree(side)
