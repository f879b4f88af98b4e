"""Rules that delete old traces, texts and runs; deletion of one case; what suites take."""

from runs.retention.read import deletions, due_rows, rule_rows, storage_rows
from runs.retention.retention import apply_rules, count_due, create_rule, delete_rule, purge_case

__all__ = [
    "apply_rules",
    "count_due",
    "create_rule",
    "delete_rule",
    "deletions",
    "due_rows",
    "purge_case",
    "rule_rows",
    "storage_rows",
]
