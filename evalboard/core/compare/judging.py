"""Find how and why pairs diverge, a group of alike pairs at a time, in bounded memory."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from evalboard.contract.compare import Flip
from evalboard.core.compare.cause import find_cause
from evalboard.core.compare.comparison import rank_consequence
from evalboard.core.compare.divergence import Divergence, parted_columns
from evalboard.core.compare.groups import Groups
from evalboard.core.compare.known_pair import (
    UNKNOWN_SERVING,
    KnownResponse,
    Pair,
    ResponseFacts,
    make_response,
)
from evalboard.core.compare.pair_noise import PairNoise
from evalboard.core.compare.sides import Bools, Side, Traces
from evalboard.core.compare.traced_text import PairedTexts, WordsById, find_partings


class AlikePairs(NamedTuple):
    """Pairs of a case that differ only in their repeats, (baseline, candidate). `flip`: the first."""

    flip: Flip
    repeats: list[tuple[int, int]]


def judge_groups(
    sides: tuple[Side, Side],
    groups: Groups,
    part: slice,
    noise: PairNoise,
    traces: Traces,
    words: WordsById,
    *,
    prompts: Bools | None = None,
) -> Iterator[AlikePairs]:
    """Judge some groups in order: read all of them first, then yield one by one for storing.

    prompts: by case, whether the prompt is another one on the other side; only texts are compared then.
    """
    firsts = groups.firsts(part)
    cases, is_texted = groups.cases[firsts], groups.is_texted[firsts]
    repeats = groups.baseline_repeats[firsts], groups.candidate_repeats[firsts]
    ours, theirs = (side.responses.read(cases, own, is_texted) for side, own in zip(sides, repeats, strict=True))
    if prompts is not None:
        ours, theirs = (
            [each and replace(each, place=None, vocabulary_id=None) for each in row] for row in (ours, theirs)
        )
    traced = np.flatnonzero(groups.is_traced[firsts]).tolist()
    pairs = [_pair(ours[at], theirs[at], is_same=not groups.has_other_trace[firsts[at]]) for at in traced]
    partings: list[Divergence | None] = [None] * len(firsts)
    are_logged = sides[0].is_reported, sides[1].is_reported
    for at, parted in zip(
        traced, find_partings(pairs, words, traces.read_pair_columns, are_logged=are_logged), strict=True
    ):
        partings[at] = parted
    rows = zip(range(part.start, part.stop), ours, theirs, partings, strict=True)
    return (_judge(sides, groups, group, noise, both, parted, prompts) for group, *both, parted in rows)


def _pair(one: ResponseFacts | None, other: ResponseFacts | None, *, is_same: bool) -> PairedTexts:
    texts, places = (one.text if one else "", other.text if other else ""), (one and one.place, other and other.place)
    ids = (one.vocabulary_id if one else None, other.vocabulary_id if other else None)
    return PairedTexts(texts, places, ids, is_same)


def _judge(
    sides: tuple[Side, Side],
    groups: Groups,
    group: int,
    noise: PairNoise,
    both: Sequence[ResponseFacts | None],
    parted: Divergence | None,
    prompts: Bools | None,
) -> AlikePairs:
    """Judge the first pair of a group. Nothing is read for it."""
    members = groups.members_of(group)
    first, case = int(members[0]), int(groups.cases[members[0]])
    places = groups.baseline_repeats[members].tolist(), groups.candidate_repeats[members].tolist()
    ours, theirs = (
        _KnownHere(side, int(side.buckets[case, at[0]]), float(side.scores[case, at[0]]))
        for side, at in zip(sides, places, strict=True)
    )
    has_other_prompt = None if prompts is None else bool(prompts[case])
    pair = Pair(ours.response(both[0]), theirs.response(both[1]), has_other_prompt)
    cause = find_cause(pair, parted, noise.between(ours.bucket, theirs.bucket))
    move = (theirs.raw_score - ours.raw_score if groups.is_scored else 0.0) if groups.pair_indexes[first] >= 0 else None
    kind = parted.kind if parted is not None else "identical"
    has_tokens = parted is not None and parted.text_position is None
    repeats = [(sides[0].repeats[at], sides[1].repeats[at_too]) for at, at_too in zip(*places, strict=True)]
    flip = Flip(
        case_index=int(sides[0].case_indexes[case]),
        repeat_baseline=repeats[0][0],
        repeat_candidate=repeats[0][1],
        cause=cause.code,
        numeric=cause.numeric or "",
        consequence=rank_consequence("text_only" if kind == "identical" and groups.is_texted[first] else kind, move),
        score_baseline=ours.score,
        score_candidate=theirs.score,
        **parted_columns(parted),
        evidence=cause.evidence
        | {
            "n_tokens_baseline": parted.n_baseline if parted and has_tokens else None,
            "n_tokens_candidate": parted.n_candidate if parted and has_tokens else None,
            "text_position": parted.text_position if parted else None,
            "buckets": [ours.bucket, theirs.bucket],
        },
    )
    return AlikePairs(flip, repeats)


class _KnownHere(NamedTuple):
    """The column facts of one response."""

    side: Side
    bucket: int
    raw_score: float

    @property
    def score(self) -> float | None:
        return None if math.isnan(self.raw_score) else self.raw_score

    def response(self, facts: ResponseFacts | None) -> KnownResponse:
        known, digest = self.side.known.get(self.bucket), self.side.setup.scorer_digest
        served = UNKNOWN_SERVING if known is None else known.served
        return make_response(self.side.settings, served, facts, score=self.score, scorer_digest=digest)
