"""Every sign-off with the proof of it: the chain, the verdict that was signed, and that verdict taken anew.

Not within a snapshot, as the other exports: sign-offs are only ever added, and judging again takes its time.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

from evalboard.core.errors import EvalboardError
from runs.models import Verdict
from runs.release import SignOffRecord, sign_off_records, verdict_change


def sign_off_lines() -> Iterator[str]:
    """The export: one JSON object a line, strict, with the names of docs/api.md. Each verdict is judged once."""
    taken_anew = lru_cache(maxsize=None)(_change)
    for record in sign_off_records():
        problem = record.problem or taken_anew(record.verdict_id)
        yield json.dumps(_exported(record, problem), ensure_ascii=False, allow_nan=False) + "\n"


def _change(verdict_id: int) -> str:
    """How the stored verdict differs from what its inputs give; "" where it does not, or nobody can tell any more."""
    verdict = Verdict.objects.select_related("policy").get(pk=verdict_id)
    try:
        return verdict_change(verdict)
    except EvalboardError as problem:  # what it rested on can no longer be judged
        return f"Its verdict cannot be taken anew: {problem.detail}"


def _exported(record: SignOffRecord, problem: str) -> dict[str, object]:
    return {
        "id": str(record.id),
        "release": str(record.release_id),
        "verdict": record.verdict,
        "policy": {"name": record.policy, "version": record.policy_version},
        "person": record.person,
        "made_with": record.made_with or None,
        "decision": record.decision,
        "note": record.note,
        "expires_at": _instant(record.expires_at),
        "input_digest": record.input_digest,
        "created_at": _instant(record.created_at),
        "version": record.version,
        "verdict_digest": record.verdict_digest or None,
        "previous_digest": record.previous_digest,
        "digest": record.digest,
        "is_intact": not problem,
        "problem": problem or None,
    }


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")
