"""Runs read out of other tools' logs, and out of exports that come with the program."""

from runs.imports.archives import store_archive
from runs.imports.import_suites import lacks_prompts
from runs.imports.imports import import_logs
from runs.imports.read import IMPORT_ORDERS, sortable_imports
from runs.imports.uploads import MAX_FILES, LogUpload, is_waiting, log_files, takes_logs

__all__ = [
    "IMPORT_ORDERS",
    "MAX_FILES",
    "LogUpload",
    "import_logs",
    "is_waiting",
    "lacks_prompts",
    "log_files",
    "sortable_imports",
    "store_archive",
    "takes_logs",
]
