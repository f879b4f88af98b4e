"""Read the audit trail, check it, seal it, and let its oldest lines go."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone

from evalboard.contract.audit import AuditChain, AuditCheck, AuditLine
from evalboard.core.audit import follow_chain
from runs.models import AuditLineRecord, AuditSeal
from runs.sign_off_chain import is_right_seal, seal_columns
from runs.store import RecordList, take_as_long_as_it_takes

AUDIT_ORDERS = {"id": "id"}
READ_AT_ONCE = 2000
SEALED_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """What lines to show; "" and None filter nothing. since, until: instants, until is exclusive."""

    person: str = ""
    act: str = ""
    kind: str = ""
    subject: str = ""
    address: str = ""
    since: datetime | None = None
    until: datetime | None = None


def audit_lines(wanted: AuditFilter) -> RecordList[AuditLine]:
    """Return the lines of a filter, newest first, as a list that pages read."""
    return RecordList(_filtered(wanted), lambda records: tuple(map(_line, records)), AUDIT_ORDERS)


def export_lines(wanted: AuditFilter) -> Iterator[bytes]:
    """Yield the lines of a filter as JSON lines, oldest first."""
    for line in _filtered(wanted).exclude(number=None).order_by("number").iterator(chunk_size=READ_AT_ONCE):
        yield json.dumps(_line(line).to_json(), ensure_ascii=False).encode() + b"\n"


def check_trail(*, is_restored: bool = False) -> AuditCheck:
    """Follow all lines and compare the seals; the answer names the first line that is wrong.

    is_restored: no scheduler has run since the newest line, so seals may be as late as they were then.
    """
    take_as_long_as_it_takes()
    stored = AuditLineRecord.objects.exclude(number=None).order_by("number").iterator(chunk_size=READ_AT_ONCE)
    chain = follow_chain(_line(line).to_json() for line in stored)
    newest = AuditLineRecord.objects.exclude(number=None).order_by("-number").values_list("at", flat=True)
    now = (newest.first() if is_restored else None) or timezone.now()
    sealed_to, broken, problem = _check_seals(chain, now)
    judged = {"sealed_to": sealed_to, "is_whole": broken is None and not problem, "broken": broken, "problem": problem}
    return AuditCheck.from_record(chain, **judged)


def seal_trail() -> bool:
    """Seal the last line, and so all before it. Return False without a new line or a key."""
    last = AuditLineRecord.objects.exclude(number=None).order_by("-number").values_list("number", "digest").first()
    if not settings.VERDICT_KEYS or last is None:
        return False
    number, digest = last[0] or 0, last[1]
    if AuditSeal.objects.filter(pk=number).exists():
        return False
    row = AuditSeal(number=number, digest=digest, **seal_columns(_sealed(number, digest)))
    return bool(AuditSeal.objects.bulk_create([row], ignore_conflicts=True))


def cut_trail() -> bool:
    """Remove lines older than EVALBOARD_AUDIT_DAYS; another line says so. Return whether any went."""
    if not settings.AUDIT_DAYS:
        return False
    limit = timezone.now() - timedelta(days=settings.AUDIT_DAYS)
    if not AuditLineRecord.objects.filter(at__lt=limit).exists():
        return False
    with connection.cursor() as cursor:
        cursor.execute("SELECT runs_audit_cut(%s)", [settings.AUDIT_DAYS])
        return bool(cursor.fetchone()[0])


def _check_seals(chain: AuditChain, now: datetime) -> tuple[int | None, int | None, str]:
    """Return the newest sealed line, and the first wrong one with its problem."""
    if not settings.VERDICT_KEYS:
        return None, chain.broken, chain.problem
    sealed_to = None
    digests = dict(
        AuditLineRecord.objects.filter(number__in=AuditSeal.objects.values("pk")).values_list("number", "digest")
    )
    for seal in AuditSeal.objects.order_by("pk"):
        if chain.broken is not None and seal.pk >= chain.broken:
            break
        if not is_right_seal(seal, _sealed(seal.pk, seal.digest)) or digests.get(seal.pk) != seal.digest:
            begins = "the beginning" if sealed_to is None else f"line {sealed_to}"
            return sealed_to, seal.pk, f"The seal of line {seal.pk} is wrong: a line since {begins} was changed."
        sealed_to = seal.pk
    if chain.broken is not None:
        return sealed_to, chain.broken, chain.problem
    late = AuditLineRecord.objects.filter(number__gt=sealed_to or 0, at__lt=now - SEALED_WITHIN)
    if (first := late.order_by("number").values_list("number", flat=True).first()) is not None:
        return sealed_to, first, f"Line {first} has no seal. Seals are missing, or no scheduler runs that has the key."
    return sealed_to, None, ""


def _sealed(number: int, digest: str) -> list[object]:
    return ["audit", number, digest]


def _filtered(wanted: AuditFilter) -> QuerySet[AuditLineRecord]:
    names = ("person", "act", "kind", "subject", "address")
    given = {name: getattr(wanted, name) for name in names if getattr(wanted, name)}
    lines = AuditLineRecord.objects.filter(**given)
    if wanted.since is not None:
        lines = lines.filter(at__gte=wanted.since)
    return lines if wanted.until is None else lines.filter(at__lt=wanted.until)


def _line(record: AuditLineRecord) -> AuditLine:
    changes = {name: (before, after) for name, (before, after) in record.changes.items()}
    return AuditLine.from_record(record, changes=changes)
