"""Read how a judge scored a run: its noise, the split of the spread, its anchors, what it cost."""

from collections.abc import Collection
from datetime import datetime

import numpy as np
from django.db.models import Sum
from django.urls import reverse
from numpy.typing import NDArray

from evalboard.contract.judge import AnchorShift, JudgedAnchors, JudgeNoise, JudgeVarianceSplit, Judging
from evalboard.core import scoring
from evalboard.core.compare import JudgeFacts
from evalboard.core.stats import anchor_shift, judge_sd_points, split_judge_variance
from evalboard.core.trace import unpack_scores
from evalboard.wording.judge import describe_judging
from runs.catalogue import OneNames
from runs.models import BucketRecord, JudgingRecord, RepeatRecord, RepeatScore, ResponseRecord, RunRecord, Scorer, Shard
from runs.pairs.pair_facts import find_other_model, names_on
from runs.store import require_row
from runs.work.judgings import first_digest, judgings_by_same

RELATED = (
    *("run__suite_version__suite", "run__suite_version__scorer", "scorer", "anchors"),
    *("judge_run__endpoint", "judge_run__suite_version"),
)


def judgings_of(run_id: int) -> tuple[Judging, ...]:
    """Read how judges scored a run: its suite's own judge first, newest first. Raises NotFound."""
    require_row(RunRecord.objects.filter(pk=run_id), f"There is no run {run_id}.")
    rows = JudgingRecord.objects.filter(run=run_id).select_related(*RELATED).order_by("pk")
    return tuple(sorted(map(read_judging, rows), key=lambda judging: (not judging.is_own, -judging.number)))


def judged_run(run_id: int) -> int | None:
    """Return the run whose answers a judge scores in this one; None if it is no judge's."""
    return JudgingRecord.objects.filter(judge_run=run_id).values_list("run", flat=True).first()


def read_judging(record: JudgingRecord) -> Judging:
    """Return a judging as a contract. record: with RELATED."""
    spec = scoring.judge_spec(record.scorer.spec) or {}
    judge_run, run = record.judge_run, record.run
    n_done = n_tokens = 0
    if judge_run is not None:
        n_done = Shard.objects.filter(repeat__run=judge_run).aggregate(n=Sum("n_done"))["n"] or 0
        n_tokens = ResponseRecord.objects.filter(repeat__run=judge_run).aggregate(n=Sum("n_tokens"))["n"] or 0
    noise = None if record.noise is None else JudgeNoise.from_stored(record.noise)
    made = Judging.from_record(
        record,
        id=str(record.pk),
        run=str(run.pk),
        scorer=record.scorer.digest,
        is_own=first_digest(record.scorer) == first_digest(run.suite_version.scorer),
        number=scoring.judging_number(record.scorer.spec),
        status=str(record.status),
        error=record.error or None,
        judge_run=None if judge_run is None else str(judge_run.pk),
        endpoint=spec["endpoint"],
        profile=spec["profile"],
        served=tuple(names_on(judge_run.endpoint_id, record.served).values()) if judge_run is not None else (),
        n_judgements=0 if judge_run is None else judge_run.suite_version.n_cases,
        n_done=n_done,
        n_tokens=n_tokens,
        noise=noise,
        split=None if noise is None else _split(record, noise, spec["draws"]),
        anchors=_anchors(record),
        text="",
        url=reverse("run", args=[run.pk if judge_run is None else judge_run.pk]),
    )
    return made.model_copy(update={"text": describe_judging(made)})


def judge_facts(run: RunRecord, scorer: Scorer) -> JudgeFacts | None:
    """Return who judged a run by a scorer, and how it scored the anchors; None where that is no judge."""
    if not scoring.is_judged(scorer.spec):
        return None
    own = JudgingRecord.objects.filter(run=run, scorer=scorer).exclude(judge_run=None)
    record = own.select_related("judge_run__endpoint", "anchors", "scorer").first()
    if record is None or record.judge_run is None:
        return None
    judge_run, anchors = record.judge_run, record.anchors
    buckets = list(BucketRecord.objects.filter(pk__in=record.served).select_related("model", "fingerprint"))
    names, scores = OneNames(), record.anchor_scores
    return JudgeFacts(
        name=judge_run.endpoint.slug,
        served=tuple(sorted(names_on(judge_run.endpoint_id, record.served).values())),
        models=tuple(sorted({find_other_model(bucket, names) or bucket.model.name for bucket in buckets})),
        identity=tuple(sorted(f"{bucket.model.digest} {bucket.fingerprint.digest}" for bucket in buckets)),
        is_reported=judge_run.is_reported,
        order=record.pk,
        sd_points=_measure_sd(record, run.suite_version.n_cases),
        anchors_digest="" if anchors is None else anchors.digest,
        anchor_scores=None if scores is None else tuple(map(tuple, scores)),
    )


def _measure_sd(record: JudgingRecord, n_cases: int) -> float | None:
    spec = scoring.judge_spec(record.scorer.spec)
    if record.noise is None or spec is None:
        return None
    return judge_sd_points(JudgeNoise.from_stored(record.noise), n_cases=n_cases, draws=spec["draws"])


def newest_judgings(
    runs: Collection[RunRecord], scorers: Collection[Scorer], before: datetime | None
) -> dict[tuple[int, int], Scorer]:
    """Return by (run, scorer) under which scorer a judge scored the run last, where it was asked again.

    scorers: of suites. before: when it had ended at the latest; None for no limit.
    """
    judges = {each.digest: each.pk for each in scorers if scoring.is_judged(each.spec)}
    if not judges:
        return {}
    known = JudgingRecord.objects.filter(run__in=[run.pk for run in runs], status=JudgingRecord.Status.FINISHED)
    if before is not None:
        known = known.filter(finished_at__lte=before)
    newest: dict[tuple[int, int], Scorer] = {}
    for record in known.select_related("scorer").order_by("finished_at", "pk"):
        judge = judges.get(first_digest(record.scorer))
        if judge is not None:
            newest[record.run_id, judge] = record.scorer
    return newest


def find_before(record: JudgingRecord) -> JudgingRecord | None:
    """Return the judging before this one that the same judge did of the same anchors."""
    same = judgings_by_same(record.run.suite_version, record.scorer).filter(anchors=record.anchors_id)
    return same.exclude(anchors=None).filter(pk__lt=record.pk).exclude(anchor_scores=None).order_by("-pk").first()


def as_rows(scores: list[list[float | None]]) -> NDArray[np.float64]:
    """Return float64[n, r], NaN where a judgement is missing."""
    rows = np.full((len(scores), max(map(len, scores), default=0)), np.nan)
    for at, row in enumerate(scores):
        rows[at, : len(row)] = [np.nan if value is None else value for value in row]
    return rows


def _split(record: JudgingRecord, noise: JudgeNoise, draws: int) -> JudgeVarianceSplit | None:
    rows = RepeatScore.objects.filter(repeat__run=record.run_id, repeat__cases=None, scorer=record.scorer_id)
    rows = rows.exclude(repeat__status__in=RepeatRecord.WITHOUT_SCORE).order_by("repeat__index")
    columns = [unpack_scores(bytes(row)) for row in rows.values_list("scores", flat=True)]
    if len(columns) < 2:
        return None
    scores = np.column_stack(columns)
    return split_judge_variance(scores[~np.isnan(scores).all(axis=1)], noise, draws=draws)


def _anchors(record: JudgingRecord) -> JudgedAnchors | None:
    if record.anchors is None or record.anchor_scores is None:
        return None
    before, rows = find_before(record), as_rows(record.anchor_scores)
    return JudgedAnchors(
        digest=record.anchors.digest,
        n_anchors=len(rows),
        n_draws=rows.shape[1],
        before=None if before is None else str(before.run_id),
        shift=None if before is None else _shift(before, rows),
    )


def _shift(before: JudgingRecord, rows: NDArray[np.float64]) -> AnchorShift | None:
    return anchor_shift(as_rows(before.anchor_scores or []), rows)
