"""Sign-offs as a chain: each one's digest covers what it says and the digest of the one before it.

The service that writes one and the export that proves them read the same functions, so that a row changed or taken
out past the database's trigger shows in the next row. A sign-off of version 2 also covers the verdict that was signed,
word, reasons, numbers and policy, and what it was made with; one of version 3 the evidence that it was judged by.

Verdicts and sign-offs have a seal: an HMAC with a key that the database does not have. So a row that was written past
Evalboard is not shown as a verdict or a decision. Without a key (EVALBOARD_VERDICT_KEY) nothing is sealed or checked.
"""

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Any, Protocol

from django.conf import settings

from evalboard.core.digest import canonical_json, digest_bytes, digest_json
from evalboard.core.release import digest_verdict
from runs.models import SignOffRecord, Verdict

VERSION = 3


class Sealed(Protocol):
    """A row with a seal: an HMAC, and the id of its key."""

    seal: Any
    seal_key: Any


def digest_of(row: SignOffRecord) -> str:
    """Return the valid value of `row.digest`."""
    return digest_json(covered_by(row))


def covered_by(row: SignOffRecord) -> dict[str, Any]:
    """Return what a sign-off's digest covers. row: saved or not; its first previous_digest is ""."""
    covered: dict[str, Any] = {
        "previous": row.previous_digest,
        "release": row.release_id,
        "verdict": row.verdict_id,
        "person": row.person_id,
        "person_name": row.person_name,
        "decision": row.decision,
        "note": row.note,
        "expires_at": _instant(row.expires_at),
        "input_digest": row.input_digest,
        "created_at": _instant(row.created_at),
    }
    if row.version >= 2:
        covered |= {"version": row.version, "verdict_digest": row.verdict_digest, "made_with": row.made_with}
    if row.version >= 3:
        covered["evidence_digest"] = row.evidence_digest
    return covered


def seal_verdict(verdict: Verdict) -> dict[str, str]:
    """Return the columns that seal a verdict. Without a key they are empty."""
    if not settings.VERDICT_KEYS:
        return {"document_digest": "", "seal": "", "seal_key": ""}
    document_digest = digest_json(verdict.document)
    return {"document_digest": document_digest, **seal_columns(_sealed_of_verdict(verdict, document_digest))}


def is_sealed(verdict: Verdict) -> bool:
    """Tell whether a verdict's seal is right, without reading its document, or nothing is sealed here."""
    return not settings.VERDICT_KEYS or is_right_seal(verdict, _sealed_of_verdict(verdict, verdict.document_digest))


def has_sealed_document(verdict: Verdict) -> bool:
    """Tell the same of the document of a verdict whose seal is right."""
    return not settings.VERDICT_KEYS or digest_json(verdict.document) == verdict.document_digest


def seal_sign_off(row: SignOffRecord) -> dict[str, str]:
    """Return the columns that seal a sign-off with a digest. Without a key they are empty."""
    return seal_columns(row.digest) if settings.VERDICT_KEYS else {"seal": "", "seal_key": ""}


def seal_problem(row: SignOffRecord) -> str:
    """Return why a sign-off does not count; "" if its seal is right or nothing is sealed here."""
    if not settings.VERDICT_KEYS or (digest_of(row) == row.digest and is_right_seal(row, row.digest)):
        return ""
    if row.seal_key not in map(key_id, settings.VERDICT_KEYS):
        return "It was sealed with a key that is not known here (EVALBOARD_VERDICT_KEYS_BEFORE), or with none."
    return "Its seal is wrong: it was written or changed in the database."


def key_id(key: str) -> str:
    """Return what a row names its key by. It gives nothing of the key away."""
    return digest_bytes(f"evalboard verdict key {key}".encode())[:16]


def _sealed_of_verdict(verdict: Verdict, document_digest: str) -> list[Any]:
    policy = verdict.policy
    named = {"slug": policy.slug, "version": policy.version, "settings": policy.settings}
    return [verdict.release_id, verdict.word, verdict.input_digest, document_digest, named]


def seal_columns(content: Any) -> dict[str, str]:
    """Return the columns that seal a content. There must be a key."""
    key = settings.VERDICT_KEYS[0]
    return {"seal": _hmac(key, content), "seal_key": key_id(key)}


def is_right_seal(row: Sealed, content: Any) -> bool:
    """Tell whether the seal of a row is right for a content."""
    keys = [key for key in settings.VERDICT_KEYS if key_id(key) == row.seal_key]
    return any(hmac.compare_digest(_hmac(key, content), row.seal) for key in keys)


def _hmac(key: str, content: Any) -> str:
    return hmac.new(key.encode(), canonical_json(content), hashlib.sha256).hexdigest()


def verdict_digest(verdict: Verdict) -> str:
    """Return the digest of a verdict and its policy."""
    policy = verdict.policy
    named = {"slug": policy.slug, "version": policy.version, "settings": policy.settings}
    return digest_verdict(verdict.word, verdict.document, named)


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat(timespec="microseconds")
