"""How a suite version's scores moved: its runs by bucket and date."""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

from django.db.models import F
from django.urls import reverse

from evalboard.contract.run import RunRow
from evalboard.contract.suite import BucketHistory, BucketOfHistory, HistoryRow
from evalboard.wording.run_warnings import WarnedRun, list_warnings
from runs.models import BucketRecord, RepeatScore, RunRecord, SuiteVersionRecord
from runs.pairs.pair_facts import describe_fingerprint, name_fingerprints
from runs.run import NEWEST_FIRST, case_buckets, points_in_bucket, rows_of

RUNS_CHARTED = 500  # more bars than a chart has pixels for; older runs stay in the list of runs


def histories(version: SuiteVersionRecord) -> tuple[BucketHistory, ...]:
    """Return the newest runs of one suite version by bucket. Versions are not comparable.

    A run without any answer is in no bucket and left out.
    """
    rows = rows_of(RunRecord.objects.filter(suite_version=version).order_by(*NEWEST_FIRST)[:RUNS_CHARTED])[::-1]
    mixed = _mixed([int(row.id) for row in rows if row.n_buckets > 1])
    points: dict[int, list[tuple[RunRow, list[float]]]] = defaultdict(list)
    for row in rows:
        if int(row.id) in mixed:
            for bucket_id, values in mixed[int(row.id)].items():
                points[bucket_id].append((row, values))
        elif row.bucket is not None:
            points[int(row.bucket)].append((row, [value for value in row.drawn_points if value is not None]))
    keys = _keys([int(row.id) for row in rows])
    buckets = BucketRecord.objects.filter(pk__in=points).select_related("model", "fingerprint").order_by("id")
    names = name_fingerprints({bucket.fingerprint_id for bucket in buckets})
    return tuple(_history(bucket, points[bucket.pk], mixed.keys(), keys, version.number, names) for bucket in buckets)


def history_rows(version: SuiteVersionRecord) -> tuple[HistoryRow, ...]:
    """Return one row a run and bucket, newest first."""
    rows = [row for bucket in histories(version) for row in bucket.runs]
    return tuple(sorted(rows, key=lambda row: (row.run_id, row.bucket.bucket_id), reverse=True))


def _history(
    bucket: BucketRecord,
    points: list[tuple[RunRow, list[float]]],
    mixed: Collection[int],
    keys: dict[int, tuple[str, bool]],
    suite_version: int,
    names: dict[tuple[str, int], str],
) -> BucketHistory:
    fields: dict[str, Any] = {
        "id": str(bucket.pk),
        "model": bucket.model.name,
        "fingerprint": bucket.fingerprint.digest,
        "batch_class": bucket.batch_class,
        "stack": describe_fingerprint(bucket.fingerprint, names.get((points[-1][0].endpoint, bucket.fingerprint_id))),
    }
    named = BucketOfHistory(**fields)
    rows = []
    for row, values in points:
        line, is_imported = keys[int(row.id)]
        span = None if int(row.id) in mixed else row.range_so_far
        rows.append(_row(row, named, values, span, suite_version, line=line, is_imported=is_imported))
    return BucketHistory(**fields, runs=tuple(rows))


def _row(
    row: RunRow,
    bucket: BucketOfHistory,
    values: list[float],
    span: tuple[float, float] | None,
    suite_version: int,
    *,
    line: str,
    is_imported: bool,
) -> HistoryRow:
    """Return a run's row. span: the range of its values, None if several buckets answered."""
    return HistoryRow.from_record(
        row,
        run=row.id,
        suite_version=suite_version,
        date=row.ran_at,
        bucket=bucket,
        repeats=tuple(values),
        warnings=list_warnings(WarnedRun(n_buckets=row.n_buckets)),
        range=span if row.status == RunRecord.Status.FINISHED else None,
        url=reverse("run", args=[row.id]),
        range_so_far=span,
        line=line,
        is_imported=is_imported,
    )


def _keys(run_ids: list[int]) -> dict[int, tuple[str, bool]]:
    """Return run → (model line, whether it was read from a log)."""
    named = RunRecord.objects.filter(pk__in=run_ids).values_list("id", "endpoint__line", "source")
    return {run_id: (line, source is not None) for run_id, line, source in named}


def _mixed(run_ids: list[int]) -> dict[int, dict[int, list[float]]]:
    """Return run → bucket → points of each repeat, for runs of several buckets."""
    by_run: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    if not run_ids:
        return by_run
    own = RepeatScore.objects.filter(repeat__run__in=run_ids, scorer=F("repeat__run__suite_version__scorer"))
    packed = (
        own.filter(repeat__cases=None)
        .exclude(repeat__columns__n_left_out__gt=0)
        .order_by("repeat__index")
        .values_list("repeat__run", "scores", "repeat__columns__buckets", "repeat__columns__bucket_ids")
    )
    for run_id, scores, buckets, bucket_ids in packed:
        served_by = case_buckets(buckets, bucket_ids)
        for bucket_id in bucket_ids:
            points = points_in_bucket(scores, served_by, bucket_id)
            if points is not None:
                by_run[run_id][bucket_id].append(points)
    return by_run
