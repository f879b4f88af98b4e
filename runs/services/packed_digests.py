"""Digests of a repeat's packed columns and scores, by which a comparison or a verdict knows what it was made from."""

from typing import Any

from evalboard.core import digest
from runs.models import CaseColumns, RepeatScore


def packed_digest(*, bucket_ids: list[int] | None = None, **packed: bytes) -> str:
    """One digest of packed columns by name."""
    parts = {name: digest.short_digest(data).hex() for name, data in packed.items()}
    return digest.digest_json({**parts, "bucket_ids": bucket_ids})


def columns_digest(repeat_id: int) -> str:
    """The digest of a repeat's columns, stored now where an earlier version packed them without one."""
    row = CaseColumns.objects.get(repeat=repeat_id)
    packed: dict[str, Any] = {name: bytes(getattr(row, name)) for name in ("text_digests", "trace_digests", "buckets")}
    packed |= {} if row.marks is None else {"marks": bytes(row.marks)}
    row.digest = row.digest or packed_digest(**packed, bucket_ids=row.bucket_ids)
    row.save(update_fields=["digest"])
    return row.digest


def score_digest(row: RepeatScore) -> str:
    """The digest of a repeat's scores, stored now where an earlier version kept them without one."""
    row.digest = row.digest or packed_digest(scores=bytes(row.scores), reasons=bytes(row.reasons))
    row.save(update_fields=["digest"])
    return row.digest
