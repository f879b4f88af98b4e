"""Read two runs of one suite before any rule applies: each side, the change, what is missing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evalboard.contract.release import CasesChanged, ReachInterval, TargetedRepeats
from evalboard.contract.run import Draws
from evalboard.core.compare import LOADED_BATCHES, is_steady_batch, read_side_draws
from evalboard.core.profile import have_same_seeds
from evalboard.core.release import reach, settle
from evalboard.core.release.gate import (
    GateQuestion,
    MeasuredSide,
    Missing,
    Scores,
    TargetedScores,
)
from evalboard.core.release.sides import UNKNOWN_SIDE, choose_common_look, has_score, measure_side
from evalboard.core.release.targeted import choose_entering, join_targeted, make_strata, moves_as_a_whole
from evalboard.core.scoring import MEAN, MetricSpec
from evalboard.core.stats import (
    COPIED,
    NO_DRAW_MARKS,
    Bools,
    DifferenceEstimate,
    LoadDifference,
    PairedNoise,
    SideDraws,
    Strata,
    count_draws,
    count_left_out,
    difference_points,
    estimate,
    estimate_difference,
    estimate_early,
    find_case_outcomes,
    find_load_difference,
    is_left_out,
    is_pass_fail,
    is_range5_over,
    jackknife,
    make_estimate,
    make_mark,
    measure_noise,
    paired_resolution_points,
    read_draws,
    select_whole_cases,
    unseen,
)
from evalboard.core.suite import TARGETED_ALPHA, PolicySettings

LEAN_ALPHA = 0.05  # of an interval before the first look, which decides nothing
GREEDY, GRADED = "greedy", "graded"  # why a metric of draws cannot be taken
SAME_SCORE = 1e-9  # sums in another order differ by less
MAX_LISTED = 1000  # changed cases kept by name; the counts are of all


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change between the two sides over the cases judged, in points; [low, high] at 1 − 2 alpha.

    by_strata: the noise of the whole repeats, that of the noisiest cases apart; None where nothing foretells them.
    n_groups: of the cases; None where no two share a group. early: before the first look, the change with the noise
    that earlier runs and margins foretell; None where they do not. n_changed: cases with another score, however little.
    """

    estimate: DifferenceEstimate
    measured: PairedNoise
    early: DifferenceEstimate | None
    by_strata: PairedNoise | None
    alpha: float
    low: float
    high: float
    reach: ReachInterval | None
    n_groups: int | None
    resolution_points: float
    n_changed: int
    cases: CasesChanged

    @property
    def level(self) -> float:
        return 1 - 2 * self.alpha


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedSide:
    """The copies among the answers of one side. n_draws: harmonic mean of samples per case.

    n_cases: cases with a copy, of n_total.
    is_one_answer: all repeats are one answer given again. is_checked: there is an independent run of the side.
    does_first_differ: the later repeats are copies of each other, and the first is none of them.
    """

    side: str
    n_repeats: int
    n_draws: float
    n_cases: int
    n_total: int
    is_one_answer: bool
    is_checked: bool
    does_first_differ: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The answers that are no samples (core.stats.live_answers): the number by mark, for each side.

    n_cases: cases that have no draw on one side, for that reason. is_look_lost: without these answers a side has fewer
    samples than repeats, and too few for a look. repeats_needed: the first look, if even the repeats are too few for
    it; else 0.
    """

    baseline: Mapping[str, int]
    candidate: Mapping[str, int]
    n_cases: int
    is_look_lost: bool
    repeats_needed: int

    @property
    def n(self) -> int:
        return sum(self.baseline.values()) + sum(self.candidate.values())

    @property
    def code(self) -> str:
        """Return why most of them are none: a name of core.stats.NO_DRAW_MARKS."""
        return max(NO_DRAW_MARKS, key=lambda name: self.baseline.get(name, 0) + self.candidate.get(name, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The facts of a gate. look: the repeats per side that count, None before the first checkpoint.

    n_cases_missing: cases without a draw that has a score on one side. left_out: answers that are no draws. copies: of
    each side that has some. assumed: of the question. are_reported: a log or an external server answered on a side.
    change: None where no case has a score on both sides.
    noisy: the sides whose range is over the policy's guard, which is not asked of sampled runs. is_steady: neither
    side's batching moves a bit. load: how the loads of both sides differ; None where they do not.
    is_in_turn: both sides took turns already. wanders: runs move as a whole under a load of the hour that sides which
    took no turns did not share. draws_*: what the
    repeats that enter are; of one draw the first answer of each case enters. share_seeds: repeat r of one side has the
    seeds of repeat r of the other. targeted: the repeats of the noisiest cases that enter beside those of the look.
    no_metric: why the policy's metric cannot be taken: GREEDY or GRADED, "" where it can. uncertified: of the question.
    """

    policy: PolicySettings
    n_cases: int
    n_cases_missing: int
    look: int | None
    k_baseline: int
    k_candidate: int
    baseline: MeasuredSide
    candidate: MeasuredSide
    missing: Missing
    left_out: LeftOut
    copies: tuple[CopiedSide, ...]
    assumed: tuple[str, ...]
    are_reported: bool
    change: Change | None
    noisy: tuple[str, ...]
    is_steady: bool
    load: LoadDifference | None
    is_in_turn: bool
    wanders: bool
    draws_baseline: Draws
    draws_candidate: Draws
    share_seeds: bool
    targeted: TargetedScores | None
    no_metric: str
    uncertified: Sequence[Mapping[str, Any]]

    @property
    def is_sampled(self) -> bool:
        return self.draws_baseline.may_sample or self.draws_candidate.may_sample

    @property
    def one_draw(self) -> tuple[str, ...]:
        """Return the sides whose repeats are one draw, by name."""
        sides = (("baseline", self.draws_baseline), ("candidate", self.draws_candidate))
        return tuple(name for name, draws in sides if draws.is_one)

    @property
    def is_targeted_look(self) -> bool:
        """Tell whether targeted repeats have taken the place of the look after this one."""
        return self.targeted is not None and settle.choose_look(self.policy, self.targeted.n_before) == self.look

    @property
    def targeted_repeats(self) -> TargetedRepeats | None:
        if self.targeted is None:
            return None
        n_repeats, n_cases = self.targeted.baseline.shape[1], int(np.count_nonzero(self.targeted.is_chosen))
        return TargetedRepeats(repeats=n_repeats, n_cases=n_cases)

    @property
    def n_cases_judged(self) -> int:
        return self.n_cases - self.n_cases_missing

    @property
    def k(self) -> int:
        return min(self.k_baseline, self.k_candidate)


def find_evidence(question: GateQuestion, policy: PolicySettings, *, is_comparable: bool) -> Evidence:
    """Read both sides. A side of several buckets has no score; a block prevents reading a change."""
    side, drawn = read_side_draws(question.baseline, question.marks_baseline, question.draws_baseline)
    side_too, drawn_too = read_side_draws(question.candidate, question.marks_candidate, question.draws_candidate)
    both = (side, side_too)
    is_sampled = drawn.may_sample or drawn_too.may_sample
    if is_sampled:
        policy = policy.without_guard()
    look, targeted = choose_entering(choose_common_look(policy, both), question.targeted, policy, is_sampled=is_sampled)
    entering = tuple(side.first(look) for side in both)
    ours, theirs = (side.scores for side in entering)
    if targeted is not None and moves_as_a_whole(ours, theirs):
        targeted = None  # it is not single cases that are noisy
    drawn, drawn_too = (replace(each, repeats=each.repeats[:look]) for each in (drawn, drawn_too))
    share_seeds = have_same_seeds(drawn, drawn_too)
    no_metric = _no_metric(policy, is_sampled, ours, theirs)
    metric = MEAN if no_metric else policy.metric
    has_both = has_score(jackknife(ours, metric)) & has_score(jackknife(theirs, metric))
    n_judged = int(np.count_nonzero(has_both))
    change = None
    is_steady = all(
        is_steady_batch(served.batch_class, are_batches_equal=not is_sampled)
        for setup in (question.setup_baseline, question.setup_candidate)
        for served in setup.served
    )
    joined = entering if targeted is None else join_targeted(entering, targeted)
    if is_comparable and n_judged and not no_metric:
        same_bits = is_steady and not is_sampled
        change = _change(
            question, has_both, joined, policy, look, targeted, share_seeds=share_seeds, is_steady=same_bits
        )
    sides = []
    for scores, setup in ((ours, question.setup_baseline), (theirs, question.setup_candidate)):
        cases = has_both if change is not None else has_score(scores)
        sides.append(UNKNOWN_SIDE if len(setup.served) > 1 else measure_side(scores[cases], metric))
    return Evidence(
        policy=policy,
        n_cases=len(question.case_ids),
        n_cases_missing=len(question.case_ids) - n_judged,
        look=look,
        k_baseline=both[0].n_draws,
        k_candidate=both[1].n_draws,
        baseline=sides[0],
        candidate=sides[1],
        missing=_missing(
            joined,
            len(question.case_ids) - n_judged,
            change,
            metric,
            None if targeted is None else make_strata(targeted.is_chosen, np.ones_like(has_both), look),
            share_seeds=share_seeds,
        ),
        left_out=_left_out(question, entering, policy, look),
        copies=tuple(_copies(question)),
        assumed=tuple(question.assumed),
        are_reported=drawn.is_external or drawn_too.is_external,
        change=change,
        noisy=tuple(
            name
            for name, scores in (("baseline", ours), ("candidate", theirs))
            if change is not None
            and not is_sampled
            and is_range5_over(select_whole_cases(scores[has_both]), policy.guard_points)
        ),
        is_steady=is_steady,
        load=_load(question, look),
        is_in_turn=question.is_in_turn,
        wanders=_wanders(question, change, sides),
        draws_baseline=drawn,
        draws_candidate=drawn_too,
        share_seeds=share_seeds,
        targeted=targeted,
        no_metric=no_metric,
        uncertified=question.uncertified,
    )


def _no_metric(policy: PolicySettings, is_sampled: bool, *sides: Scores) -> str:
    if policy.metric.is_mean:
        return ""
    if not is_sampled:
        return GREEDY
    return "" if all(map(is_pass_fail, sides)) else GRADED


def _left_out(
    question: GateQuestion, entering: Sequence[SideDraws], policy: PolicySettings, look: int | None
) -> LeftOut:
    sides = ((question.baseline, question.marks_baseline), (question.candidate, question.marks_candidate))
    counts = [count_left_out(scores, marks) for scores, marks in sides]
    ours, theirs = (
        has_score(scores) & ~has_score(side.scores) for (scores, _), side in zip(sides, entering, strict=True)
    )
    with_all = [read_draws(scores) for scores, _ in sides]
    are_fewer = any(read_draws(*side).n_draws < whole.n_draws for side, whole in zip(sides, with_all, strict=True))
    has_repeats = choose_common_look(policy, with_all) is not None
    return LeftOut(
        baseline=counts[0],
        candidate=counts[1],
        n_cases=int(np.count_nonzero(ours | theirs)),
        is_look_lost=look is None and (are_fewer or has_repeats),
        repeats_needed=0 if has_repeats else policy.looks[0],
    )


def _copies(question: GateQuestion) -> Iterator[CopiedSide]:
    sides = (("baseline", question.marks_baseline), ("candidate", question.marks_candidate))
    for (side, marks), scores in zip(sides, (question.baseline, question.candidate), strict=True):
        is_copy = np.zeros(scores.shape, np.bool_) if marks is None else (marks & make_mark([COPIED])) != 0
        if (n_cases := int(np.count_nonzero(is_copy.any(axis=1)))) and marks is not None:
            yield CopiedSide(
                side=side,
                n_repeats=scores.shape[1],
                n_draws=count_draws(~np.isnan(scores) & ~is_left_out(marks)),
                n_cases=n_cases,
                n_total=len(scores),
                is_one_answer=side in question.one_answer,
                is_checked=side in question.independent,
                does_first_differ=side in question.first_differs,
            )


def _load(question: GateQuestion, look: int | None) -> LoadDifference | None:
    """Compare the loads of the repeats that enter, where the load can move a bit on both sides."""
    if not _may_move(question):
        return None
    ours, theirs = question.loads_baseline[:look], question.loads_candidate[:look]
    return find_load_difference(ours, theirs, counted=question.loads_counted)


def _may_move(question: GateQuestion) -> bool:
    """Tell whether the load of the hour can move a bit on both sides."""
    served = (*question.setup_baseline.served, *question.setup_candidate.served)
    return all(each.batch_class in LOADED_BATCHES for each in served)


def _wanders(question: GateQuestion, change: Change | None, sides: Sequence[MeasuredSide]) -> bool:
    if change is None or not question.are_apart or not _may_move(question):
        return False
    return change.estimate.method == "runs" or any(side.noise.is_overdispersed for side in sides)


def _change(
    question: GateQuestion,
    has_both: Bools,
    joined: Sequence[SideDraws],
    policy: PolicySettings,
    look: int | None,
    targeted: TargetedScores | None,
    *,
    share_seeds: bool,
    is_steady: bool,
) -> Change:
    """Measure the change over the cases with a score on both sides.

    Targeted repeats enter the difference and its interval; which cases moved is judged by the repeats of all cases.
    """
    every, every_too = (side.scores[has_both] for side in joined)
    ours, theirs = every[:, :look], every_too[:, :look]
    # For metrics over samples, use each sample's pseudo-value; all that follows treats it as a score.
    added, added_too = (jackknife(scores, policy.metric) for scores in (every, every_too))
    least = unseen(policy.metric)
    entered = None if targeted is None else make_strata(targeted.is_chosen, has_both, look)
    measured = measure_noise(added, added_too, share_seeds=share_seeds, unseen=least, strata=entered)
    foretold = None if targeted is not None else make_strata(question.noisiest, has_both, look)
    difference = make_estimate(difference_points(added, added_too), measured)
    early = None
    if look is None and not question.draws_baseline.may_sample and not question.draws_candidate.may_sample:
        early = estimate_early(difference.difference, measured, question.early_baseline, question.early_candidate)
    alpha = _alpha(policy, look, targeted)
    low, high = difference.interval(alpha)
    judged = np.flatnonzero(has_both).tolist()
    ids, groups = [question.case_ids[case] for case in judged], [question.groups[case] for case in judged]
    moves = estimate(every_too, policy.metric) - estimate(every, policy.metric)
    return Change(
        estimate=difference,
        measured=measured,
        early=early,
        by_strata=None if foretold is None else measure_noise(added, added_too, unseen=least, strata=foretold),
        alpha=alpha,
        low=low,
        high=high,
        reach=reach.find_reach(moves, groups, is_graded=not (is_pass_fail(every) and is_pass_fail(every_too))),
        n_groups=reach.count_groups(groups),
        resolution_points=paired_resolution_points(measured, alpha),
        n_changed=int(np.count_nonzero(np.abs(estimate(every_too, MEAN) - estimate(every, MEAN)) > SAME_SCORE)),
        cases=_changed(ids, ours, theirs, is_steady=is_steady),
    )


def _alpha(policy: PolicySettings, look: int | None, targeted: TargetedScores | None) -> float:
    if look is None:
        return LEAN_ALPHA
    is_targeted_look = targeted is not None and settle.choose_look(policy, targeted.n_before) == look
    return TARGETED_ALPHA if is_targeted_look else policy.alpha(look)


def _changed(ids: list[str], ours: Scores, theirs: Scores, *, is_steady: bool) -> CasesChanged:
    outcomes = find_case_outcomes(ours, theirs, is_steady=is_steady)
    counts = outcomes.counts
    fixed, broken = (sorted(ids[case] for case in cases.tolist()) for cases in (outcomes.fixed, outcomes.broken))
    return CasesChanged(
        n_fixed=counts.fixed,
        n_broken=counts.broken,
        n_unstable=counts.unstable,
        fixed=tuple(fixed[:MAX_LISTED]),
        broken=tuple(broken[:MAX_LISTED]),
        broken_by_chance=counts.broken_by_chance,
        fixed_by_chance=counts.fixed_by_chance,
        is_in_every_repeat=counts.is_in_every_repeat,
    )


def _missing(
    entering: Sequence[SideDraws],
    n_cases_missing: int,
    change: Change | None,
    metric: MetricSpec,
    strata: Strata | None,
    *,
    share_seeds: bool,
) -> Missing:
    """Return what is missing, and the interval's ends if all missing answers went one way, or the other.

    strata: of all cases, where some have repeats of their own.
    """
    ours, theirs = entering
    n_ours, n_theirs = (int(np.count_nonzero(side.is_missing)) for side in entering)
    low, high = None, None
    if change is not None and (n_ours or n_theirs):
        # A case whose answers are all left out stays out: nothing of it is missing.
        is_in = ~(ours.is_left_out.all(axis=1) | theirs.is_left_out.all(axis=1))
        # Never narrower than without them: each filled response counts as one more.
        worst, best = (
            estimate_difference(
                jackknife(_filled(ours, score)[is_in], metric),
                jackknife(_filled(theirs, 1 - score)[is_in], metric),
                share_seeds=share_seeds,
                unseen=unseen(metric),
                strata=strata and replace(strata, is_noisy=strata.is_noisy[is_in]),
            ).interval(change.alpha)
            for score in (1.0, 0.0)
        )
        low, high = min(worst[0], change.low), max(best[1], change.high)
    n_cases = len(ours.scores)
    share = n_cases_missing / n_cases if n_cases else 0.0
    return Missing(n_baseline=n_ours, n_candidate=n_theirs, share=share, low=low, high=high)


def _filled(side: SideDraws, score: float) -> Scores:
    return np.where(side.is_missing, score, side.scores)
