"""Rules of retention, what they would delete, what was deleted, and what each suite takes."""

from itertools import islice
from typing import Any

from django.db import connection

from evalboard.contract import retention as contract
from runs.models import DeletionRecord, RetentionRuleRecord
from runs.retention.retention import describe_rule, plan_deletions
from runs.store import RecordList, require_first

STORAGE = """
WITH repeat AS (
    SELECT repeat.id, suite.slug, run.id AS run_id
      FROM runs_repeat AS repeat
      JOIN runs_run AS run ON run.id = repeat.run_id
      JOIN runs_suiteversion AS version ON version.id = run.suite_version_id
      JOIN runs_suite AS suite ON suite.id = version.suite_id
), answers AS (
    SELECT repeat.slug, count(*) AS n, sum(pg_column_size(answer.*)) AS bytes
      FROM runs_response AS answer JOIN repeat ON repeat.id = answer.repeat_id GROUP BY repeat.slug
), traces AS (
    SELECT run.slug, sum(pg_column_size(block.data)) AS bytes
      FROM runs_traceblock AS block JOIN (SELECT DISTINCT run_id, slug FROM repeat) AS run ON run.run_id = block.run_id
     GROUP BY run.slug
), scores AS (
    SELECT repeat.slug, sum(pg_column_size(score.*)) AS bytes
      FROM runs_repeatscore AS score JOIN repeat ON repeat.id = score.repeat_id GROUP BY repeat.slug
), packed AS (
    SELECT repeat.slug, sum(pg_column_size(packed.*)) AS bytes
      FROM runs_casecolumns AS packed JOIN repeat ON repeat.id = packed.repeat_id GROUP BY repeat.slug
)
SELECT slug, count(DISTINCT repeat.run_id), coalesce(max(answers.n), 0), coalesce(max(traces.bytes), 0),
       coalesce(max(answers.bytes), 0), coalesce(max(scores.bytes), 0) + coalesce(max(packed.bytes), 0)
  FROM repeat LEFT JOIN answers USING (slug) LEFT JOIN traces USING (slug) LEFT JOIN scores USING (slug)
  LEFT JOIN packed USING (slug)
 GROUP BY slug
"""


def rule_row(rule_id: int) -> contract.RetentionRule:
    """Raises NotFound."""
    stored = RetentionRuleRecord.objects.filter(pk=rule_id).select_related("suite", "created_by")
    return require_first(tuple(map(_rule, stored)), f"There is no retention rule {rule_id}.")


def rule_rows() -> list[contract.RetentionRule]:
    return [_rule(rule) for rule in RetentionRuleRecord.objects.select_related("suite", "created_by")]


def due_rows(limit: int | None = None) -> list[contract.DueDeletion]:
    """Return exactly what the rules would delete now: of all runs, or of the first ones."""
    return [due for _, due in islice(plan_deletions(), limit)]


def deletions() -> RecordList[contract.Deletion]:
    """Return the tombstones, newest first."""
    return RecordList(DeletionRecord.objects.all(), _deletion_rows, {"id": "id"})


def deletion_row(deletion_id: int) -> contract.Deletion:
    """Raises NotFound."""
    rows = _deletion_rows(DeletionRecord.objects.filter(pk=deletion_id))
    return require_first(rows, f"There is no deletion {deletion_id}.")


def storage_rows() -> list[contract.SuiteStorage]:
    """Return what each suite's runs take, the largest first. It reads every response's row once."""
    with connection.cursor() as cursor:
        cursor.execute(STORAGE)
        rows = [(slug, *map(int, sizes)) for slug, *sizes in cursor.fetchall()]
    rows.sort(key=lambda row: -row[3] - row[4])
    return [
        contract.SuiteStorage(suite=slug, n_runs=runs, n_responses=n, traces=traces, texts=texts, scores=scores)
        for slug, runs, n, traces, texts, scores in rows
    ]


def _rule(rule: RetentionRuleRecord) -> contract.RetentionRule:
    return contract.RetentionRule(
        id=str(rule.pk),
        what=rule.what,
        days=rule.days,
        suite=rule.suite.slug if rule.suite else None,
        label=rule.label,
        text=describe_rule(rule),
        created_by=rule.created_by.get_username() if rule.created_by else None,
        created_at=rule.created_at,
    )


def _deletion_rows(rows: Any) -> tuple[contract.Deletion, ...]:
    return tuple(map(_deletion, rows.select_related("suite_version__suite", "by")))


def _deletion(gone: DeletionRecord) -> contract.Deletion:
    version = gone.suite_version
    return contract.Deletion(
        id=str(gone.pk),
        what=gone.what,
        run=str(gone.run) if gone.run is not None else None,
        suite=version.suite.slug if version else None,
        version=version.number if version else None,
        case=gone.case_id,
        why=gone.why,
        n_responses=gone.n_responses,
        n_bytes=gone.n_bytes,
        by=gone.by.get_username() if gone.by else None,
        at=gone.at,
    )
