"""Images of suites' messages: each is stored once, under the digest of its bytes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db.models.functions import Now

from evalboard.core.errors import InvalidInput
from evalboard.core.images import STORED, Image, find_images, put_images
from evalboard.core.suite import CaseDocument
from runs.models import Case, ImageRecord, UploadedCase

KEPT = timedelta(days=8)  # longer than a trial and an upload are kept


def keep_images(cases: Iterable[CaseDocument], *, in_suite: bool = False) -> None:
    """Store the images of cases, in the caller's transaction.

    in_suite: a suite has them from now on. Raises InvalidInput where a case names one that is neither given nor stored.
    """
    given: dict[str, Image] = {}
    named: dict[str, str] = {}
    for case in cases:
        given |= {image.digest: image for image in case.images}
        named |= dict.fromkeys(stored_digests(case.messages), case.id)
    if not named:
        return
    known = _keep_known(named, in_suite=in_suite)
    unknown = named.keys() - given.keys() - known
    if unknown:
        digest = min(unknown)
        text = f"names the image {STORED}{digest}, which is not stored here; send the image itself"
        raise InvalidInput("The suite is not valid.", fields={f"case {named[digest]}": text})
    new = [given[digest] for digest in sorted(given.keys() - known)]
    rows = (
        ImageRecord(digest=each.digest, media_type=each.media_type, data=each.data, is_in_suite=in_suite)
        for each in new
    )
    ImageRecord.objects.bulk_create(rows, ignore_conflicts=True)


def mark_images(cases: Iterable[Mapping[str, Any]]) -> None:
    """Note that a suite has the images of cases. cases: the contents of stored ones."""
    digests = {digest for content in cases for digest in stored_digests(content["messages"])}
    _keep_known(digests, in_suite=True)


def _keep_known(digests: Collection[str], *, in_suite: bool) -> set[str]:
    """Lock the stored ones of these images until the caller commits, and return their digests."""
    rows = ImageRecord.objects.filter(digest__in=digests).order_by("digest").select_for_update(no_key=True)
    known = set(rows.values_list("digest", flat=True))
    marks = {"kept_at": Now()} | ({"is_in_suite": True} if in_suite else {})
    ImageRecord.objects.filter(digest__in=known).update(**marks)
    return known


def with_images(messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return messages as they are sent: with stored images in the place of their digests."""
    digests = stored_digests(messages)
    if not digests:
        return messages
    rows = ImageRecord.objects.filter(digest__in=digests).values_list("digest", "media_type", "data")
    return put_images(messages, {digest: Image(digest, kind, bytes(data)) for digest, kind, data in rows})


def delete_unused_images(digests: Iterable[str]) -> None:
    """Delete those of these images that no case names, also none of an upload that has not ended."""
    for image in ImageRecord.objects.filter(digest__in=digests).order_by("digest").select_for_update().only("digest"):
        named = [{"content": [{"image_url": {"url": f"{STORED}{image.digest}"}}]}]
        if not any(cases.objects.filter(content__messages__contains=named).exists() for cases in (Case, UploadedCase)):
            image.delete()


def forget_images() -> None:
    """Delete images that no suite got: of trials, and of uploads that failed or were interrupted."""
    ImageRecord.objects.filter(is_in_suite=False, kept_at__lt=Now() - KEPT).delete()


def stored_digests(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the digests of the messages' stored images, in order."""
    return [url.removeprefix(STORED) for url in find_images(messages) if url.startswith(STORED)]
