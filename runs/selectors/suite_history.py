"""How a suite version's scores moved: its runs by bucket and date."""

import math
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import F

from evalboard.core.draws import Draws
from runs.models import Bucket, RepeatScore, Run, SuiteVersion
from runs.selectors.run import RunRow
from runs.selectors.run_list import NEWEST_FIRST, rows_of
from runs.selectors.run_scores import case_buckets, points_in_bucket

RUNS_CHARTED = 500  # more bars than a chart has pixels for; older runs stay in the list of runs


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One run in one bucket: a bar from low to high and one mark a repeat of draws (core.live_answers).

    `range` is None, too, where several buckets served the run: `points` are then over the cases that this one served.
    `line` and `profile_slug` say which baselines it may be held against.
    """

    run_id: int
    at: datetime
    bucket_id: int
    points: tuple[float, ...]
    range: tuple[float, float] | None
    n_repeats: int
    status: str
    endpoint: str
    profile: str
    line: str = ""
    profile_slug: str = ""
    profile_version: int = 0
    n_buckets: int = 1
    draws: Draws = field(default_factory=Draws)
    is_imported: bool = False

    @property
    def is_terminal(self) -> bool:
        return self.status in Run.TERMINAL

    @property
    def mean(self) -> float | None:
        """The score in points; None where the run as a whole has none, or none yet."""
        return None if self.range is None or self.status != "finished" else math.fsum(self.points) / len(self.points)


@dataclass(frozen=True, slots=True)
class BucketHistory:
    """A bucket's runs by date; buckets are never joined."""

    bucket_id: int
    model_name: str
    fingerprint_digest: str
    fingerprint_label: str
    batch_class: str
    points: tuple[HistoryPoint, ...]
    fingerprint_id: int | None = None


def histories(version: SuiteVersion) -> tuple[BucketHistory, ...]:
    """The newest runs of one suite version, oldest first in each bucket; another version is another measurement.

    A run that no engine has served yet is in no bucket and left out.
    """
    rows = rows_of(Run.objects.filter(suite_version=version).order_by(*NEWEST_FIRST)[:RUNS_CHARTED])[::-1]
    mixed = _mixed([row.id for row in rows if row.n_buckets > 1])
    keys = _keys([row.id for row in rows])
    points: dict[int, list[HistoryPoint]] = defaultdict(list)
    for row in rows:
        if row.id in mixed:
            for bucket_id, values in mixed[row.id].items():
                points[bucket_id].append(_point(row, bucket_id, values, None, *keys[row.id]))
        elif row.bucket_id is not None:
            known = [value for value in row.drawn_points if value is not None]
            points[row.bucket_id].append(_point(row, row.bucket_id, known, row.range, *keys[row.id]))
    buckets = Bucket.objects.filter(pk__in=points).select_related("model", "fingerprint").order_by("id")
    return tuple(
        BucketHistory(
            bucket_id=bucket.pk,
            model_name=bucket.model.name,
            fingerprint_digest=bucket.fingerprint.digest,
            fingerprint_label=bucket.fingerprint.label,
            batch_class=bucket.batch_class,
            points=tuple(points[bucket.pk]),
            fingerprint_id=bucket.fingerprint_id,
        )
        for bucket in buckets
    )


def _keys(run_ids: list[int]) -> dict[int, tuple[str, str, bool]]:
    """run → (model line, profile without its version), by which baselines are kept, and whether it is of a log."""
    named = Run.objects.filter(pk__in=run_ids).values_list("id", "endpoint__line", "profile__slug", "source")
    return {run_id: (line, profile, source is not None) for run_id, line, profile, source in named}


def _point(
    row: RunRow,
    bucket_id: int,
    points: list[float],
    span: tuple[float, float] | None,
    line: str,
    profile_slug: str,
    is_imported: bool,
) -> HistoryPoint:
    return HistoryPoint(
        run_id=row.id,
        at=row.ran_at,
        bucket_id=bucket_id,
        points=tuple(points),
        range=span,
        n_repeats=row.n_repeats,
        status=row.status,
        endpoint=row.endpoint,
        profile=row.profile,
        line=line,
        profile_slug=profile_slug,
        profile_version=row.profile_version,
        n_buckets=row.n_buckets,
        draws=row.draws,
        is_imported=is_imported,
    )


def _mixed(run_ids: list[int]) -> dict[int, dict[int, list[float]]]:
    """Of runs that several buckets served, the points of each repeat by bucket: run → bucket → points."""
    found: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    if not run_ids:
        return found
    own = RepeatScore.objects.filter(repeat__run__in=run_ids, scorer=F("repeat__run__suite_version__scorer"))
    packed = (
        own.exclude(repeat__columns__n_left_out__gt=0)
        .order_by("repeat__index")
        .values_list("repeat__run", "scores", "repeat__columns__buckets", "repeat__columns__bucket_ids")
    )
    for run_id, scores, buckets, bucket_ids in packed:
        served_by = case_buckets(buckets, bucket_ids)
        for bucket_id in bucket_ids:
            points = points_in_bucket(scores, served_by, bucket_id)
            if points is not None:
                found[run_id][bucket_id].append(points)
    return found
