"""Sign-offs as a chain: each one's digest covers what it says and the digest of the one before it.

The service that writes one and the export that proves them read the same function, so that a row changed or taken
out past the database's trigger shows in the next row.
"""

from datetime import UTC, datetime

from evalboard.core.digest import digest_json
from runs.models import SignOff


def digest_of(row: SignOff) -> str:
    """What `row.digest` must be; `row` may not be saved yet, and `previous_digest` is "" for the very first."""
    return digest_json(
        {
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
    )


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat(timespec="microseconds")
