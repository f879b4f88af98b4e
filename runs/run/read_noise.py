"""How much a run's score moves with nothing changed, bucket by bucket, out of its columns."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from evalboard.contract.base import Note
from evalboard.contract.bucket import Metric, Noise, Resolution, VarianceSplit
from evalboard.core import scoring
from evalboard.core.compare import find_draws, is_steady_batch
from evalboard.core.stats import (
    ASSUMED_CHURN,
    CONFIDENCE_LEVEL,
    OVERDISPERSED_BELOW,
    EffectiveDraws,
    count_draws,
    count_unstable,
    disagreement_rate,
    expected_range_points,
    is_left_out,
    is_likely_flip,
    is_repeat_of_draws,
    measure_agreement,
    measure_metrics,
    measurement_interval,
    overdispersion,
    range5_points,
    reach_interval,
    resolution_elsewhere_points,
    resolution_points,
    sd_points,
    split_variance,
)
from evalboard.core.suite import DEFAULT_POLICIES, PolicySettings, default_policy, parse_policy
from evalboard.wording.run import describe_split, explain_no_interval, left_out_metric
from runs.models import BucketRecord, RepeatRecord, RunRecord
from runs.pairs import copies, draws_of
from runs.pairs.pair_facts import compared_settings
from runs.run.read_columns import RepeatColumns, RunColumns, read_scores

OTHERS_READ = 20  # runs of one seed that are looked through for one that was drawn alike


def noise_of(columns: RunColumns, bucket: BucketRecord, *, is_scored: bool, n_buckets: int) -> Noise:
    """Measure a bucket's noise over the complete repeats, from the samples that it gave.

    `is_scored`: whether the bucket has a range; where it has none, nothing is said of where its score lies. n_buckets:
    of the run.
    """
    whole, served, n_draws, does_first_differ = _drawn(columns, bucket)
    n_likely = _n_likely_to_flip(columns, bucket)
    if not whole:
        return Noise.partly_known(n_likely_to_flip=n_likely)
    scores = np.column_stack([repeat.scores for repeat in whole if repeat.scores is not None])
    is_ours = np.asarray(served.any(axis=1))
    matrix = np.where(served, scores, np.nan)[is_ours]
    reach = reach_interval(matrix, _groups(columns, is_ours)) if is_scored else None
    if len(whole) < 2:
        level = CONFIDENCE_LEVEL if reach else None
        known = {"n_repeats": len(whole), "n_draws": n_draws, "reach": reach, "level": level}
        return Noise.partly_known(**known, n_likely_to_flip=n_likely)
    sd, chance = sd_points(matrix), overdispersion(matrix)
    always = served.all(axis=1)
    same_seeds = _same_seeds(columns.run, bucket, whole, is_ours, n_buckets)
    texts = np.stack([repeat.texts[always] for repeat in whole if repeat.texts is not None], axis=1)
    return Noise(
        n_repeats=len(whole),
        n_draws=n_draws,
        does_first_differ=does_first_differ,
        disagreement_rate=disagreement_rate(matrix),
        sd_points=sd,
        n_unstable=count_unstable(matrix),
        expected_range_points=None if sd is None else expected_range_points(sd),
        range5_points=range5_points(matrix) if is_scored else None,
        interval=measurement_interval(matrix) if is_scored else None,
        reach=reach,
        level=CONFIDENCE_LEVEL if is_scored else None,
        overdispersion=chance,
        is_overdispersed=chance is not None and chance < OVERDISPERSED_BELOW,
        texts_alike=measure_agreement(texts),
        scores_alike=measure_agreement(scores[always]),
        resolution=_resolution(columns.run, matrix),
        split=_split(columns.run, bucket, matrix, same_seeds, n_buckets),
        n_likely_to_flip=n_likely,
    )


def _split(
    run: RunRecord,
    bucket: BucketRecord,
    scores: NDArray[np.float64],
    same_seeds: NDArray[np.float64] | None,
    n_buckets: int,
) -> VarianceSplit | None:
    drawn = draws_of(run)
    is_steady = is_steady_batch(bucket.batch_class, are_batches_equal=not drawn.may_sample)
    split = split_variance(scores, drawn, is_steady=is_steady, same_seeds=same_seeds)
    if split is None:
        return None
    text = describe_split(split, n_buckets=n_buckets, is_external=drawn.is_external)
    return VarianceSplit(**dict(split), text=text)


def _same_seeds(
    run: RunRecord, bucket: BucketRecord, repeats: Sequence[RepeatColumns], is_ours: NDArray[np.bool_], n_buckets: int
) -> NDArray[np.float64] | None:
    """Read the run that drew by the same seeds: float64[n_cases, k], the columns those of `repeats`."""
    other = same_seeds_run(run, [bucket.pk]) if n_buckets == 1 else None
    if other is None:
        return None
    known = read_scores(other)
    unknown = np.full(run.suite_version.n_cases, np.nan)
    return np.column_stack([known.get(repeat.index, unknown) for repeat in repeats])[is_ours]


def same_seeds_run(run: RunRecord, bucket_ids: Sequence[int]) -> RunRecord | None:
    """Return the newest finished run of the model that drew by the same seeds under another batch class.

    bucket_ids: those that served `run`. None where there is none, or where the batch moves nothing.
    """
    drawn = draws_of(run)
    if not drawn.is_sampled or drawn.seed is None or len(bucket_ids) != 1:
        return None
    bucket = BucketRecord.objects.get(pk=bucket_ids[0])
    if is_steady_batch(bucket.batch_class, are_batches_equal=not drawn.is_sampled):
        return None
    others = RunRecord.objects.filter(
        suite_version=run.suite_version_id,
        seed=drawn.seed,
        is_reported=run.is_reported,  # the seeds of external servers are others
        status=RunRecord.Status.FINISHED,
        is_one_draw=False,
        bucket__model=bucket.model_id,
    ).exclude(bucket__batch_class=bucket.batch_class)
    newest_first = others.select_related("profile", "suite_version").order_by("-pk")[:OTHERS_READ]
    return next((each for each in newest_first if compared_settings(each) == compared_settings(run)), None)


def metrics_of(columns: RunColumns, bucket: BucketRecord) -> tuple[tuple[Metric, ...] | None, tuple[Note, ...] | None]:
    """Return metrics over a bucket's samples, and why some are left out. None if not sampled."""
    run = columns.run
    whole, served, *_ = _drawn(columns, bucket)
    if not draws_of(run).is_sampled or run.is_one_draw or len(whole) < 2:
        return None, None
    is_ours = np.asarray(served.any(axis=1))
    every = np.column_stack([repeat.scores for repeat in whole if repeat.scores is not None])
    scores = np.where(served, every, np.nan)[is_ours]
    read = [repeat.answers for repeat in whole if repeat.answers is not None]
    answers = np.column_stack(read)[is_ours] if len(read) == len(whole) else None
    measured = measure_metrics(scores, answers, _groups(columns, is_ours))
    rows = tuple(map(explain_no_interval, measured))
    if len(measured) == 1:
        code = "graded"
    elif answers is None:
        plan = run.suite_version.scorer.spec
        code = "answers_unread" if scoring.reads_answers(plan) else "answers_unlike"
    else:
        return rows, ()
    return rows, (Note(code=code, text=left_out_metric(code)),)


def _drawn(
    columns: RunColumns, bucket: BucketRecord
) -> tuple[list[RepeatColumns], NDArray[np.bool_], float | None, bool]:
    """Return the whole repeats that are samples, and bool[n_cases, k]: the bucket's samples.

    Then samples per case (None if no answer is left out), and whether the later repeats are copies but the first is
    not. In a finished run all repeats are whole: a case without a score was left without one, or a filter refused its
    prompt. Cases that some repeat has no score of are then left out.
    """
    is_final = columns.run.status == RunRecord.Status.FINISHED
    whole = [repeat for repeat in columns.repeats if repeat.is_whole or (is_final and repeat.has_scores)]
    if columns.run.is_one_draw:
        whole = whole[:1]  # the others are the same draw once more
    if not whole:
        return [], np.zeros((0, 0), np.bool_), None, False
    mine = np.column_stack([repeat.served_by == bucket.pk for repeat in whole])
    scores = np.column_stack([repeat.scores for repeat in whole if repeat.scores is not None])
    mine &= ~np.isnan(scores).any(axis=1, keepdims=True)
    effective = _find_draws(columns.run, bucket, whole, mine)
    left_out = is_left_out(effective.marks)
    are_draws = is_repeat_of_draws(left_out, mine)
    n_draws = count_draws(mine & ~left_out) if (left_out & mine).any() else None
    drawn = [whole[at] for at in np.flatnonzero(are_draws).tolist()]
    return drawn, (mine & ~left_out)[:, are_draws], n_draws, effective.does_first_differ


def _find_draws(
    run: RunRecord, bucket: BucketRecord, whole: Sequence[RepeatColumns], mine: NDArray[np.bool_]
) -> EffectiveDraws:
    """Tell which answers of whole repeats are samples. mine: bool[n_cases, k], the bucket's answers."""
    drawn, indexes = draws_of(run), [repeat.index for repeat in whole]

    def find_ids() -> list[int]:
        rows = RepeatRecord.objects.filter(run=run, cases=None, index__in=indexes)
        return list(rows.order_by("index").values_list("pk", flat=True))

    columns = [(each.texts, each.traces, each.marks) for each in whole]
    texts, traces, marks = (
        np.stack([one for one in kind if one is not None], axis=1) for kind in zip(*columns, strict=True)
    )
    find = partial(
        find_draws,
        batch_classes=[bucket.batch_class],
        draws=drawn,
        texts=texts,
        traces=traces,
        is_there=mine,
        marks=marks,
        find_company=None if run.is_reported else lambda: copies.find_company(run, find_ids()),
    )
    effective = find()
    if run.is_reported and (effective.marks != marks).any():
        packed = RepeatRecord.objects.filter(run=run, cases=None).exclude(columns=None)
        if copies.needs_usual(run, list(packed.values_list("columns__digest", flat=True))):
            usual = [repeat for repeat, _ in copies.find_usual([run])[run.pk]]
            effective = find(usual=copies.read_usual(usual, slice(None)))
    return effective


def _groups(columns: RunColumns, is_ours: NDArray[np.bool_]) -> list[str]:
    if not columns.groups:
        return []
    return [columns.groups.get(index, "") for index in np.flatnonzero(is_ours).tolist()]


def _n_likely_to_flip(columns: RunColumns, bucket: BucketRecord) -> int | None:
    """Return how many of the bucket's cases are likely to flip; None if no margins are known."""
    for repeat in columns.repeats:
        if repeat.flip_chances is not None and repeat.served_by is not None:
            chances = repeat.flip_chances[repeat.served_by == bucket.pk]
            is_known = not np.isnan(chances).all()
            return int(np.count_nonzero(is_likely_flip(chances))) if is_known else None
    return None


def _resolution(run: RunRecord, matrix: NDArray[np.float64]) -> Resolution | None:
    """At the last look that the repeats have reached, or the first of all, under the policy of the suite."""
    policy = policy_of(run)
    repeats = max((look for look in policy.looks if look <= matrix.shape[1]), default=policy.looks[0])
    points = resolution_points(matrix, repeats=repeats, alpha=policy.alpha(repeats))
    elsewhere = resolution_elsewhere_points(matrix, repeats=repeats)
    if points is None or elsewhere is None:
        return None
    return Resolution(repeats=repeats, points=points, elsewhere_points=elsewhere, churn=ASSUMED_CHURN)


def policy_of(run: RunRecord) -> PolicySettings:
    """Return the suite's own policy, else the default one."""
    own = run.suite_version.suite.policy
    default = default_policy(is_sampled=draws_of(run).may_sample)
    return parse_policy(DEFAULT_POLICIES[default]["settings"] if own is None else own.settings)
