"""Other tools' logs that were imported, and the runs that were read from them."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evalboard.core.errors import NotFound
from runs.models import Import, Run
from runs.selectors.run import RunRow
from runs.selectors.run_list import rows_of


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """A file of the log, which is not kept: its name, bytes and SHA-256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ImportRow:
    """One reading of a log. `notes` are sentences: what it does not say, or was not taken over."""

    id: int
    format: str
    tool: str
    files: tuple[ImportedFile, ...]
    notes: tuple[str, ...]
    runs: tuple[RunRow, ...]
    created_by: str
    created_at: datetime


def import_row(import_id: int) -> ImportRow:
    """Raises NotFound."""
    rows = _rows(Import.objects.filter(pk=import_id))
    if not rows:
        raise NotFound(f"There is no import {import_id}.")
    return rows[0]


def import_rows(*, after: int | None = None, before: int | None = None, limit: int) -> tuple[ImportRow, ...]:
    """Up to `limit` imports, newest first: those older than `after`, or the nearest newer than `before`."""
    if before is not None:
        return _rows(Import.objects.filter(pk__gt=before).order_by("id")[:limit])[::-1]
    found = Import.objects.all() if after is None else Import.objects.filter(pk__lt=after)
    return _rows(found.order_by("-id")[:limit])


def import_of(run_id: int) -> ImportRow | None:
    """The log that a run was read from; None where it was decoded here."""
    rows = _rows(Import.objects.filter(runs=run_id))
    return rows[0] if rows else None


def _rows(found: Any) -> tuple[ImportRow, ...]:
    imports = list(found.select_related("created_by"))
    sources = dict(Run.objects.filter(source__in=[each.pk for each in imports]).values_list("pk", "source"))
    runs: defaultdict[int, list[RunRow]] = defaultdict(list)
    for row in rows_of(Run.objects.filter(pk__in=sources).order_by("id")) if sources else ():
        runs[sources[row.id]].append(row)
    return tuple(_row(each, tuple(runs[each.pk])) for each in imports)


def _row(found: Import, runs: tuple[RunRow, ...]) -> ImportRow:
    return ImportRow(
        id=found.pk,
        format=found.format,
        tool=found.tool,
        files=tuple(ImportedFile(**file) for file in found.files),
        notes=tuple(found.notes),
        runs=runs,
        created_by=found.created_by.get_username() if found.created_by else "",
        created_at=found.created_at,
    )
