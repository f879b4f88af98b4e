"""Images of suites' messages: each is stored once, under the digest of its bytes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalboard.core.errors import InvalidInput
from evalboard.core.images import STORED, Image, find_images, put_images
from evalboard.core.suite import CaseDocument
from runs.models import Case, ImageRecord


def keep_images(cases: Iterable[CaseDocument]) -> None:
    """Store the images of cases.

    Raises InvalidInput where a case names one that is neither given nor stored.
    """
    given: dict[str, Image] = {}
    named: dict[str, str] = {}
    for case in cases:
        given |= {image.digest: image for image in case.images}
        named |= dict.fromkeys(stored_digests(case.messages), case.id)
    if not named:
        return
    known = set(ImageRecord.objects.filter(digest__in=named).values_list("digest", flat=True))
    unknown = named.keys() - given.keys() - known
    if unknown:
        digest = min(unknown)
        text = f"names the image {STORED}{digest}, which is not stored here; send the image itself"
        raise InvalidInput("The suite is not valid.", fields={f"case {named[digest]}": text})
    new = [ImageRecord(digest=each.digest, media_type=each.media_type, data=each.data) for each in given.values()]
    ImageRecord.objects.bulk_create([each for each in new if each.digest not in known], ignore_conflicts=True)


def with_images(messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Return messages as they are sent: with stored images in the place of their digests."""
    digests = stored_digests(messages)
    if not digests:
        return messages
    rows = ImageRecord.objects.filter(digest__in=digests).values_list("digest", "media_type", "data")
    return put_images(messages, {digest: Image(digest, kind, bytes(data)) for digest, kind, data in rows})


def delete_unused_images(digests: Iterable[str]) -> None:
    """Delete those of these images that no case names."""
    for digest in digests:
        named = [{"content": [{"image_url": {"url": f"{STORED}{digest}"}}]}]
        if not Case.objects.filter(content__messages__contains=named).exists():
            ImageRecord.objects.filter(pk=digest).delete()


def stored_digests(messages: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the digests of the messages' stored images, in order."""
    return [url.removeprefix(STORED) for url in find_images(messages) if url.startswith(STORED)]
