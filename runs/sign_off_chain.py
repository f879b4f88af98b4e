"""Sign-offs as a chain: each one's digest covers what it says and the digest of the one before it.

The service that writes one and the export that proves them read the same functions, so that a row changed or taken
out past the database's trigger shows in the next row. A sign-off of version 2 also covers the verdict that was signed,
word, reasons, numbers and policy, and what it was made with; one of version 3 the evidence that it was judged by.
"""

from datetime import UTC, datetime
from typing import Any

from evalboard.core.digest import digest_json
from evalboard.core.release import digest_verdict
from runs.models import SignOffRecord, Verdict

VERSION = 3


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


def verdict_digest(verdict: Verdict) -> str:
    """Return the digest of a verdict and its policy."""
    policy = verdict.policy
    named = {"slug": policy.slug, "version": policy.version, "settings": policy.settings}
    return digest_verdict(verdict.word, verdict.document, named)


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat(timespec="microseconds")
