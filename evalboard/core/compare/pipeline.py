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
from evalboard.contract.treatments import MODEL_TREATMENT
from evalboard.core.compare.cause import CAUSE_CODES, CAUSES
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
from evalboard.core.compare.prompts import PromptsJudged
from evalboard.core.compare.scores import (
    Codes,
    ScoreNoise,
    count_parts,
    find_case_parts,
    find_noise_share,
    judge_outcomes,
)
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
    """Read the traces, vocabularies and noise of both runs.

    measure_noise: called at most once.
    """

    traces: Traces
    words: WordsById
    measure_noise: Callable[[], PairNoise]


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """The result of comparing two sides.

    summary: as `comparison` makes it, with "sides", "outcomes" and "parts" (counts), "noise_share", "computation",
    "sample" and "backends" added. cases: by outcome, as `judge_outcomes` returns them. flips: in the groups' order.
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
    treatment: str = MODEL_TREATMENT
    prompts: PromptsJudged | None = None

    @cached_property
    def matched(self) -> MatchedRuns:
        return match_sides(self.baseline, self.candidate)

    @cached_property
    def groups(self) -> Groups:
        """The pairs that must be looked at, each different one once."""
        if self.prompts is not None:
            return find_groups(self.baseline, self.candidate, self.matched, are_texts_all=True)
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

    @cached_property
    def outcomes(self) -> Json:
        """What `judge_outcomes` says of all repeats."""
        return judge_outcomes(self.baseline, self.candidate)

    @property
    def case_parts(self) -> Codes:
        """uint8[n_cases]: the place in CASE_PARTS of each case."""
        return find_case_parts(self.baseline, self.candidate, self.matched, self.outcomes)

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
        is_prompt, prompts = self.prompts is not None, None if self.prompts is None else self.prompts.summary
        blocks = find_blocks(
            ours.setup, theirs.setup, self.treatment, prompts=prompts, n_shared=len(ours.case_indexes), is_verdict=False
        )
        outcomes = self.outcomes
        # What is shown for all is the noise between the buckets that served most of either side.
        mains = (side.bucket_ids[0] if side.bucket_ids else None for side in (ours, theirs))
        summary = {
            "version": COMPARISON_VERSION,
            "treatment": self.treatment,
            "prompts": prompts,
            "noise": describe_noise(self.noise.between(*mains)) if len(self.groups) and not is_prompt else None,
            "moved": [asdict(moved) for moved in find_moved_setup(ours.setup, theirs.setup)],
            "blocks": [{"code": block.code, "facts": dict(block.facts)} for block in blocks],
            "comparable": allows_comparing(blocks),
            "sides": {
                "baseline": _describe(ours, is_traced=not is_prompt),
                "candidate": _describe(theirs, is_traced=not is_prompt),
            },
            "outcomes": outcomes["counts"],
            "parts": count_parts(self.case_parts, ours, theirs),
            "noise_share": find_noise_share(ours, theirs, self.matched, do_agree=self._do_agree),
        }
        return ComparisonReport(summary, outcomes)

    def count(self) -> Json:
        """Return the counts and the score that digests give, for a summary that is not complete yet."""
        return count_by_digest(self.matched, self.groups.is_unread)

    def judge(self, part: slice) -> Iterator[AlikePairs]:
        """Yield how and why the pairs of some groups diverge, in their order.

        All reads are done when this returns.
        """
        if not len(self.groups):
            return iter(())
        sides, reads = (self.baseline, self.candidate), self.reads
        changed = None if self.prompts is None else self.prompts.has_changed
        return judge_groups(sides, self.groups, part, self.noise, reads.traces, reads.words, prompts=changed)

    def complete(self, begun: Json, find_flips: FindFlips) -> Json:
        """Return the whole summary.

        begun: from `begin`. find_flips: returns the judged pairs of some groups, in their order.
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
        differs = (table[:, 0] != CAUSE_CODES["identical"]) | (table[:, 4] == NO_POSITION)
        members, group_at, table = members[differs], group_at[differs], table[differs]
        differing = DifferingPairs(groups.pair_indexes[members], *table.T)
        sides, (is_read, is_traced) = begun["sides"], self._has_logprobs()
        summary = complete_summary(
            begun,
            self.matched,
            differing,
            is_read=is_read,
            is_traced=is_traced,
            words=(self._spell(sides["baseline"]["vocabulary"]), self._spell(sides["candidate"]["vocabulary"])),
            case_indexes=ours.case_indexes,
            noise_of=ScoreNoise(ours, theirs, do_agree=self._do_agree).measure_cases,
        )
        is_flipped = differing.flips != NO_POSITION
        n_hidden = int(np.count_nonzero(differing.causes == CAUSE_CODES["prompt_mismatch"]))
        n_hidden += int(np.count_nonzero(self.matched.has_other_text & ~is_traced))
        return {
            **summary,
            "unseen": find_unseen(
                ours,
                theirs,
                n_traced=int(np.count_nonzero(is_traced)),
                n_hidden=n_hidden,
                differs=len(differing.pairs) > 0,
                is_scored=self.matched.is_scored,
                is_noise_zero=begun["noise"] is not None and begun["noise"]["sd"] == 0,
            ),
            "computation": None
            if self.prompts is not None
            else self.judge_computation()
            | {"n_unexplained": count_unexplained(self.matched.pairing, differing, is_read)},
            "sample": self._sample(scored[group_at[is_flipped]], members[is_flipped], find_flips),
            "backends": self._backends(members),
        }

    def judge_computation(self) -> Json:
        """Return the `computation` of a summary: whether the logprobs of both sides agree."""
        reads = self.reads
        return judge_computation(
            self.baseline, self.candidate, reads.traces, reads.words, is_one_vocabulary=self.is_one_vocabulary
        )

    def _has_logprobs(self) -> tuple[Bools, Bools]:
        """Return bool[m] twice: pairs whose baseline response has a trace, and pairs where both have one.

        If nothing differs, the candidate has a trace where the baseline has one. Our own engines always write one.
        Where prompts are judged, no trace is compared.
        """
        if self.prompts is not None:
            nothing: Bools = np.zeros(len(self.matched.pairing), np.bool_)
            return nothing, nothing
        pairs = self.matched.pairing
        has_trace, has_trace_too = (
            side.responses.find_traced(side.is_there) if side.is_reported else side.is_there
            for side in (self.baseline, self.candidate)
        )
        is_read: Bools = pairs.take_baseline(has_trace)
        return is_read, is_read & pairs.take_candidate(has_trace_too)

    def _do_agree(self, side: Side) -> bool:
        return do_repeats_agree(side, self.reads.traces, self.reads.words)

    def _spell(self, vocabulary_id: int | None) -> TokenBytes:
        def token_bytes(token: int) -> bytes:
            known = None if vocabulary_id is None else self.reads.words.read(vocabulary_id).token_bytes(token)
            return f"⟨token {token}⟩".encode() if known is None else known

        return token_bytes

    def _sample(self, groups: Indexes, members: Indexes, find_flips: FindFlips) -> list[Json]:
        """Return an evenly spaced sample of the flips.

        groups, members: of all flipped pairs, in the order of the pairing.
        """
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


def _describe(side: Side, *, is_traced: bool) -> Json:
    """Return a side's repeats, buckets, vocabulary and judging scorer.

    is_traced: tokens are compared.
    """
    return {
        "repeats": list(side.repeats),
        "buckets": [list(served) for served in side.shares],
        "vocabulary": side.responses.find_vocabulary() if is_traced else None,
        "scorer": side.setup.scorer_digest,
        **({"judged_again": again.scorer_digest} if (again := side.setup.judged_again) else {}),
    }


def _tabulate(flips: Iterable[Flip], n: int) -> NDArray[np.int64]:
    """Return int64[n, 9]: the columns of DifferingPairs but the first."""
    table = np.full((n, 9), NO_POSITION, np.int64)
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
    return [CAUSE_CODES[flip.cause], look, CAUSE_CODES[flip.numeric or flip.cause], _KINDS[flip.consequence], *numbers]


BY_LOGPROBS = ("leak", "silent_change", "seed_ignored", "sampler_fault", "drift_only", "near_tie", "larger_shift")


def find_unseen(
    ours: Side, theirs: Side, *, n_traced: int, n_hidden: int, differs: bool, is_scored: bool, is_noise_zero: bool
) -> list[str]:
    """Return the causes that no pair could have shown, in the order of CAUSES.

    n_traced: pairs with logprobs on both sides. n_hidden: pairs whose logprobs say nothing of why they differ. differs:
    some pair does. is_noise_zero: one bucket gives the same bits each time.
    """
    sides = ours, theirs
    unseen = set(BY_LOGPROBS if not n_traced or n_hidden else ())
    unseen |= set() if is_scored else {"scorer"}
    if differs:
        unseen |= set(_find_unknown(sides))
        unseen |= set() if is_noise_zero else {"silent_change"}
    temperatures = [side.settings.temperature for side in sides]
    if not any(side.settings.temperature == 0 and not side.settings.is_adjusted for side in sides):
        unseen.add("sampler_fault")
    if any(temperatures):
        unseen.add("near_tie")
    if not all(temperatures) or ours.bucket_ids != theirs.bucket_ids:
        unseen.add("seed_ignored")
    return [cause for cause in CAUSES if cause in unseen]


def _find_unknown(sides: tuple[Side, Side]) -> Iterator[str]:
    """Yield the causes whose own facts are not known of both sides."""

    def is_known(*names: str) -> bool:
        served = [[side.known[bucket].served for bucket in side.bucket_ids] for side in sides]
        return any(all(each and all(getattr(one, name) for one in each) for each in served) for name in names)

    if not is_known("weights_digest", "model_revision"):
        yield "model_changed"
    if not is_known("weights_digest", "model_name"):
        yield "model_name_changed"
    if not is_known("fingerprint"):
        yield "backend_changed"
    if any(side.settings.temperature is None for side in sides):
        yield "sampling_changed"
    if any(side.setup.unknown_prompts for side in sides):
        yield "prompt_mismatch"
