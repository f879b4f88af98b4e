"""Sign-offs as they are exported: everyone's, oldest first, and whether each still follows from the one before."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from runs import sign_off_chain
from runs.models import SignOff

CHUNK = 500  # rows read at a time, so that an export costs no memory
CHANGED = "The row does not match its own digest: it was changed after it was signed."
PARTED = "It does not follow the sign-off before it: that one was changed, or one between was taken out."


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOffRecord:
    """One sign-off as it was written. `problem`: why the chain does not hold here, "" where it does."""

    id: int
    release_id: int
    verdict: str
    policy: str
    policy_version: int
    person: str
    decision: str
    note: str
    expires_at: datetime | None
    input_digest: str
    created_at: datetime
    previous_digest: str
    digest: str
    problem: str


def sign_off_records() -> Iterator[SignOffRecord]:
    """Every sign-off, oldest first, read in pieces."""
    before = ""
    rows = SignOff.objects.select_related("verdict__policy").defer("verdict__document").order_by("id")
    for row in rows.iterator(chunk_size=CHUNK):
        yield _record(row, _problem(row, before))
        before = row.digest


def sign_off_lines() -> Iterator[str]:
    """The export: one JSON object a line, strict, with the names of docs/api.md."""
    for record in sign_off_records():
        yield json.dumps(_exported(record), ensure_ascii=False, allow_nan=False) + "\n"


def _problem(row: SignOff, before: str) -> str:
    if sign_off_chain.digest_of(row) != row.digest:
        return CHANGED
    return "" if row.previous_digest == before else PARTED


def _record(row: SignOff, problem: str) -> SignOffRecord:
    return SignOffRecord(
        id=row.pk,
        release_id=row.release_id,
        verdict=row.verdict.word,
        policy=row.verdict.policy.slug,
        policy_version=row.verdict.policy.version,
        person=row.person_name,
        decision=row.decision,
        note=row.note,
        expires_at=row.expires_at,
        input_digest=row.input_digest,
        created_at=row.created_at,
        previous_digest=row.previous_digest,
        digest=row.digest,
        problem=problem,
    )


def _exported(record: SignOffRecord) -> dict[str, object]:
    return {
        "id": str(record.id),
        "release": str(record.release_id),
        "verdict": record.verdict,
        "policy": {"name": record.policy, "version": record.policy_version},
        "person": record.person,
        "decision": record.decision,
        "note": record.note,
        "expires_at": _instant(record.expires_at),
        "input_digest": record.input_digest,
        "created_at": _instant(record.created_at),
        "previous_digest": record.previous_digest,
        "digest": record.digest,
        "is_intact": not record.problem,
        "problem": record.problem or None,
    }


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")
