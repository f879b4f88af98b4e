"""Give each backend of an endpoint one permanent name for all lists."""

from collections.abc import Collection
from itertools import groupby

from django.db import transaction

from evalboard.wording.manifest import name_backend
from runs.models import BackendNameRecord, BucketRecord, EndpointRecord

EndpointBucket = tuple[int, int]  # ids
MAX_REMEMBERED = 20_000
_remembered: dict[EndpointBucket, str] = {}  # names that pages have read; a name never changes


def read_names(places: Collection[EndpointBucket]) -> dict[EndpointBucket, str]:
    """Return what these buckets are called on these endpoints; the oldest without a name gets one first."""
    known = {place: _remembered[place] for place in places if place in _remembered}
    if unread := set(places) - known.keys():
        if len(_remembered) + len(unread) > MAX_REMEMBERED:
            _remembered.clear()
        read = find_names(unread)
        _remembered.update(read)
        known |= read
    return known


def find_names(places: Collection[EndpointBucket]) -> dict[EndpointBucket, str]:
    """Return the same from the database, and remember none: for a transaction that may be rolled back."""
    endpoints, buckets = {endpoint for endpoint, _ in places}, {bucket for _, bucket in places}
    rows = BackendNameRecord.objects.filter(endpoint__in=endpoints, bucket__in=buckets)
    stored = {(row.endpoint_id, row.bucket_id): row.name for row in rows}
    known = {place: stored[place] for place in places if place in stored}
    for endpoint, unnamed in groupby(sorted(set(places) - known.keys()), key=lambda place: place[0]):
        known |= _give_names(endpoint, [bucket for _, bucket in unnamed])
    return known


def forget_names() -> None:
    """Forget what is remembered, where stored names were deleted."""
    _remembered.clear()


def names_on(endpoint: int, buckets: Collection[int]) -> dict[int, str]:
    """Return what these buckets are called on one endpoint."""
    return {bucket: name for (_, bucket), name in read_names([(endpoint, each) for each in buckets]).items()}


@transaction.atomic
def _give_names(endpoint: int, bucket_ids: Collection[int]) -> dict[EndpointBucket, str]:
    EndpointRecord.objects.select_for_update(no_key=True).only("pk").get(pk=endpoint)  # one after the other
    names = dict(BackendNameRecord.objects.filter(endpoint=endpoint).values_list("bucket", "name"))
    manifests = BucketRecord.objects.filter(pk__in=set(bucket_ids) - names.keys()).order_by("pk")
    for bucket, manifest in manifests.values_list("pk", "fingerprint__manifest"):
        names[bucket] = name_backend(manifest, names.values())
        BackendNameRecord.objects.create(endpoint_id=endpoint, bucket_id=bucket, name=names[bucket])
    return {(endpoint, bucket): names[bucket] for bucket in bucket_ids}
