"""Every part of `make bench` can be read, and fills tables as they are: only each night runs them otherwise."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.db.models import NOT_PROVIDED, AutoField

from bench import compare_data
from bench.__main__ import PARTS

BENCH = Path(compare_data.__file__).parent
INSERT = re.compile(r"INSERT INTO (\w+) \(([\w\s,\"]+)\)")


def _rows() -> Iterator[tuple[str, str, list[str]]]:
    """The file, table and columns of every row that a bench writes by its own SQL."""
    for path in sorted(BENCH.glob("*.py")):
        for table, columns in INSERT.findall(path.read_text()):
            yield path.name, table, [name.strip(' "') for name in columns.replace("\n", " ").split(",")]
    yield "compare_data.py", "runs_response", list(compare_data.FIELDS)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_is_read_and_can_be_measured(part: str) -> None:
    assert callable(import_module(f"bench.bench_{part}").measure)


@pytest.mark.parametrize(("file", "table", "columns"), [*_rows()])
def test_a_row_has_a_value_for_each_column_that_needs_one(file: str, table: str, columns: list[str]) -> None:
    models = [model for model in apps.get_models(include_auto_created=True) if model._meta.db_table == table]
    needed = {
        field.column
        for field in models[0]._meta.local_concrete_fields
        if not (field.null or isinstance(field, AutoField) or field.db_default is not NOT_PROVIDED)
    }
    assert needed - set(columns) == set(), file
