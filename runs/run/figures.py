"""Compute the figures of a run's columns when a repeat ends, and cache them for readers.

Cached figures have the digest of their inputs. If it differs, as after an upgrade, they are computed again.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import OuterRef, Subquery
from numpy.typing import NDArray

from evalboard.contract.figures import BucketFigures, RepeatFigures, RunFigures
from evalboard.contract.run import Twin
from evalboard.core.digest import digest_json
from evalboard.core.stats import run_points
from runs import models
from runs.models import BucketRecord, CaseColumns, CaseFrame, RepeatRecord, RepeatScore, RunRecord
from runs.pairs import copies, pair_facts
from runs.run.case_table import CaseTable, make_table
from runs.run.read_columns import RepeatColumns, RunColumns, drawn_points, read_columns, read_traces, run_range
from runs.run.read_noise import metrics_of, noise_of, same_seeds_run
from runs.store import NO_BUCKET

FIGURES_RULES = 5  # more, whenever the same columns come to other figures
_SHAPE = digest_json(RunFigures.model_json_schema())  # figures that lack what a later version has are no longer used


@dataclass(frozen=True, slots=True)
class Packed:
    """The digests of one repeat's columns and of its scores by the suite's own scorer, None without any."""

    repeat_id: int
    index: int
    columns: str | None
    score: str | None
    bucket_ids: Sequence[int]


def keep_figures(run_id: int) -> None:
    """Compute a run's figures if their inputs have changed. Called after each repeat (`runs.apps`)."""
    run = RunRecord.objects.select_related("suite_version__suite__policy", "profile").filter(pk=run_id).first()
    if run is not None:
        kept_rows({run: read_packed(run)})


def read_served(run_ids: Collection[int]) -> dict[int, dict[int, list[tuple[float | None, int]]]]:
    """Return by run and bucket the points and responses of the bucket's part of each repeat."""
    if not run_ids:
        return {}
    stored = models.RunFiguresRecord.objects.filter(run__in=run_ids).values_list("run", "figures__buckets")
    rows = dict(stored)
    if missing := set(run_ids) - rows.keys():
        for run_id in missing:
            keep_figures(run_id)
        rows = dict(stored.all())
    return {
        run_id: {
            bucket["bucket"]: [(line["points"], line["n_responses"]) for line in bucket["repeats"]]
            for bucket in buckets
        }
        for run_id, buckets in rows.items()
    }


def kept_rows(
    runs: Mapping[RunRecord, Sequence[Packed]], *, with_cases: bool = False
) -> dict[int, models.RunFiguresRecord]:
    """Return the figures of runs by id, computing those whose inputs have changed.

    The runs are loaded with their suite's policy and their profile. with_cases: load `cases` too.
    """
    digests = {run.pk: _digest(run, repeats) for run, repeats in runs.items()}
    stored = models.RunFiguresRecord.objects.filter(run__in=digests)
    rows = {row.run_id: row for row in (stored if with_cases else stored.defer("cases"))}
    is_kept = {run_id for run_id, row in rows.items() if row.digest == digests[run_id]}
    return {run.pk: rows[run.pk] if run.pk in is_kept else _keep(run, digests[run.pk]) for run in runs}


def read_packed(run: RunRecord) -> tuple[Packed, ...]:
    """Read how the repeats of all cases of a run are known."""
    own = RepeatScore.objects.filter(repeat=OuterRef("pk"), scorer=run.suite_version.scorer_id).values("digest")
    repeats = RepeatRecord.objects.filter(run=run, cases=None).annotate(scored_as=Subquery(own)).order_by("index")
    names = ("pk", "index", "columns__digest", "scored_as", "columns__bucket_ids")
    rows = repeats.values_list(*names)
    return tuple(Packed(pk, index, packed, scored, ids or ()) for pk, index, packed, scored, ids in rows)


def read_twin(run: RunRecord, row: models.RunFiguresRecord) -> Twin | None:
    """Compare a run with the newest earlier equal one: version, endpoint, profile, seed and bucket.

    Where nothing is drawn the seed is the profile's, whether the run has it or not. A log, or a server of others, says
    too little to call two runs twins.
    """
    if run.bucket_id is None or run.is_reported:
        return None
    earlier = RunRecord.objects.filter(
        pk__lt=run.pk,
        status=RunRecord.Status.FINISHED,
        suite_version=run.suite_version_id,
        endpoint=run.endpoint_id,
        profile=run.profile_id,
        bucket=run.bucket_id,
    )
    if pair_facts.draws_of(run).is_sampled:
        earlier = earlier.filter(seed=run.seed)
    newest = earlier.order_by("-id").values("id")[:1]
    packed = CaseColumns.objects.filter(repeat__run=Subquery(newest), repeat__cases=None).order_by("repeat__index")
    theirs = list(packed.values_list("repeat__run", "digest"))
    if not theirs:
        return None
    twin_id = theirs[0][0]
    of = digest_json([row.digest, twin_id, [known for _, known in theirs]])
    if row.twin_digest != of:
        row.twin, row.twin_digest = _compared(run, twin_id), of
        models.RunFiguresRecord.objects.filter(run=run, digest=row.digest).update(twin=row.twin, twin_digest=of)
    return None if row.twin is None else Twin.from_stored(row.twin)


def _compared(run: RunRecord, twin_id: int) -> dict[str, Any] | None:
    own = dict(read_traces(run.pk))
    n_equal = n_compared = 0
    for index, theirs in read_traces(twin_id):
        mine = own.get(index)
        if mine is not None:
            has_both = mine.any(axis=1) & theirs.any(axis=1)
            n_compared += int(has_both.sum())
            n_equal += int(((mine == theirs).all(axis=1) & has_both).sum())
    return {"run": str(twin_id), "n_equal": n_equal, "n_compared": n_compared} if n_compared else None


def _digest(run: RunRecord, repeats: Sequence[Packed]) -> str:
    """Return the digest of all inputs of a run's figures."""
    bucket_ids = {bucket for repeat in repeats for bucket in repeat.bucket_ids}
    bucket_ids |= set() if run.bucket_id is None else {run.bucket_id}
    other = same_seeds_run(run, sorted(bucket_ids))
    rests_on: dict[str, Any] = {
        "rules": [FIGURES_RULES, _SHAPE],
        "status": run.status,
        "bucket": run.bucket_id,
        "is_one_draw": run.is_one_draw,
        "policy": run.suite_version.suite.policy_id,
        "same_seeds": None if other is None else other.pk,
        "answers": _read_answered(run),
        "repeats": [[each.index, each.columns, each.score] for each in repeats],
    }
    if copies.needs_usual(run, [each.columns for each in repeats if each.columns]):
        rests_on["usual"] = [packed for _, packed in copies.find_usual([run])[run.pk]]
    return digest_json(rests_on)


def _read_answered(run: RunRecord) -> list[int]:
    """Return the repeats whose answers are stored, an input of metrics not in the scores' digests."""
    if not pair_facts.draws_of(run).is_sampled:
        return []
    whole = RepeatScore.objects.filter(repeat__run=run, repeat__cases=None)
    own = whole.filter(scorer=run.suite_version.scorer_id, answers__isnull=False)
    return list(own.order_by("repeat__index").values_list("repeat__index", flat=True))


def _keep(run: RunRecord, digest: str) -> models.RunFiguresRecord:
    columns = read_columns(run)
    table = make_table(columns)
    row = models.RunFiguresRecord(
        run=run, digest=digest, figures=_figures(run, columns).to_json(), cases=table.pack_bits(), twin=None
    )
    if any(repeat.texts is not None for repeat in columns.repeats):  # else there is little to read, and less to keep
        _store(row, table)
    return row


def _store(row: models.RunFiguresRecord, table: CaseTable) -> None:
    names = {name: getattr(row, name) for name in ("digest", "figures", "cases", "twin", "twin_digest")}
    with transaction.atomic():
        if not RunRecord.objects.select_for_update(no_key=True, of=("self",)).filter(pk=row.run_id).exists():
            return  # deleted meanwhile
        models.RunFiguresRecord.objects.update_or_create(run_id=row.run_id, defaults=names)
        CaseFrame.objects.filter(run=row.run_id).exclude(digest=row.digest).delete()
        frames = (
            CaseFrame(run_id=row.run_id, digest=row.digest, first=first, data=data)
            for first, data in table.pack_frames()
        )
        CaseFrame.objects.bulk_create(frames, batch_size=500, ignore_conflicts=True)


def _figures(run: RunRecord, columns: RunColumns) -> RunFigures:
    ids = {pk for repeat in columns.repeats for pk in _buckets_of(repeat)}
    ids |= set() if run.bucket_id is None else {run.bucket_id}
    buckets = BucketRecord.objects.filter(pk__in=ids).select_related("fingerprint").order_by("pk")
    n_buckets = len(buckets)
    return RunFigures(
        buckets=tuple(_bucket(columns, bucket, n_buckets) for bucket in buckets),
        n_cases_unscored=_n_cases_unscored(columns),
    )


def _buckets_of(repeat: RepeatColumns) -> list[int]:
    if repeat.served_by is None:
        return []
    ids: list[int] = np.unique(repeat.served_by).tolist()
    return [pk for pk in ids if pk != NO_BUCKET]


def _bucket(columns: RunColumns, bucket: BucketRecord, n_buckets: int) -> BucketFigures:
    run, lines, served, left_out = columns.run, [], [], []
    for repeat in columns.repeats:
        if repeat.served_by is None or not (mine := repeat.served_by == bucket.pk).any():
            continue
        lines.append(
            RepeatFigures(
                index=repeat.index,
                n_responses=int(mine.sum()),
                points=_points(repeat, mine, is_final=run.status == RunRecord.Status.FINISHED),
            )
        )
        left_out.append(repeat.n_left_out)
        if not repeat.n_left_out:
            served.append(mine)
    is_alike = bool(served) and all(np.array_equal(served[0], other) for other in served[1:])
    points = drawn_points([line.points for line in lines], left_out)
    is_scored = is_alike and run_range(status=run.status, points=points, n_buckets=1) is not None
    is_final = run.status == RunRecord.Status.FINISHED
    metrics, metrics_left_out = metrics_of(columns, bucket) if is_final else (None, None)
    return BucketFigures(
        bucket=bucket.pk,
        repeats=tuple(lines),
        is_alike=is_alike,
        noise=noise_of(columns, bucket, is_scored=is_scored, n_buckets=n_buckets),
        metrics=metrics,
        metrics_left_out=metrics_left_out,
    )


def _points(repeat: RepeatColumns, mine: NDArray[np.bool_], *, is_final: bool) -> float | None:
    """Return the repeat's points over the cases that this bucket answered.

    is_final: the run has all answers that it will have, so that a case without one was refused by a filter.
    """
    if repeat.scores is None or repeat.served_by is None:
        return None
    is_there: NDArray[np.bool_] = np.not_equal(repeat.served_by, NO_BUCKET) | is_final
    if len(_buckets_of(repeat)) == 1:
        return run_points(repeat.scores, is_there)
    return run_points(repeat.scores[mine], is_there[mine])


def _n_cases_unscored(columns: RunColumns) -> int:
    is_unscored = np.ones(columns.n_cases, dtype=bool)
    for repeat in columns.repeats:
        if repeat.scores is not None:
            is_unscored &= np.isnan(repeat.scores)
    return int(np.count_nonzero(is_unscored))
