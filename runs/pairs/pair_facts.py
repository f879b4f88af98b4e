"""Facts common to a run's or a bucket's responses, vocabularies, and the permanent names of backends."""

from collections.abc import Collection, Iterable
from itertools import groupby

from django.db import transaction
from django.db.models import OuterRef, Subquery

from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.run import Draws
from evalboard.core.compare import (
    ServingFacts,
    WordsById,
    compared_settings,
    draws_of,
    find_other_model,
    fingerprint_of,
    is_greedy_wanted,
    limits_of,
    logits_of,
    request_settings,
    setting_facts,
    settings_seen,
    stack_of,
)
from evalboard.core.compare import served_beside as find_served
from evalboard.core.profile import find_temperature, is_not_greedy, list_setting_facts
from evalboard.core.trace import Vocabulary
from evalboard.wording.manifest import name_backend
from runs.catalogue import OneNames
from runs.models import (
    BackendNameRecord,
    BucketRecord,
    EndpointRecord,
    FingerprintRecord,
    ProfileRecord,
    RunRecord,
    VocabularyRecord,
)

__all__ = [
    "WORDS",
    "compared_settings",
    "count_not_greedy",
    "draws_of",
    "find_other_model",
    "fingerprint_of",
    "is_greedy_wanted",
    "limits_of",
    "logits_of",
    "planned_draws",
    "request_settings",
    "served_beside",
    "setting_facts",
    "settings_seen",
    "stack_of",
    "stored_words",
]


def planned_draws(profile: ProfileRecord, endpoint: EndpointRecord, *, seed: int | None = None) -> Draws:
    """Return how a run's repeats would be sampled, as far as known before. seed None: the profile's."""
    wanted = profile.settings["sampling"]
    facts = list_setting_facts(wanted, is_external=endpoint.is_remote, is_logged=False, seen=None)
    return Draws(find_temperature(facts), wanted.get("seed") if seed is None else seed, is_external=endpoint.is_remote)


def count_not_greedy(run: RunRecord) -> tuple[int, int] | None:
    """Return (answers with a token that is not the most likely one, all answers); None if greedy."""
    seen = settings_seen(run)
    return (seen.n_not_greedy, seen.n_listed) if seen is not None and is_not_greedy(seen) else None


def served_beside(run: RunRecord, other: RunRecord, buckets: Iterable[BucketRecord]) -> dict[int, ServingFacts]:
    """Return what `core.compare.served_beside` does, by the names that people called the same."""
    return find_served(run, other, buckets, OneNames())


def _read_vocabulary(pk: int) -> Vocabulary:
    return Vocabulary.unpack(bytes(VocabularyRecord.objects.values_list("data", flat=True).get(pk=pk)))


WORDS = WordsById(_read_vocabulary)
stored_words = WORDS.read


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


def name_on(endpoint: str, fingerprint: str) -> Subquery:
    """Return a row's fingerprint's name on its endpoint, for a query: the oldest of its buckets there."""
    named = BackendNameRecord.objects.filter(endpoint=OuterRef(endpoint), bucket__fingerprint=OuterRef(fingerprint))
    return Subquery(named.order_by("pk").values("name")[:1])


def name_fingerprints(fingerprints: Collection[int]) -> dict[tuple[str, int], str]:
    """Return the names of fingerprints by endpoint and fingerprint: the oldest of their buckets there."""
    rows = BackendNameRecord.objects.filter(bucket__fingerprint__in=fingerprints).order_by("-pk")
    named = rows.values_list("endpoint__slug", "bucket__fingerprint", "name")
    return {(endpoint, fingerprint): name for endpoint, fingerprint, name in named}


def describe_fingerprint(row: FingerprintRecord, backend: str | None = None) -> FingerprintNamed:
    """Return a fingerprint as other things name it."""
    return FingerprintNamed(id=str(row.pk), digest=row.digest, label=row.label, backend=backend)


def read_stacks(endpoint: str, digests: Collection[str]) -> dict[str, FingerprintNamed]:
    """Return fingerprints by their digests, each with its name on the endpoint."""
    named = BackendNameRecord.objects.filter(endpoint__slug=endpoint, bucket__fingerprint=OuterRef("pk"))
    rows = FingerprintRecord.objects.filter(digest__in=digests).defer("manifest")
    rows = rows.annotate(name=Subquery(named.order_by("pk").values("name")[:1]))
    return {row.digest: describe_fingerprint(row, row.name) for row in rows}


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
