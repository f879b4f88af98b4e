"""Fingerprints: what served responses, apart from the model."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count

from evalboard.core.errors import NotFound
from runs.models import Bucket, Fingerprint


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


def _counted() -> Any:
    return Fingerprint.objects.annotate(n_runs=Count("buckets__runs"))


def _row(fingerprint: Any) -> FingerprintRow:
    return FingerprintRow(
        fingerprint.pk, fingerprint.digest, fingerprint.label, fingerprint.n_runs, fingerprint.created_at
    )
