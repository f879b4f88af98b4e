"""Which fingerprints served which endpoint when, and where one followed another.

Read from the runs and the engine processes that decoded their repeats; no response is counted.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Max, Min, Q, QuerySet, Window
from django.db.models.functions import Coalesce, FirstValue, Greatest, Lag

from evalboard.contract.baseline import RotationSeen
from evalboard.contract.parts import FingerprintNamed, ModelServed
from evalboard.core.profile import find_moved_fields
from runs.catalogue import rotations
from runs.models import Bucket, Endpoint, Fingerprint, Repeat, Rotation

# By the clock of the database: a run is served once its first shard and its engine process have started.
BEGUN = Greatest(Coalesce("repeat__run__started_at", "repeat__run__ran_at"), "engineprocess__started_at")
SEEN = Greatest(BEGUN, Coalesce("repeat__finished_at", BEGUN))
FINGERPRINT = "engineprocess__bucket__fingerprint"
TURNS_READ = 1000  # on the page of all endpoints; an endpoint that rotates more often has a page of its own
SERVED_MOST = Q(engineprocess__bucket=F("repeat__run__bucket"))
ENDPOINT, PROFILE = "repeat__run__endpoint__slug", "repeat__run__profile__slug"


@dataclass(frozen=True, slots=True)
class ServedBucket:
    """A bucket's runs on one (endpoint, profile): when the first began, and when the last was at work."""

    bucket_id: int
    fingerprint_id: int
    model: ModelServed
    batch_class: str
    endpoint: str
    profile: str
    n_runs: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class ServedFingerprint:
    """A fingerprint on one endpoint, in `buckets`."""

    fingerprint: FingerprintNamed
    n_runs: int
    first_at: datetime
    last_at: datetime
    buckets: tuple[ServedBucket, ...]


@dataclass(frozen=True, slots=True)
class EndpointTimeline:
    """An endpoint's fingerprints, and its newest rotations; each newest first."""

    endpoint: str
    fingerprints: tuple[ServedFingerprint, ...]
    turns: tuple[RotationSeen, ...]
    is_imported: bool = False  # known only from logs of other tools


def timelines(*, endpoint: str = "", turns: int) -> tuple[EndpointTimeline, ...]:
    """Return endpoints that served something, those at work last first, each with up to `turns` rotations."""
    buckets = served_buckets(endpoint=endpoint)
    fingerprints = _labels({bucket.fingerprint_id for bucket in buckets})
    places: dict[str, dict[int, list[ServedBucket]]] = defaultdict(lambda: defaultdict(list))
    for bucket in buckets:
        places[bucket.endpoint][bucket.fingerprint_id].append(bucket)
    rotated: dict[str, list[RotationSeen]] = defaultdict(list)
    where = Q(**{ENDPOINT: endpoint}) if endpoint else Q()
    for turn in _make_turns(_newest_of_each(_turns(where, limit=TURNS_READ), turns)):
        rotated[turn.endpoint].append(turn)
    imported = set(
        Endpoint.objects.filter(slug__in=places, engine=Endpoint.Engine.IMPORTED).values_list("slug", flat=True)
    )
    lines = [
        EndpointTimeline(
            endpoint=slug,
            is_imported=slug in imported,
            fingerprints=_newest_first(_served(fingerprints[pk], rows) for pk, rows in by_fingerprint.items()),
            turns=tuple(rotated[slug]),
        )
        for slug, by_fingerprint in places.items()
    ]
    return tuple(sorted(lines, key=lambda line: line.fingerprints[0].last_at, reverse=True))


def list_rotations(fingerprint_id: int, *, limit: int) -> tuple[RotationSeen, ...]:
    """Return the newest rotations from or to one fingerprint."""
    places = _links().filter(**{FINGERPRINT: fingerprint_id}).values("repeat__run__endpoint")
    return _make_turns(_turns(Q(repeat__run__endpoint__in=places), about=fingerprint_id, limit=limit))


def served_buckets(*, endpoint: str = "", fingerprints: tuple[int, ...] = ()) -> tuple[ServedBucket, ...]:
    """Return what each bucket served by (endpoint, profile), at work last first; of some endpoint or fingerprints."""
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
    served = (_served_bucket(row, buckets[row["engineprocess__bucket"]]) for row in rows)
    return tuple(sorted(served, key=lambda bucket: (bucket.last_at, bucket.bucket_id), reverse=True))


def _served_bucket(row: dict[str, Any], bucket: Bucket) -> ServedBucket:
    return ServedBucket(
        bucket_id=bucket.pk,
        fingerprint_id=bucket.fingerprint_id,
        model=ModelServed(name=bucket.model.name, digest=bucket.model.digest),
        batch_class=bucket.batch_class,
        endpoint=row[ENDPOINT],
        profile=row[PROFILE],
        n_runs=row["n_runs"],
        first_at=row["first_at"],
        last_at=row["last_at"],
    )


def _served(fingerprint: Fingerprint, rows: list[ServedBucket]) -> ServedFingerprint:
    return ServedFingerprint(
        fingerprint=_named(fingerprint),
        n_runs=sum(row.n_runs for row in rows),
        first_at=min(row.first_at for row in rows),
        last_at=max(row.last_at for row in rows),
        buckets=tuple(rows),
    )


def _newest_first(fingerprints: Any) -> tuple[ServedFingerprint, ...]:
    return tuple(sorted(fingerprints, key=lambda served: (served.first_at, int(served.fingerprint.id)), reverse=True))


def _turns(where: Q, *, limit: int, about: int | None = None) -> list[dict[str, Any]]:
    """Rotations among the runs of `where`, newest first, as rows.

    A run that several fingerprints served stands once for each, in the order in which they began. Logs note none: they
    come in any order. Several backends of one log, or of a server of others, are shares of it: of those runs only what
    served most counts, where it is known.
    """
    order = [F("at"), F("repeat__run"), F(FINGERPRINT)]
    itself = [F("repeat__run"), F(FINGERPRINT)]
    rows = (
        _links()
        .filter(where, Q(repeat__run__is_reported=False) | SERVED_MOST, repeat__run__source=None)
        .filter(rotations.known_serving(FINGERPRINT))
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


def _make_turns(rows: list[dict[str, Any]]) -> tuple[RotationSeen, ...]:
    manifests = Fingerprint.objects.in_bulk({pk for row in rows for pk in (row["before"], row["after"])})
    started: dict[int, list[int]] = defaultdict(list)
    links = Rotation.reference_runs.through.objects.filter(rotation__run__in=[row["repeat__run"] for row in rows])
    for run_id, reference_id in links.order_by("run").values_list("rotation__run", "run"):
        started[run_id].append(reference_id)
    return tuple(
        _turn(row, manifests[row["before"]], manifests[row["after"]], started[row["repeat__run"]]) for row in rows
    )


def _newest_of_each(rows: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    seen: dict[str, int] = defaultdict(int)
    newest = []
    for row in rows:
        seen[row[ENDPOINT]] += 1
        if seen[row[ENDPOINT]] <= n:
            newest.append(row)
    return newest


def _turn(row: dict[str, Any], before: Fingerprint, after: Fingerprint, reference_runs: Sequence[int]) -> RotationSeen:
    return RotationSeen(
        at=row["at"],
        endpoint=row[ENDPOINT],
        profile=row[PROFILE],
        run=str(row["repeat__run"]),
        before=_named(before),
        after=_named(after),
        moved=find_moved_fields(before.manifest, after.manifest),
        reference_runs=tuple(reference_runs),
    )


def _named(fingerprint: Fingerprint) -> FingerprintNamed:
    return FingerprintNamed(id=str(fingerprint.pk), digest=fingerprint.digest, label=fingerprint.label)


def _labels(ids: set[int]) -> dict[int, Fingerprint]:
    return Fingerprint.objects.defer("manifest").in_bulk(ids)


def _links() -> "QuerySet[Any]":
    """One row for each repeat and engine process that decoded some of it."""
    return Repeat.engine_processes.through.objects.all()
