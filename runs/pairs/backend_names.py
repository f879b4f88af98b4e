"""Give each backend of an endpoint one permanent name for all lists."""

from collections.abc import Collection
from itertools import groupby

from django.db import transaction

from evalboard.wording.manifest import name_backend
from runs.models import BackendNameRecord, BucketRecord, EndpointRecord

EndpointBucket = tuple[int, int]  # ids


def read_names(places: Collection[EndpointBucket]) -> dict[EndpointBucket, str]:
    """Return what these buckets are called on these endpoints; the oldest without a name gets one first."""
    endpoints, buckets = {endpoint for endpoint, _ in places}, {bucket for _, bucket in places}
    rows = BackendNameRecord.objects.filter(endpoint__in=endpoints, bucket__in=buckets) if places else ()
    known = {(row.endpoint_id, row.bucket_id): row.name for row in rows}
    for endpoint, unnamed in groupby(sorted(set(places) - known.keys()), key=lambda place: place[0]):
        known |= _give_names(endpoint, [bucket for _, bucket in unnamed])
    return {place: known[place] for place in places}


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
