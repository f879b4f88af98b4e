"""Sign-offs, everyone's, oldest first: whether each still follows from the one before and covers its verdict."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from runs import sign_off_chain
from runs.models import SignOff

CHUNK = 500  # rows read at a time, so that an export costs no memory
CHANGED = "The row does not match its own digest: it was changed after it was signed."
VERDICT_CHANGED = "The verdict that was signed, or its policy, was changed in the database afterwards."
PARTED = "It does not follow the sign-off before it: that one was changed, or one between was taken out."


@dataclass(frozen=True, slots=True, kw_only=True)
class SignOffRecord:
    """One sign-off as it was written. `problem`: why the chain does not hold here, "" where it does."""

    id: int
    release_id: int
    verdict_id: int
    verdict: str
    policy: str
    policy_version: int
    person: str
    decision: str
    note: str
    expires_at: datetime | None
    input_digest: str
    created_at: datetime
    made_with: str
    version: int
    verdict_digest: str
    previous_digest: str
    digest: str
    problem: str


def sign_off_records() -> Iterator[SignOffRecord]:
    """Yield every sign-off, oldest first, read in pieces."""
    before = ""
    rows = SignOff.objects.select_related("verdict__policy").order_by("id")
    for row in rows.iterator(chunk_size=CHUNK):
        yield _record(row, _problem(row, before))
        before = row.digest


def _problem(row: SignOff, before: str) -> str:
    if sign_off_chain.digest_of(row) != row.digest:
        return CHANGED
    if row.previous_digest != before:
        return PARTED
    if row.version >= 2 and sign_off_chain.verdict_digest(row.verdict) != row.verdict_digest:
        return VERDICT_CHANGED
    return ""


def _record(row: SignOff, problem: str) -> SignOffRecord:
    return SignOffRecord(
        id=row.pk,
        release_id=row.release_id,
        verdict_id=row.verdict_id,
        verdict=row.verdict.word,
        policy=row.verdict.policy.slug,
        policy_version=row.verdict.policy.version,
        person=row.person_name,
        decision=row.decision,
        note=row.note,
        expires_at=row.expires_at,
        input_digest=row.input_digest,
        created_at=row.created_at,
        made_with=row.made_with,
        version=row.version,
        verdict_digest=row.verdict_digest,
        previous_digest=row.previous_digest,
        digest=row.digest,
        problem=problem,
    )
