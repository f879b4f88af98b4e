"""The chain of the audit trail: each line's digest covers the line and the digest of the line before.

PostgreSQL computes the digests (runs/migrations/_audit.py). Here they are computed again, of what a server exports.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from evalboard.contract.audit import AuditChain

FIELDS = (
    *("previous", "number", "at", "actor", "person", "credential", "address", "via", "act", "kind", "subject", "name"),
    *("changes", "request_id", "role"),
)
CUT = "cut"  # the act of a line that says up to which number older lines were removed


def digest_line(line: Mapping[str, Any]) -> str:
    """Return the right digest of an exported line: 64 hexadecimal digits."""
    covered = [line[name] for name in FIELDS]
    covered[FIELDS.index("at")] = _to_microseconds(line["at"])
    # As PostgreSQL writes jsonb: shorter keys come first, then in the order of their bytes.
    names = sorted(line["changes"], key=lambda name: (len(name.encode()), name.encode()))
    covered[FIELDS.index("changes")] = {name: line["changes"][name] for name in names}
    return hashlib.sha256(json.dumps(covered, ensure_ascii=False).encode()).hexdigest()


def follow_chain(lines: Iterable[Mapping[str, Any]]) -> AuditChain:
    """Follow exported lines, oldest first, to the first that is wrong.

    The oldest line is number 1, or a later line says that those before it were removed.
    """
    n_lines, first, cut = 0, None, ("", "")
    last: Mapping[str, Any] | None = None
    for line in lines:
        n_lines += 1
        if first is None:
            first = line
        problem = _find_problem(line, last)
        if problem:
            return _chain(n_lines, first, last, line["number"], problem)
        if line["act"] == CUT:
            cut = line["subject"], (line["changes"].get("digest") or [""])[0] or ""
        last = line
    if first is not None and first["number"] != 1 and cut != (str(first["number"] - 1), first["previous"]):
        problem = f"Line {first['number']} is the oldest, and no line says that those before it were removed."
        return _chain(n_lines, first, last, first["number"], problem)
    return _chain(n_lines, first, last, None, "")


def _find_problem(line: Mapping[str, Any], last: Mapping[str, Any] | None) -> str:
    if last is not None and line["number"] != last["number"] + 1:
        return f"Line {last['number'] + 1} is missing."
    if last is not None and line["previous"] != last["digest"]:
        return f"Line {line['number']} does not follow from line {last['number']}."
    if last is None and line["number"] == 1 and line["previous"]:
        return "Line 1 follows from another line."
    if line["digest"] != digest_line(line):
        return f"Line {line['number']} was changed: its digest is wrong."
    return ""


def _chain(
    n_lines: int, first: Mapping[str, Any] | None, last: Mapping[str, Any] | None, broken: int | None, problem: str
) -> AuditChain:
    return AuditChain(
        n_lines=n_lines,
        first=first["number"] if first else None,
        last=last["number"] if last else None,
        digest=last["digest"] if last else "",
        broken=broken,
        problem=problem,
    )


def _to_microseconds(at: str) -> str:
    seconds, _, fraction = at.removesuffix("Z").partition(".")
    return f"{seconds}.{fraction:0<6}Z"
