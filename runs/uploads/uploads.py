"""Upload suites in parts: open, send each part, close; then a worker parses them.

Web requests only store parts. A part has whole lines, so each can be parsed separately, and no more of a suite than one
part is ever in memory (`runs.uploads.reading`).
"""

import hashlib
from datetime import timedelta
from typing import Any

import zstandard
from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Now

from evalboard.core.errors import Conflict, InvalidInput, Refused
from evalboard.core.suite import parse_head
from runs.models import UploadPartRecord, UploadRecord
from runs.store import forget_images, require_row

MAX_PART_BYTES = 16 * 2**20  # of lines; a case has at most 4 MB
MAX_BYTES = 2**31
MAX_OPEN = 5  # of one person
KEPT = timedelta(days=1)  # untouched ones are deleted after this


def open_upload(*, slug: str, title: str = "", user: Any = None) -> UploadRecord:
    """Begin an upload. Raises InvalidInput, or Conflict if the person has too many open."""
    parse_head({"scorer": None}, slug=slug, title=title)
    n_open = UploadRecord.objects.filter(created_by=user, status=UploadRecord.Status.OPEN).count()
    if n_open >= MAX_OPEN:
        raise Conflict(
            f"You have {n_open} uploads open, and may have {MAX_OPEN}. Go on with one of them, or delete it."
        )
    return UploadRecord.objects.create(slug=slug, title=title, created_by=user)


def store_part(
    *, upload_id: int, offset: int, lines: bytes, sha256: str, user: Any = None
) -> tuple[UploadPartRecord, bool]:
    """Store a part of an upload; False if the same part is stored already, so retries are harmless.

    offset: in bytes, of its first line among all lines. sha256: what the sender says that the lines have. Raises
    NotFound, Refused where another person opened the upload, InvalidInput, or Conflict where the upload takes no parts,
    or has another one there.
    """
    digest = hashlib.sha256(lines).hexdigest()
    if digest != sha256.lower():
        raise InvalidInput(
            "The part came damaged; send it again.", fields={"sha256": f"The {len(lines):,} bytes have {digest}."}
        )
    if not lines or len(lines) > MAX_PART_BYTES:
        raise InvalidInput("The part is not valid.", fields={"": f"Must have 1 to {MAX_PART_BYTES:,} bytes."})
    if offset + len(lines) > MAX_BYTES:
        raise InvalidInput("The suite is too large.", fields={"offset": f"A suite has at most {MAX_BYTES:,} bytes."})
    packed = zstandard.ZstdCompressor().compress(lines)
    with transaction.atomic():
        upload = _open(upload_id, user)
        part, is_new = UploadPartRecord.objects.get_or_create(
            upload=upload, offset=offset, defaults={"n_bytes": len(lines), "sha256": digest, "data": packed}
        )
        if part.sha256 != digest:
            raise Conflict(
                f"Upload {upload_id} has another part at byte {offset:,}. Cut the file where it was cut first."
            )
        UploadRecord.objects.filter(pk=upload.pk).update(touched_at=Now())
    return part, is_new


def close_upload(*, upload_id: int, n_bytes: int, sha256: str, user: Any = None) -> UploadRecord:
    """Declare an upload complete, for a worker to parse. Closing twice is harmless.

    sha256: of all lines, in the order of their offsets, before they were compressed. Raises NotFound, Refused where
    another person opened the upload, InvalidInput where the parts have another checksum, or Conflict naming the first
    byte that is missing, or that two parts have.
    """
    with transaction.atomic():
        upload = _locked(upload_id)
        _refuse_others(upload, user)
        if upload.status != UploadRecord.Status.OPEN and upload.n_bytes == n_bytes:
            return upload
        upload = _open(upload_id, user)
        end = 0
        for offset, length in upload.parts.values_list("offset", "n_bytes").order_by("offset"):
            if offset != end:
                break
            end += length
        if end != n_bytes or upload.parts.aggregate(n=Sum("n_bytes"))["n"] != n_bytes:
            raise Conflict(
                f"Upload {upload_id} is not whole: its parts reach byte {end:,} of {n_bytes:,} without a gap."
            )
        if (digest := _digest(upload)) != sha256.lower():
            raise InvalidInput(
                f"The lines of upload {upload_id} have another SHA-256. Delete it and send the file again.",
                fields={"sha256": f"Its {n_bytes:,} bytes have {digest}."},
            )
        upload.status, upload.n_bytes = UploadRecord.Status.READING, n_bytes
        upload.save(update_fields=["status", "n_bytes"])
    return upload


def delete_upload(*, upload_id: int, user: Any = None, may_all: bool = False) -> None:
    """Forget an upload with its parts; a version that was made of it stays.

    may_all: whether `user` may delete the uploads of others. Raises NotFound, or Refused.
    """
    with transaction.atomic():
        upload = _locked(upload_id)
        if not may_all:
            _refuse_others(upload, user)
        upload.delete()


def forget_old_uploads() -> None:
    """Delete uploads untouched for a day, interrupted or ended, and images that no suite got."""
    old = UploadRecord.objects.exclude(status=UploadRecord.Status.READING).filter(touched_at__lt=Now() - KEPT)
    old.delete()
    forget_images()


def _locked(upload_id: int) -> UploadRecord:
    return require_row(
        UploadRecord.objects.select_for_update(no_key=True, of=("self",)).filter(pk=upload_id),
        f"There is no upload {upload_id}.",
    )


def _refuse_others(upload: UploadRecord, user: Any) -> None:
    """Raise Refused where `user` did not open the upload."""
    if upload.created_by_id != (user and user.pk):
        owner = upload.created_by.get_username() if upload.created_by else "a person whose account is gone"
        raise Refused(f"Upload {upload.pk} was opened by {owner}. Open an upload of your own.")


def _digest(upload: UploadRecord) -> str:
    """Return the SHA-256 of an upload's lines, reading one part at a time."""
    digest, unpacker = hashlib.sha256(), zstandard.ZstdDecompressor()
    parts = upload.parts.order_by("offset").values_list("data", "n_bytes")
    for data, n_bytes in parts.iterator(chunk_size=1):
        digest.update(unpacker.decompress(bytes(data), max_output_size=n_bytes))
    return digest.hexdigest()


def _open(upload_id: int, user: Any) -> UploadRecord:
    upload = _locked(upload_id)
    _refuse_others(upload, user)
    if upload.status != UploadRecord.Status.OPEN:
        raise Conflict(f"Upload {upload_id} is closed; it is {upload.status}.")
    return upload
