"""Read uploads for REST and pages."""

from typing import Any

from django.db.models import Prefetch
from django.urls import reverse

from evalboard.contract import upload as contract
from evalboard.contract.parts import Done
from evalboard.core.errors import NotFound
from runs.models import UploadPartRecord, UploadRecord
from runs.store import newest_page


def upload_row(upload_id: int) -> contract.Upload:
    """Raises NotFound."""
    rows = _rows(UploadRecord.objects.filter(pk=upload_id))
    if not rows:
        raise NotFound(f"There is no upload {upload_id}.")
    return rows[0]


def upload_rows(
    *, created_by: Any = None, after: int | None = None, before: int | None = None, limit: int
) -> tuple[contract.Upload, ...]:
    """Return up to `limit` uploads, newest first: older than `after`, or just newer than `before`.

    created_by: only this person's uploads; None: all.
    """
    uploads = UploadRecord.objects.all() if created_by is None else UploadRecord.objects.filter(created_by=created_by)
    return newest_page(uploads, _rows, after=after, before=before, limit=limit)


def open_uploads() -> tuple[contract.Upload, ...]:
    """Return unfinished and recently failed uploads, newest first."""
    return _rows(UploadRecord.objects.exclude(status=UploadRecord.Status.FINISHED).order_by("-id"))


def _rows(uploads: Any) -> tuple[contract.Upload, ...]:
    parts = Prefetch("parts", UploadPartRecord.objects.defer("data").order_by("offset"))
    return tuple(_row(each) for each in uploads.select_related("created_by", "version").prefetch_related(parts))


def _row(upload: UploadRecord) -> contract.Upload:
    parts = tuple(
        contract.UploadPart(offset=part.offset, n_bytes=part.n_bytes, sha256=part.sha256) for part in upload.parts.all()
    )
    n_total = sum(part.n_bytes for part in parts) if upload.n_bytes is None else upload.n_bytes
    version = upload.version.number if upload.version else None
    stored_at = reverse("suite_version", args=[upload.slug, version]) if version else reverse("suites")
    return contract.Upload.from_record(
        upload,
        id=str(upload.pk),
        suite=upload.slug,
        parts=parts,
        progress=Done(n_done=upload.n_read, n_total=n_total),
        version=version,
        created_by=upload.created_by.get_username() if upload.created_by else None,
        url=stored_at,
    )
