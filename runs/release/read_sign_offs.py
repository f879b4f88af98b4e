"""Read all sign-offs, oldest first, and check the chain and each signed verdict."""

from collections.abc import Callable, Iterator

from evalboard.contract.release import PolicyNamed, SignOffLine
from runs import sign_off_chain
from runs.models import SignOffRecord

CHUNK = 500  # rows read at a time, so that an export costs no memory
CHANGED = "The row does not match its own digest: it was changed after it was signed."
VERDICT_CHANGED = "The verdict that was signed, or its policy, was changed in the database afterwards."
PARTED = "It does not follow the sign-off before it: that one was changed, or one between was taken out."


def sign_off_lines(change: Callable[[int], str]) -> Iterator[SignOffLine]:
    """Yield every sign-off, oldest first. change: says how a verdict, by id, was changed since."""
    before = ""
    rows = SignOffRecord.objects.select_related("verdict__policy").order_by("id")
    for row in rows.iterator(chunk_size=CHUNK):
        problem = _problem(row, before) or change(row.verdict_id)
        policy = row.verdict.policy
        yield SignOffLine.from_record(
            row,
            id=str(row.pk),
            release=str(row.release_id),
            verdict=row.verdict.word,
            policy=PolicyNamed(name=policy.slug, version=policy.version),
            person=row.person_name,
            made_with=row.made_with or None,
            verdict_digest=row.verdict_digest or None,
            evidence_digest=row.evidence_digest or None,
            is_intact=not problem,
            problem=problem or None,
        )
        before = row.digest


def _problem(row: SignOffRecord, before: str) -> str:
    if sign_off_chain.digest_of(row) != row.digest:
        return CHANGED
    if row.previous_digest != before:
        return PARTED
    if row.version >= 2 and sign_off_chain.verdict_digest(row.verdict) != row.verdict_digest:
        return VERDICT_CHANGED
    return ""
