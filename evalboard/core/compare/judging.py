"""Say how and why the pairs of a comparison parted, a group of alike pairs at a time, in bounded memory."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from evalboard.core.compare.cause import find_cause
from evalboard.core.compare.comparison import MatchedRuns, rank_consequence
from evalboard.core.compare.divergence import find_divergences, find_text_divergence
from evalboard.core.compare.flip import Flip, parted_columns
from evalboard.core.compare.groups import Groups
from evalboard.core.compare.known_pair import (
    UNKNOWN_SERVING,
    KnownResponse,
    Pair,
    Place,
    ResponseFacts,
    make_response,
)
from evalboard.core.compare.pair_noise import PairNoise
from evalboard.core.compare.paired_rows import Vocabularies
from evalboard.core.compare.partings import Divergence
from evalboard.core.compare.sides import Bools, Side, Traces
from evalboard.core.compare.traced_text import WordsById

Read = list[ResponseFacts | None]


class AlikePairs(NamedTuple):
    """Pairs of a case that differ in nothing but their repeats, which are (baseline, candidate); `flip` is the first of
    them.
    """

    flip: Flip
    repeats: list[tuple[int, int]]


class Judge:
    """Judges pairs of two sides. matched, groups: of them; noise: by which their pairs are judged."""

    def __init__(self, sides: tuple[Side, Side], matched: MatchedRuns, groups: Groups, noise: PairNoise) -> None:
        self._sides, self._matched, self._groups, self._noise = sides, matched, groups, noise

    def judge(self, part: slice, traces: Traces, words: WordsById) -> Iterator[AlikePairs]:
        """Judge some groups, in their order: all is read at once, before this returns, and then they are judged one
        by one, so that what was judged can be stored while the rest still is.
        """
        groups, firsts = self._groups, self._groups.firsts(part)
        cases, is_texted = groups.cases[firsts], groups.is_texted[firsts]
        repeats = groups.baseline_repeats[firsts], groups.candidate_repeats[firsts]
        both = tuple(side.responses.read(cases, own, is_texted) for side, own in zip(self._sides, repeats, strict=True))
        is_traced, has_other_trace = groups.is_traced[firsts], groups.has_other_trace[firsts]
        partings = self._find_partings((both[0], both[1]), is_traced, has_other_trace, traces, words)
        rows = zip(range(part.start, part.stop), *both, partings, strict=True)
        return (self._judge(group, (ours, theirs), parted) for group, ours, theirs, parted in rows)

    def _find_partings(
        self, both: tuple[Read, Read], is_traced: Bools, has_other_trace: Bools, traces: Traces, words: WordsById
    ) -> list[Divergence | None]:
        """Find how each pair of responses parts, as `find_parting` does of one: all pairs of traces in a few passes."""
        are_logged = [side.is_reported for side in self._sides]
        partings: list[Divergence | None] = [None] * len(is_traced)
        traced: list[tuple[int, tuple[Place, Place], Vocabularies | None]] = []
        for at in np.flatnonzero(is_traced).tolist():
            ours, theirs = both[0][at], both[1][at]
            if ours is None or theirs is None or ours.place is None or theirs.place is None:
                partings[at] = find_text_divergence(ours.text if ours else "", theirs.text if theirs else "")
                continue
            own = words.beside(ours.vocabulary_id, theirs.vocabulary_id, are_logged=all(are_logged))
            if own is not None or has_other_trace[at]:
                traced.append((at, (ours.place, theirs.place), own))
        n_read = 0
        for columns in traces.read_pair_columns([places for _, places, _ in traced]):
            part = traced[n_read : n_read + len(columns[0])]
            words_of = [own for _, _, own in part]
            divergences = find_divergences(*columns, vocabularies=words_of, is_decimal=any(are_logged))
            for (at, _, _), parted in zip(part, divergences, strict=True):
                partings[at] = parted
            n_read += len(part)
        return partings

    def _judge(
        self, group: int, both: tuple[ResponseFacts | None, ResponseFacts | None], parted: Divergence | None
    ) -> AlikePairs:
        """Judge the first pair of a group. Nothing is read for it."""
        (ours, theirs), groups = self._sides, self._groups
        members = groups.members_of(group)
        first = int(members[0])
        case = int(groups.cases[first])
        places = int(groups.baseline_repeats[first]), int(groups.candidate_repeats[first])
        sides = [
            self._known(side, case, repeat, response)
            for side, repeat, response in zip(self._sides, places, both, strict=True)
        ]
        buckets = [int(side.buckets[case, at]) for side, at in zip(self._sides, places, strict=True)]
        cause = find_cause(Pair(*sides), parted, self._noise.between(*buckets))
        is_read = parted is not None and parted.text_position is None
        scores = float(ours.scores[case, places[0]]), float(theirs.scores[case, places[1]])
        move = None
        if groups.pair_indexes[first] >= 0:
            move = scores[1] - scores[0] if self._matched.is_scored else 0.0
        kind = parted.kind if parted is not None else "identical"
        repeats = [
            (ours.repeats[at], theirs.repeats[at_too])
            for at, at_too in zip(
                groups.baseline_repeats[members].tolist(), groups.candidate_repeats[members].tolist(), strict=True
            )
        ]
        flip = Flip(
            case_index=int(ours.case_indexes[case]),
            repeat_baseline=repeats[0][0],
            repeat_candidate=repeats[0][1],
            cause=cause.code,
            numeric=cause.numeric or "",
            consequence=rank_consequence(
                "text_only" if kind == "identical" and groups.is_texted[first] else kind, move
            ),
            score_baseline=_known_score(scores[0]),
            score_candidate=_known_score(scores[1]),
            **parted_columns(parted),
            evidence=cause.evidence
            | {
                "n_tokens_baseline": parted.n_baseline if parted and is_read else None,
                "n_tokens_candidate": parted.n_candidate if parted and is_read else None,
                "text_position": parted.text_position if parted else None,
                "buckets": buckets,
            },
        )
        return AlikePairs(flip, repeats)

    def _known(self, side: Side, case: int, repeat: int, response: ResponseFacts | None) -> KnownResponse:
        bucket = side.known.get(int(side.buckets[case, repeat]))
        return make_response(
            side.settings,
            UNKNOWN_SERVING if bucket is None else bucket.served,
            response,
            score=_known_score(float(side.scores[case, repeat])),
            scorer_digest=side.setup.scorer_digest,
        )


def _known_score(score: float) -> float | None:
    return None if math.isnan(score) else score
