"""Read fingerprints (the serving stack without the model) and declarations of equal models."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Min
from django.urls import reverse

from evalboard.contract import catalogue
from evalboard.contract import stack as contract
from evalboard.contract.baseline import RotationSeen
from evalboard.contract.run import RunRow
from evalboard.core.compare import name_served
from evalboard.core.errors import NotFound
from evalboard.core.profile import compare_manifests
from runs.catalogue import is_all_that_is_known
from runs.fingerprints.read_timeline import ServedBucket, list_rotations, served_buckets
from runs.models import BucketRecord, EngineProcess, FingerprintRecord, Model, RepeatRecord, RunRecord, SameModelRecord
from runs.run import NEWEST_FIRST, rows_of
from runs.store import newest_page, require_row


@dataclass(frozen=True, slots=True)
class WorkerOfFingerprint:
    """A worker's engine processes with one fingerprint: their number, first and last start."""

    name: str
    host: str
    n_processes: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class FingerprintUse:
    """What a fingerprint served: buckets and places, newest runs, workers and rotations."""

    served: tuple[ServedBucket, ...]
    runs: tuple[RunRow, ...]
    workers: tuple[WorkerOfFingerprint, ...]
    turns: tuple[RotationSeen, ...]

    @property
    def n_runs(self) -> int:
        return sum(bucket.n_runs for bucket in self.served)

    @property
    def n_probes(self) -> int:
        return sum(bucket.n_probes for bucket in self.served)


def fingerprint_rows(
    *, after: int | None = None, before: int | None = None, limit: int = 50
) -> tuple[contract.FingerprintRow, ...]:
    """Return fingerprints, newest first: those older than `after`, or the nearest newer than `before`."""
    return newest_page(_counted(), _rows, after=after, before=before, limit=limit)


def fingerprint_report(fingerprint_id: int) -> contract.Fingerprint:
    """Raises NotFound."""
    fingerprint = require_row(_counted().filter(pk=fingerprint_id), f"There is no fingerprint {fingerprint_id}.")
    buckets = (
        BucketRecord.objects.filter(fingerprint=fingerprint).select_related("model").annotate(n_runs=Count("runs"))
    )
    return contract.Fingerprint(
        **_named(fingerprint),
        manifest=fingerprint.manifest,
        buckets=tuple(
            contract.BucketOfFingerprint(
                id=str(bucket.pk),
                model=name_served(bucket.model),
                batch_class=bucket.batch_class,
                n_runs=bucket.n_runs,
            )
            for bucket in buckets.order_by("id")
        ),
    )


def fingerprint_use(fingerprint_id: int, *, runs: int, workers: int, turns: int) -> FingerprintUse:
    """Return what a fingerprint served, with up to so many newest runs, workers and rotations."""
    links = RepeatRecord.engine_processes.through.objects.filter(engineprocess__bucket__fingerprint=fingerprint_id)
    newest = RunRecord.objects.filter(pk__in=links.values("repeat__run")).order_by(*NEWEST_FIRST)
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
        turns=list_rotations(fingerprint_id, limit=turns),
    )


def fingerprint_difference(baseline_id: int, candidate_id: int) -> contract.FingerprintDifference:
    """Raises NotFound."""
    rows = {row.pk: row for row in _counted().filter(pk__in=(baseline_id, candidate_id))}
    for fingerprint_id in (baseline_id, candidate_id):
        if fingerprint_id not in rows:
            raise NotFound(f"There is no fingerprint {fingerprint_id}.")
    fields = compare_manifests(rows[baseline_id].manifest, rows[candidate_id].manifest)
    return contract.FingerprintDifference(
        a=_row(rows[baseline_id]),
        b=_row(rows[candidate_id]),
        moved=tuple(contract.FieldMoved(field=each.field, a=each.baseline, b=each.candidate) for each in fields.moved),
        n_equal=len(fields.equal),
        n_unknown=len(fields.unknown),
        url=reverse("fingerprint_diff", args=[baseline_id, candidate_id]),
        fields=fields,
    )


def _counted() -> Any:
    return FingerprintRecord.objects.annotate(n_runs=Count("buckets__runs"))


def _rows(fingerprints: Any) -> tuple[contract.FingerprintRow, ...]:
    return tuple(map(_row, fingerprints))


def _row(fingerprint: Any) -> contract.FingerprintRow:
    return contract.FingerprintRow(**_named(fingerprint))


def _named(fingerprint: Any) -> dict[str, Any]:
    """Return the fields of `FingerprintRow`."""
    return {
        "id": str(fingerprint.pk),
        "digest": fingerprint.digest,
        "label": fingerprint.label,
        "n_runs": fingerprint.n_runs,
        "created_at": fingerprint.created_at,
    }


def same_model_rows() -> tuple[catalogue.SameModel, ...]:
    """Return all of them, newest first, those that were taken back too."""
    return tuple(map(_same_model, SameModelRecord.objects.select_related("said_by", "taken_back_by")))


def same_model_row(same_model_id: int) -> catalogue.SameModel:
    """Raises NotFound."""
    word = require_row(
        SameModelRecord.objects.select_related("said_by", "taken_back_by").filter(pk=same_model_id),
        f"There is no word {same_model_id} that two names are one model.",
    )
    return _same_model(word)


def logged_names() -> tuple[str, ...]:
    """Return the names of models that only logs know, by the alphabet."""
    models = Model.objects.only("name", "revision", "digest").order_by("name")
    return tuple(dict.fromkeys(model.name for model in models if is_all_that_is_known(model)))


def _same_model(word: SameModelRecord) -> catalogue.SameModel:
    return catalogue.SameModel.from_record(
        word,
        id=str(word.pk),
        said_by=_person(word.said_by),
        taken_back_by=_person(word.taken_back_by),
    )


def _person(user: Any) -> str | None:
    return user.get_username() if user else None
