"""Runs read out of other tools' logs, and out of exports that come with the program."""

from runs.imports.archives import store_archive
from runs.imports.import_suites import lacks_prompts
from runs.imports.imports import import_logs
from runs.imports.read import IMPORT_ORDERS, import_row, sortable_imports
from runs.imports.readings import (
    begin_reading,
    end_lost_readings,
    is_large,
    read_import,
    reading_row,
    readings_under_way,
)
from runs.imports.uploads import MAX_FILES, LogUpload, is_waiting, log_files, takes_logs

__all__ = [
    "IMPORT_ORDERS",
    "MAX_FILES",
    "LogUpload",
    "begin_reading",
    "end_lost_readings",
    "import_logs",
    "import_row",
    "is_large",
    "is_waiting",
    "lacks_prompts",
    "log_files",
    "read_import",
    "reading_row",
    "readings_under_way",
    "sortable_imports",
    "store_archive",
    "takes_logs",
]
