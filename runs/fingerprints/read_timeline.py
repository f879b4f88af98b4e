"""Read which fingerprints served which endpoint when, in runs and probes, and the rotations.

Read from the runs, the engine processes that decoded their repeats, the buckets of probes, and the rotations that were
noted; no response and no call is counted.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Min, Q
from django.db.models.functions import Coalesce, Greatest

from evalboard.contract.baseline import RotationSeen
from evalboard.contract.parts import FingerprintNamed, ModelServed
from evalboard.core.compare import name_served
from runs.baselines import rotations_in_full
from runs.models import BucketRecord, EndpointRecord, FingerprintRecord, ProbeRecord, RepeatRecord, Rotation
from runs.pairs.pair_facts import describe_fingerprint, name_fingerprints, read_names

# By the clock of the database: a run is served once its first shard and its engine process have started.
BEGUN = Greatest(Coalesce("repeat__run__started_at", "repeat__run__ran_at"), "engineprocess__started_at")
SEEN = Greatest(BEGUN, Coalesce("repeat__finished_at", BEGUN))
FINGERPRINT = "engineprocess__bucket__fingerprint"
TURNS_READ = 1000  # on the page of all endpoints; an endpoint that rotates more often has a page of its own
ENDPOINT, PROFILE = "repeat__run__endpoint__slug", "repeat__run__profile__slug"


@dataclass(frozen=True, slots=True)
class ServedBucket:
    """A bucket's runs and probes on an (endpoint, profile): first start and last activity."""

    bucket_id: int
    fingerprint_id: int
    model: ModelServed
    batch_class: str
    endpoint: str
    profile: str
    n_runs: int
    n_probes: int
    first_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True)
class ServedFingerprint:
    """A fingerprint on one endpoint, in `buckets`."""

    fingerprint: FingerprintNamed
    n_runs: int
    n_probes: int
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
    """Return endpoints that served anything, most recent first, each with up to `turns` rotations."""
    buckets = served_buckets(endpoint=endpoint)
    fingerprints = FingerprintRecord.objects.defer("manifest").in_bulk({bucket.fingerprint_id for bucket in buckets})
    places: dict[str, dict[int, list[ServedBucket]]] = defaultdict(lambda: defaultdict(list))
    for bucket in buckets:
        places[bucket.endpoint][bucket.fingerprint_id].append(bucket)
    endpoints = {row.slug: row for row in EndpointRecord.objects.filter(slug__in=places).only("slug", "engine")}
    read_names({(endpoints[bucket.endpoint].pk, bucket.bucket_id) for bucket in buckets})
    names = name_fingerprints(fingerprints)
    rotated: dict[str, list[RotationSeen]] = defaultdict(list)
    for turn in rotations_in_full(_newest_of_each(endpoint, turns)):
        rotated[turn.endpoint].append(turn)
    lines = [
        EndpointTimeline(
            endpoint=slug,
            is_imported=endpoints[slug].engine == EndpointRecord.Engine.IMPORTED,
            fingerprints=_newest_first(
                _served(describe_fingerprint(fingerprints[pk], names.get((slug, pk))), rows)
                for pk, rows in by_fingerprint.items()
            ),
            turns=tuple(rotated[slug]),
        )
        for slug, by_fingerprint in places.items()
    ]
    return tuple(sorted(lines, key=lambda line: line.fingerprints[0].last_at, reverse=True))


def list_rotations(fingerprint_id: int, *, limit: int) -> tuple[RotationSeen, ...]:
    """Return the newest rotations from or to one fingerprint."""
    about = Rotation.objects.filter(Q(before=fingerprint_id) | Q(after=fingerprint_id))
    return rotations_in_full(list(about.order_by("-id").values_list("pk", flat=True)[:limit]))


def served_buckets(*, endpoint: str = "", fingerprints: tuple[int, ...] = ()) -> tuple[ServedBucket, ...]:
    """Return each bucket's use by (endpoint, profile), most recent first. Arguments filter."""
    links, probes = RepeatRecord.engine_processes.through.objects.all(), ProbeRecord.buckets.through.objects.all()
    if endpoint:
        links, probes = links.filter(**{ENDPOINT: endpoint}), probes.filter(probe__endpoint__slug=endpoint)
    if fingerprints:
        links = links.filter(**{f"{FINGERPRINT}__in": fingerprints})
        probes = probes.filter(bucket__fingerprint__in=fingerprints)
    by_runs = (
        links.order_by()
        .values_list(ENDPOINT, PROFILE, "engineprocess__bucket")
        .annotate(n=Count("repeat__run", distinct=True), first_at=Min(BEGUN), last_at=Max(SEEN))
    )
    by_probes = (
        probes.order_by()
        .values_list("probe__endpoint__slug", "probe__profile__slug", "bucket")
        .annotate(n=Count("probe"), first_at=Min("probe__finished_at"), last_at=Max("probe__finished_at"))
    )
    seen = [{(where, profile, pk): rest for where, profile, pk, *rest in rows} for rows in (by_runs, by_probes)]
    places = dict.fromkeys([*seen[0], *seen[1]])
    known = BucketRecord.objects.filter(pk__in={pk for *_, pk in places}).select_related("model")
    buckets = {bucket.pk: bucket for bucket in known}
    served = (_served_bucket(place, buckets[place[2]], *(each.get(place) for each in seen)) for place in places)
    return tuple(sorted(served, key=lambda bucket: (bucket.last_at, bucket.bucket_id), reverse=True))


def _served_bucket(
    place: tuple[str, str, int], bucket: BucketRecord, by_runs: list[Any] | None, by_probes: list[Any] | None
) -> ServedBucket:
    """by_runs, by_probes: how many there were, when the first began and the last ended; None without any."""
    seen = [each for each in (by_runs, by_probes) if each is not None]
    return ServedBucket(
        bucket_id=bucket.pk,
        fingerprint_id=bucket.fingerprint_id,
        model=name_served(bucket.model),
        batch_class=bucket.batch_class,
        endpoint=place[0],
        profile=place[1],
        n_runs=by_runs[0] if by_runs else 0,
        n_probes=by_probes[0] if by_probes else 0,
        first_at=min(first_at for _, first_at, _ in seen),
        last_at=max(last_at for *_, last_at in seen),
    )


def _served(fingerprint: FingerprintNamed, rows: list[ServedBucket]) -> ServedFingerprint:
    return ServedFingerprint(
        fingerprint=fingerprint,
        n_runs=sum(row.n_runs for row in rows),
        n_probes=sum(row.n_probes for row in rows),
        first_at=min(row.first_at for row in rows),
        last_at=max(row.last_at for row in rows),
        buckets=tuple(rows),
    )


def _newest_first(fingerprints: Any) -> tuple[ServedFingerprint, ...]:
    return tuple(sorted(fingerprints, key=lambda served: (served.first_at, int(served.fingerprint.id)), reverse=True))


def _newest_of_each(endpoint: str, n: int) -> list[int]:
    """Return ids of the newest rotations, up to n per endpoint; of one endpoint if named."""
    rotations = Rotation.objects.filter(endpoint__slug=endpoint) if endpoint else Rotation.objects.all()
    seen: Counter[int] = Counter()
    newest = []
    for pk, endpoint_id in rotations.order_by("-id").values_list("pk", "endpoint")[:TURNS_READ]:
        seen[endpoint_id] += 1
        if seen[endpoint_id] <= n:
            newest.append(pk)
    return newest
