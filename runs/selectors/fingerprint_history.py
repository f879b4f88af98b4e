"""Which fingerprints served which endpoint when, and where one followed another.

Read from the runs and the engine processes that decoded their repeats; no response is counted.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, Min, Q, QuerySet, Window
from django.db.models.functions import Coalesce, FirstValue, Greatest, Lag

from evalboard.core.fingerprint import Moved, moved
from runs.models import Bucket, Fingerprint, Repeat

# By the clock of the database: a run is served once its first shard and its engine process have started.
BEGUN = Greatest(Coalesce("repeat__run__started_at", "repeat__run__ran_at"), "engineprocess__started_at")
SEEN = Greatest(BEGUN, Coalesce("repeat__finished_at", BEGUN))
FINGERPRINT = "engineprocess__bucket__fingerprint"
TURNS_READ = 1000  # on the page of all endpoints; an endpoint that rotates more often has a page of its own
ENDPOINT, PROFILE = "repeat__run__endpoint__slug", "repeat__run__profile__slug"


@dataclass(frozen=True, slots=True)
class ServedBucket:
    """A bucket's runs on one (endpoint, profile): when the first began, and when the last was at work."""

    bucket_id: int
    fingerprint_id: int
    model_name: str
    model_digest: str
    batch_class: str
    endpoint: str
    profile: str
    n_runs: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class ServedFingerprint:
    """A fingerprint on one endpoint, in `buckets`."""

    id: int
    digest: str
    label: str
    n_runs: int
    first_at: datetime
    last_at: datetime
    buckets: tuple[ServedBucket, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """A rotation: on one (endpoint, profile), a fingerprint other than the previous run's."""

    at: datetime
    endpoint: str
    profile: str
    run_id: int
    before_id: int
    before_digest: str
    after_id: int
    after_digest: str
    moved: tuple[Moved, ...]


@dataclass(frozen=True, slots=True)
class EndpointTimeline:
    """An endpoint's fingerprints, and its newest rotations; each newest first."""

    endpoint: str
    fingerprints: tuple[ServedFingerprint, ...]
    turns: tuple[Turn, ...]


def timelines(*, endpoint: str = "", turns: int) -> tuple[EndpointTimeline, ...]:
    """Endpoints that served something, those at work last first, each with up to `turns` rotations."""
    buckets = served_buckets(endpoint=endpoint)
    fingerprints = _labels({bucket.fingerprint_id for bucket in buckets})
    places: dict[str, dict[int, list[ServedBucket]]] = defaultdict(lambda: defaultdict(list))
    for bucket in buckets:
        places[bucket.endpoint][bucket.fingerprint_id].append(bucket)
    rotated: dict[str, list[Turn]] = defaultdict(list)
    where = Q(**{ENDPOINT: endpoint}) if endpoint else Q()
    for turn in _told(_newest_of_each(_turns(where, limit=TURNS_READ), turns)):
        rotated[turn.endpoint].append(turn)
    found = [
        EndpointTimeline(
            endpoint=slug,
            fingerprints=_newest_first(_served(fingerprints[pk], rows) for pk, rows in by_fingerprint.items()),
            turns=tuple(rotated[slug]),
        )
        for slug, by_fingerprint in places.items()
    ]
    return tuple(sorted(found, key=lambda line: line.fingerprints[0].last_at, reverse=True))


def turns_of(fingerprint_id: int, *, limit: int) -> tuple[Turn, ...]:
    """The newest rotations from or to one fingerprint."""
    places = _links().filter(**{FINGERPRINT: fingerprint_id}).values("repeat__run__endpoint")
    return _told(_turns(Q(repeat__run__endpoint__in=places), about=fingerprint_id, limit=limit))


def served_buckets(*, endpoint: str = "", fingerprints: tuple[int, ...] = ()) -> tuple[ServedBucket, ...]:
    """What each bucket served by (endpoint, profile), those at work last first; of some endpoint or fingerprints."""
    links = _links()
    if endpoint:
        links = links.filter(**{ENDPOINT: endpoint})
    if fingerprints:
        links = links.filter(**{f"{FINGERPRINT}__in": fingerprints})
    rows = list(
        links.order_by()
        .values(ENDPOINT, PROFILE, "engineprocess__bucket")
        .annotate(n_runs=Count("repeat__run", distinct=True), first_at=Min(BEGUN), last_at=Max(SEEN))
    )
    known = Bucket.objects.filter(pk__in={row["engineprocess__bucket"] for row in rows}).select_related("model")
    buckets = {bucket.pk: bucket for bucket in known.defer("model__files")}
    found = (_served_bucket(row, buckets[row["engineprocess__bucket"]]) for row in rows)
    return tuple(sorted(found, key=lambda bucket: (bucket.last_at, bucket.bucket_id), reverse=True))


def _served_bucket(row: dict[str, Any], bucket: Bucket) -> ServedBucket:
    return ServedBucket(
        bucket_id=bucket.pk,
        fingerprint_id=bucket.fingerprint_id,
        model_name=bucket.model.name,
        model_digest=bucket.model.digest,
        batch_class=bucket.batch_class,
        endpoint=row[ENDPOINT],
        profile=row[PROFILE],
        n_runs=row["n_runs"],
        first_at=row["first_at"],
        last_at=row["last_at"],
    )


def _served(fingerprint: Fingerprint, rows: list[ServedBucket]) -> ServedFingerprint:
    return ServedFingerprint(
        id=fingerprint.pk,
        digest=fingerprint.digest,
        label=fingerprint.label,
        n_runs=sum(row.n_runs for row in rows),
        first_at=min(row.first_at for row in rows),
        last_at=max(row.last_at for row in rows),
        buckets=tuple(rows),
    )


def _newest_first(found: Any) -> tuple[ServedFingerprint, ...]:
    return tuple(sorted(found, key=lambda served: (served.first_at, served.id), reverse=True))


def _turns(where: Q, *, limit: int, about: int | None = None) -> list[dict[str, Any]]:
    """Rotations among the runs of `where`, newest first, as rows.

    A run that several fingerprints served stands once for each, in the order in which they began. Logs note none: they
    come in any order, and several backends of one are shares of it.
    """
    order = [F("at"), F("repeat__run"), F(FINGERPRINT)]
    itself = [F("repeat__run"), F(FINGERPRINT)]
    rows = (
        _links()
        .filter(where, repeat__run__source=None)
        .order_by()
        .values(ENDPOINT, PROFILE, "repeat__run", FINGERPRINT)
        .annotate(at=Min(BEGUN))
        .annotate(
            before=Window(Lag(FINGERPRINT), partition_by=[F(ENDPOINT), F(PROFILE)], order_by=order),
            # A window as well, so that what is left out below is still the previous run of what stays.
            after=Window(FirstValue(FINGERPRINT), partition_by=itself),
        )
        .filter(before__isnull=False)
        .exclude(before=F("after"))
        .order_by("-at", "-repeat__run")
    )
    if about is not None:
        rows = rows.filter(Q(before=about) | Q(after=about))
    return list(rows[:limit])


def _told(rows: list[dict[str, Any]]) -> tuple[Turn, ...]:
    manifests = Fingerprint.objects.in_bulk({pk for row in rows for pk in (row["before"], row["after"])})
    return tuple(_turn(row, manifests[row["before"]], manifests[row["after"]]) for row in rows)


def _newest_of_each(rows: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    seen: dict[str, int] = defaultdict(int)
    kept = []
    for row in rows:
        seen[row[ENDPOINT]] += 1
        if seen[row[ENDPOINT]] <= n:
            kept.append(row)
    return kept


def _turn(row: dict[str, Any], before: Fingerprint, after: Fingerprint) -> Turn:
    return Turn(
        at=row["at"],
        endpoint=row[ENDPOINT],
        profile=row[PROFILE],
        run_id=row["repeat__run"],
        before_id=before.pk,
        before_digest=before.digest,
        after_id=after.pk,
        after_digest=after.digest,
        moved=moved(before.manifest, after.manifest),
    )


def _labels(ids: set[int]) -> dict[int, Fingerprint]:
    return Fingerprint.objects.defer("manifest").in_bulk(ids)


def _links() -> "QuerySet[Any]":
    """One row for each repeat and engine process that decoded some of it."""
    return Repeat.engine_processes.through.objects.all()
