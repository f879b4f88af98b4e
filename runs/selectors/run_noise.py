"""How much a run's score moves with nothing changed, bucket by bucket, out of its facts."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evalboard.core import columns, fragility, live_answers, noise, policy
from evalboard.core.policy import PolicySettings
from runs.models import Bucket, Run
from runs.pair_facts import draws_of
from runs.selectors.run import Noise, Resolution
from runs.selectors.run_facts import RepeatFacts, RunFacts


def noise_of(facts: RunFacts, bucket: Bucket, *, is_scored: bool) -> Noise:
    """Over the repeats that are whole, and of each the draws that this bucket served; scores elsewhere do not count.

    `is_scored`: whether the bucket has a range; where it has none, nothing is said of where its score lies.
    """
    repeats = [repeat for repeat in facts.repeats if _is_whole(facts, repeat)]
    if facts.run.is_one_draw:
        repeats = repeats[:1]  # the others are the same draw once more
    whole, served = _drawn(repeats, bucket)
    n_likely = _n_likely_to_flip(facts, bucket)
    if not whole:
        return Noise(n_likely_to_flip=n_likely)
    scores = np.column_stack([_scores(facts, repeat) for repeat in whole])
    is_ours = np.asarray(served.any(axis=1))
    matrix = np.where(served, scores, np.nan)[is_ours]
    reach = noise.reach_interval(matrix, _groups(facts, is_ours)) if is_scored else None
    if len(whole) < 2:
        level = noise.LEVEL if reach else None
        return Noise(n_repeats=len(whole), reach=reach, level=level, n_likely_to_flip=n_likely)
    sd, chance = noise.sd_points(matrix), noise.overdispersion(matrix)
    always = served.all(axis=1)
    texts = np.stack([repeat.texts[always] for repeat in whole if repeat.texts is not None], axis=1)
    return Noise(
        n_repeats=len(whole),
        disagreement_rate=noise.disagreement_rate(matrix),
        sd_points=sd,
        n_unstable=noise.n_unstable(matrix),
        expected_range_points=None if sd is None else noise.expected_range_points(sd),
        range5_points=noise.range5_points(matrix) if is_scored else None,
        interval=noise.measurement_interval(matrix) if is_scored else None,
        reach=reach,
        level=noise.LEVEL if is_scored else None,
        overdispersion=chance,
        is_overdispersed=chance is not None and chance < noise.OVERDISPERSED,
        texts_alike=noise.agreement(texts),
        scores_alike=noise.agreement(scores[always]),
        resolution=_resolution(facts.run, matrix),
        n_likely_to_flip=n_likely,
    )


def _is_whole(facts: RunFacts, repeat: RepeatFacts) -> bool:
    score = facts.own_scores.get(repeat.index)
    return score is not None and score.n_missing == 0 and repeat.case_buckets is not None


def _drawn(whole: Sequence[RepeatFacts], bucket: Bucket) -> tuple[list[RepeatFacts], NDArray[np.bool_]]:
    """The repeats of draws among these, and of which cases of each the bucket gave a draw: bool[n_cases, k]."""
    if not whole:
        return [], np.zeros((0, 0), np.bool_)
    mine = np.column_stack([repeat.case_buckets == bucket.pk for repeat in whole])
    left_out = np.column_stack([live_answers.is_left_out(repeat.marks) for repeat in whole if repeat.marks is not None])
    kept = live_answers.is_repeat(left_out, mine)
    return [whole[at] for at in np.flatnonzero(kept).tolist()], (mine & ~left_out)[:, kept]


def _scores(facts: RunFacts, repeat: RepeatFacts) -> NDArray[np.float64]:
    return columns.unpack_scores(bytes(facts.own_scores[repeat.index].scores))


def _groups(facts: RunFacts, is_ours: NDArray[np.bool_]) -> list[str]:
    if not facts.groups:
        return []
    return [facts.groups.get(index, "") for index in np.flatnonzero(is_ours).tolist()]


def _n_likely_to_flip(facts: RunFacts, bucket: Bucket) -> int | None:
    """Of the cases that the bucket served in the repeat whose margins were read; None where none of them is known."""
    for repeat in facts.repeats:
        if repeat.flip_chances is not None and repeat.case_buckets is not None:
            chances = repeat.flip_chances[repeat.case_buckets == bucket.pk]
            is_known = not np.isnan(chances).all()
            return int(np.count_nonzero(fragility.is_likely(chances))) if is_known else None
    return None


def _resolution(run: Run, matrix: NDArray[np.float64]) -> Resolution | None:
    """At the last look that the repeats have reached, or the first of all, under the policy of the suite."""
    found = policy_of(run)
    repeats = max((look for look in found.looks if look <= matrix.shape[1]), default=found.looks[0])
    points = noise.resolution_points(matrix, repeats=repeats, alpha=found.alpha(repeats))
    elsewhere = noise.resolution_elsewhere_points(matrix, repeats=repeats)
    if points is None or elsewhere is None:
        return None
    return Resolution(repeats, points, elsewhere, noise.ASSUMED_CHURN)


def policy_of(run: Run) -> PolicySettings:
    """The suite's own policy, else the default one."""
    own = run.suite_version.suite.policy
    default = policy.default_policy(is_sampled=draws_of(run).is_sampled)
    return policy.parse(policy.DEFAULT_POLICIES[default]["settings"] if own is None else own.settings)
