"""A comparison from two sides to its report, in stages.

`run` calls all of them. Where there is much to read, the caller takes them one by one: `begin`, `judge` part by part,
each stored before the next, and `complete`. Both give the same report.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.compare import Flip
from evalboard.core.compare.cause import CAUSE_CODES
from evalboard.core.compare.comparability import allows_comparing, find_blocks, find_moved_setup
from evalboard.core.compare.comparison import (
    COMPARISON_VERSION,
    NO_POSITION,
    DifferingPairs,
    MatchedRuns,
    TokenBytes,
    complete_summary,
    count_by_digest,
    count_unexplained,
    is_larger,
    kind_by_consequence,
)
from evalboard.core.compare.computation import do_repeats_agree, judge_computation
from evalboard.core.compare.groups import Groups, find_groups, match_sides
from evalboard.core.compare.judging import AlikePairs, judge_groups
from evalboard.core.compare.ledger import find_look
from evalboard.core.compare.pair_noise import PairNoise
from evalboard.core.compare.pairing import PAIR_KINDS
from evalboard.core.compare.scores import ScoreNoise, find_noise_share, judge_outcomes
from evalboard.core.compare.sides import Bools, Indexes, Side, Traces
from evalboard.core.compare.traced_text import WordsById
from evalboard.core.stats import LogitNoise

POINTS_KEPT = 400  # flips that a chart shows
# What of a flip's evidence a summary rests on.
SUMMED_FACTS = ("ratio", "threshold", "movement", "also_moved", "compared")
AT_ONCE = 5000  # rows as Python's objects

Json = dict[str, Any]
FindFlips = Callable[[Indexes], Iterable[Flip]]


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """How traces, vocabularies and the noise of both runs are read. measure_noise: called once, when it is needed."""

    traces: Traces
    words: WordsById
    measure_noise: Callable[[], PairNoise]


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """What two sides come to. summary: as `comparison` has it, with "sides", "outcomes" (the counts), "noise_share",
    "computation", "sample" and "backends" beside it. cases: by outcome, as `judge_outcomes` has them. flips: in the
    order of the groups.
    """

    summary: Json
    cases: Json
    flips: list[AlikePairs] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Comparing:
    """Two sides, and what is found of them without reading anything but their columns."""

    baseline: Side
    candidate: Side
    reads: Reads

    @cached_property
    def matched(self) -> MatchedRuns:
        return match_sides(self.baseline, self.candidate)

    @cached_property
    def groups(self) -> Groups:
        """The pairs that must be looked at, each different one once."""
        return find_groups(self.baseline, self.candidate, self.matched, is_one_vocabulary=self.is_one_vocabulary)

    @cached_property
    def is_one_vocabulary(self) -> bool:
        """Whether an id is one token on both sides; logs number them in the order in which they meet tokens."""
        ours, theirs = self.baseline, self.candidate
        both = (side.responses.find_vocabulary() for side in (ours, theirs))
        return self.reads.words.beside(*both, are_logged=ours.is_reported and theirs.is_reported) is None

    @cached_property
    def noise(self) -> PairNoise:
        """What the pairs are judged by."""
        return self.reads.measure_noise()

    @property
    def differing_cases(self) -> Indexes:
        """The suite's indexes of the cases that have a pair in a group."""
        indexes: Indexes = self.baseline.case_indexes[np.unique(self.groups.cases)]
        return indexes

    def run(self) -> ComparisonReport:
        """Take all stages at once."""
        begun = self.begin()
        flips = list(self.judge(slice(0, len(self.groups))))
        summary = self.complete(begun.summary, lambda groups: (flips[group].flip for group in groups.tolist()))
        return ComparisonReport(summary, begun.cases, flips)

    def begin(self) -> ComparisonReport:
        """Return what needs no response: what moved, what forbids comparing, the cases' outcomes."""
        ours, theirs = self.baseline, self.candidate
        blocks = find_blocks(ours.setup, theirs.setup)
        outcomes = judge_outcomes(ours, theirs)
        # What is shown for all is the noise between the buckets that served most of either side.
        mains = (side.bucket_ids[0] if side.bucket_ids else None for side in (ours, theirs))
        summary = {
            "version": COMPARISON_VERSION,
            "noise": describe_noise(self.noise.between(*mains)) if len(self.groups) else None,
            "moved": [asdict(moved) for moved in find_moved_setup(ours.setup, theirs.setup)],
            "blocks": [{"code": block.code, "facts": dict(block.facts)} for block in blocks],
            "comparable": allows_comparing(blocks),
            "sides": {"baseline": _describe(ours), "candidate": _describe(theirs)},
            "outcomes": outcomes["counts"],
            "noise_share": find_noise_share(ours, theirs, self.matched, do_agree=self._do_agree),
        }
        return ComparisonReport(summary, outcomes)

    def count(self) -> Json:
        """Return the counts and the score that digests give, for a summary that waits for the rest."""
        return count_by_digest(self.matched, self.groups.is_unread)

    def judge(self, part: slice) -> Iterator[AlikePairs]:
        """Say how and why the pairs of some groups parted, in their order. Nothing is read once this has returned."""
        if not len(self.groups):
            return iter(())
        sides, reads = (self.baseline, self.candidate), self.reads
        return judge_groups(sides, self.groups, part, self.noise, reads.traces, reads.words)

    def complete(self, begun: Json, find_flips: FindFlips) -> Json:
        """Return the whole summary. begun: from `begin`. find_flips: returns what was judged of some groups, in their
        order.
        """
        groups, ours, theirs = self.groups, self.baseline, self.candidate
        # Pairs whose score is missing are not counted; the others of a group are as its first.
        is_scored = groups.pair_indexes[groups.firsts(slice(None))] >= 0
        scored, sizes = np.flatnonzero(is_scored), np.diff(groups.starts)
        members = groups.members[np.repeat(is_scored, sizes)]
        in_order = np.argsort(groups.pair_indexes[members])
        members, group_at = members[in_order], np.repeat(np.arange(len(scored)), sizes[scored])[in_order]
        table = _tabulate(find_flips(scored), len(scored))[group_at]
        # The digests of decimals differ where the traces are equal to a step.
        differs = (table[:, 0] != CAUSE_CODES["identical"]) | (table[:, 3] == NO_POSITION)
        members, group_at, table = members[differs], group_at[differs], table[differs]
        differing = DifferingPairs(groups.pair_indexes[members], *table.T)
        sides, is_read = begun["sides"], self._has_logprobs()
        summary = complete_summary(
            begun,
            self.matched,
            differing,
            is_read=is_read,
            words=(self._spell(sides["baseline"]["vocabulary"]), self._spell(sides["candidate"]["vocabulary"])),
            case_indexes=ours.case_indexes,
            noise_of=ScoreNoise(ours, theirs, do_agree=self._do_agree).measure_cases,
        )
        is_flipped = differing.flips != NO_POSITION
        return {
            **summary,
            "computation": self.judge_computation()
            | {"n_unexplained": count_unexplained(self.matched.pairing, differing, is_read)},
            "sample": self._sample(scored[group_at[is_flipped]], members[is_flipped], find_flips),
            "backends": self._backends(members),
        }

    def judge_computation(self) -> Json:
        """Return whether both sides are one computation, as `computation` of a summary has it."""
        reads = self.reads
        return judge_computation(
            self.baseline, self.candidate, reads.traces, reads.words, is_one_vocabulary=self.is_one_vocabulary
        )

    def _has_logprobs(self) -> Bools:
        """Return bool[m], whether the baseline's response of a pair has a trace, and the candidate's where nothing
        differs.

        What an engine of ours decodes always has one.
        """
        side, pairs = self.baseline, self.matched.pairing
        has_trace = side.responses.find_traced(side.is_there) if side.is_reported else side.is_there
        logprobs: Bools = has_trace[pairs.cases, pairs.baseline_repeats]
        return logprobs

    def _do_agree(self, side: Side) -> bool:
        return do_repeats_agree(side, self.reads.traces, self.reads.words)

    def _spell(self, vocabulary_id: int | None) -> TokenBytes:
        def token_bytes(token: int) -> bytes:
            known = None if vocabulary_id is None else self.reads.words.read(vocabulary_id).token_bytes(token)
            return f"⟨token {token}⟩".encode() if known is None else known

        return token_bytes

    def _sample(self, groups: Indexes, members: Indexes, find_flips: FindFlips) -> list[Json]:
        """Return an even sample of the flips. groups, members: of all flipped pairs, in the order of the pairing."""
        step = max(-(-len(members) // POINTS_KEPT), 1)
        chosen, which = np.unique(groups[::step], return_inverse=True)
        flips = list(find_flips(chosen))
        at = members[::step]
        repeats = [
            [side.repeats[place] for place in places[at].tolist()]
            for side, places in (
                (self.baseline, self.groups.baseline_repeats),
                (self.candidate, self.groups.candidate_repeats),
            )
        ]
        return [flips[group].point(both) for group, *both in zip(which.tolist(), *repeats, strict=True)]

    def _backends(self, members: Indexes) -> list[list[int]]:
        groups = self.groups
        cases = groups.cases[members]
        ours = self.baseline.buckets[cases, groups.baseline_repeats[members]]
        theirs = self.candidate.buckets[cases, groups.candidate_repeats[members]]
        backends: list[list[int]] = np.unique(np.column_stack([ours, theirs]), axis=0).tolist()
        return backends


def run(baseline: Side, candidate: Side, reads: Reads) -> ComparisonReport:
    """Compare two sides, whole: the pure function behind every comparison."""
    return Comparing(baseline, candidate, reads).run()


def describe_noise(noise: LogitNoise) -> Json:
    """Return what a summary says of noise."""
    return {name: getattr(noise, name) for name in ("sd", "near", "ulp", "is_assumed", "dtype", "capped_from")}


def _describe(side: Side) -> Json:
    """Return what a page says of a side beside its run: repeats, buckets with shares, whose words its tokens are."""
    return {
        "repeats": list(side.repeats),
        "buckets": [list(served) for served in side.shares],
        "vocabulary": side.responses.find_vocabulary(),
    }


def _tabulate(flips: Iterable[Flip], n: int) -> NDArray[np.int64]:
    """Return int64[n, 8]: the columns of DifferingPairs but the first."""
    table = np.full((n, 8), NO_POSITION, np.int64)
    rows, n_read = iter(flips), 0
    while part := [_row(flip) for flip in islice(rows, AT_ONCE)]:
        table[n_read : n_read + len(part)] = part
        n_read += len(part)
    return table


_KINDS = {code: PAIR_KINDS.index(kind) for code in range(16) if (kind := kind_by_consequence(code)) is not None}


def _row(flip: Flip) -> list[int]:
    facts = flip.evidence
    is_alike = facts.get("compared") == "trace"
    known = (
        False if is_alike else is_larger(flip.cause, flip.numeric, facts.get("ratio"), facts.get("threshold")),
        flip.drift_onset,
        flip.flip_position,
        flip.token_baseline,
        flip.token_candidate,
    )
    look = find_look(flip.cause, flip.numeric, is_confounded=bool(facts.get("also_moved")))
    numbers = [NO_POSITION if value is None else value for value in known]
    return [CAUSE_CODES[flip.cause], look, _KINDS[flip.consequence], *numbers]
