"""Fingerprints: what served responses, apart from the model."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Min

from evalboard.core.errors import NotFound
from evalboard.core.fingerprint import Difference, difference
from runs.models import Bucket, EngineProcess, Fingerprint, Repeat, Run
from runs.selectors.fingerprint_history import ServedBucket, Turn, served_buckets, turns_of
from runs.selectors.run import RunRow
from runs.selectors.run_list import NEWEST_FIRST, rows_of


@dataclass(frozen=True, slots=True)
class FingerprintRow:
    id: int
    digest: str
    label: str
    n_runs: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class BucketOfFingerprint:
    id: int
    model_name: str
    model_digest: str
    batch_class: str
    n_runs: int


@dataclass(frozen=True, slots=True)
class FingerprintReport:
    """A fingerprint with exactly the manifest that its digest covers."""

    row: FingerprintRow
    manifest: dict[str, Any]
    buckets: tuple[BucketOfFingerprint, ...]


@dataclass(frozen=True, slots=True)
class WorkerOfFingerprint:
    """A worker's engine processes with one fingerprint: how many, and when the first and the last were started."""

    name: str
    host: str
    n_processes: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class FingerprintUse:
    """What a fingerprint served: by bucket and place, its newest runs, workers and rotations."""

    served: tuple[ServedBucket, ...]
    runs: tuple[RunRow, ...]
    workers: tuple[WorkerOfFingerprint, ...]
    turns: tuple[Turn, ...]

    @property
    def n_runs(self) -> int:
        return sum(bucket.n_runs for bucket in self.served)


@dataclass(frozen=True, slots=True)
class SideOfDifference:
    """One of two fingerprints, and what it served."""

    row: FingerprintRow
    served: tuple[ServedBucket, ...]


@dataclass(frozen=True, slots=True)
class FingerprintDifference:
    """Two fingerprints field by field: the baseline is the first one asked for."""

    baseline: SideOfDifference
    candidate: SideOfDifference
    fields: Difference


def fingerprint_rows(
    *, after: int | None = None, before: int | None = None, limit: int = 50
) -> tuple[FingerprintRow, ...]:
    """Fingerprints, newest first: those older than `after`, or the nearest newer than `before`."""
    found = _counted()
    if before is not None:
        return tuple(map(_row, found.filter(pk__gt=before).order_by("id")[:limit]))[::-1]
    if after is not None:
        found = found.filter(pk__lt=after)
    return tuple(map(_row, found.order_by("-id")[:limit]))


def fingerprint_report(fingerprint_id: int) -> FingerprintReport:
    """Raises NotFound."""
    fingerprint = _counted().filter(pk=fingerprint_id).first()
    if fingerprint is None:
        raise NotFound(f"There is no fingerprint {fingerprint_id}.")
    buckets = Bucket.objects.filter(fingerprint=fingerprint).select_related("model").annotate(n_runs=Count("runs"))
    return FingerprintReport(
        row=_row(fingerprint),
        manifest=fingerprint.manifest,
        buckets=tuple(
            BucketOfFingerprint(bucket.pk, bucket.model.name, bucket.model.digest, bucket.batch_class, bucket.n_runs)
            for bucket in buckets.order_by("id")
        ),
    )


def fingerprint_use(fingerprint_id: int, *, runs: int, workers: int, turns: int) -> FingerprintUse:
    """What a fingerprint served, with up to so many of its newest runs, workers and rotations."""
    links = Repeat.engine_processes.through.objects.filter(engineprocess__bucket__fingerprint=fingerprint_id)
    newest = Run.objects.filter(pk__in=links.values("repeat__run")).order_by(*NEWEST_FIRST)
    started = (
        EngineProcess.objects.filter(bucket__fingerprint=fingerprint_id)
        .values("worker__name", "worker__host")
        .annotate(n=Count("id"), first_at=Min("started_at"), last_at=Max("started_at"))
        .order_by("-last_at", "worker__name")
    )
    return FingerprintUse(
        served=served_buckets(fingerprints=(fingerprint_id,)),
        runs=rows_of(newest[:runs]),
        workers=tuple(
            WorkerOfFingerprint(row["worker__name"], row["worker__host"], row["n"], row["first_at"], row["last_at"])
            for row in started[:workers]
        ),
        turns=turns_of(fingerprint_id, limit=turns),
    )


def fingerprint_difference(baseline_id: int, candidate_id: int) -> FingerprintDifference:
    """Raises NotFound."""
    found = {row.pk: row for row in _counted().filter(pk__in=(baseline_id, candidate_id))}
    for fingerprint_id in (baseline_id, candidate_id):
        if fingerprint_id not in found:
            raise NotFound(f"There is no fingerprint {fingerprint_id}.")
    served = served_buckets(fingerprints=(baseline_id, candidate_id))
    one, other = (
        SideOfDifference(_row(found[pk]), tuple(bucket for bucket in served if bucket.fingerprint_id == pk))
        for pk in (baseline_id, candidate_id)
    )
    fields = difference(found[baseline_id].manifest, found[candidate_id].manifest)
    return FingerprintDifference(one, other, fields)


def _counted() -> Any:
    return Fingerprint.objects.annotate(n_runs=Count("buckets__runs"))


def _row(fingerprint: Any) -> FingerprintRow:
    return FingerprintRow(
        fingerprint.pk, fingerprint.digest, fingerprint.label, fingerprint.n_runs, fingerprint.created_at
    )
