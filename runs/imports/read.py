"""Other tools' logs that were imported, and the runs that were read from them."""

from collections import defaultdict
from typing import Any

from evalboard.contract import imports as contract
from evalboard.contract.run import RunRow
from runs.models import ImportRecord, RunRecord
from runs.run import rows_of
from runs.store import RecordList, require_first

IMPORT_ORDERS = {"id": "id", "tool": "tool"}


def import_row(import_id: int) -> contract.Import:
    """Raises NotFound."""
    return require_first(_rows(ImportRecord.objects.filter(pk=import_id)), f"There is no import {import_id}.")


def sortable_imports() -> RecordList[contract.Import]:
    """Return all imports as a list that can be sorted."""
    return RecordList(ImportRecord.objects.all(), _rows, IMPORT_ORDERS)


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
