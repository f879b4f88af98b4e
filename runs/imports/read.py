"""Other tools' logs that were imported, and the runs that were read from them."""

from collections import defaultdict
from typing import Any

from evalboard.contract import imports as contract
from evalboard.contract.run import RunRow
from evalboard.core.errors import NotFound
from runs.models import ImportRecord, RunRecord
from runs.run import rows_of
from runs.store import newest_page


def import_row(import_id: int) -> contract.Import:
    """Raises NotFound."""
    rows = _rows(ImportRecord.objects.filter(pk=import_id))
    if not rows:
        raise NotFound(f"There is no import {import_id}.")
    return rows[0]


def import_rows(*, after: int | None = None, before: int | None = None, limit: int) -> tuple[contract.Import, ...]:
    """Return up to `limit` imports, newest first: older than `after`, or just newer than `before`."""
    return newest_page(ImportRecord.objects.all(), _rows, after=after, before=before, limit=limit)


def _rows(rows: Any) -> tuple[contract.Import, ...]:
    imports = list(rows.select_related("created_by"))
    sources = dict(RunRecord.objects.filter(source__in=[each.pk for each in imports]).values_list("pk", "source"))
    runs: defaultdict[int, list[RunRow]] = defaultdict(list)
    for row in rows_of(RunRecord.objects.filter(pk__in=sources).order_by("id")) if sources else ():
        runs[sources[int(row.id)]].append(row)
    return tuple(_row(each, tuple(runs[each.pk])) for each in imports)


def _row(source: ImportRecord, runs: tuple[RunRow, ...]) -> contract.Import:
    return contract.Import(
        id=str(source.pk),
        format=source.format,
        tool=source.tool,
        files=tuple(contract.ImportedFile(**file) for file in source.files),
        notes=tuple(source.notes),
        runs=runs,
        created_by=source.created_by.get_username() if source.created_by else None,
        created_at=source.created_at,
    )
