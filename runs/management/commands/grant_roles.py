"""`manage.py grant_roles --web ROLE --worker ROLE`: grant the web server and workers their rights.

The owner runs it after each `manage.py migrate`. Every table has one line here, which a test compares with the models:
so a new table is closed to workers until it is on a list.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection, transaction
from psycopg import sql

# What a worker writes, and what it only reads. Nothing else is its business: people, sessions, tokens, schedules.
WORKER_WRITES = (
    *("runs_answerset", "runs_backendname", "runs_bucket", "runs_callslot", "runs_casecolumns", "runs_caseframe"),
    *("runs_comparison", "runs_divergence", "runs_endpoint", "runs_engineprocess", "runs_event", "runs_fingerprint"),
    *("runs_forcedanswer", "runs_forcedscoring", "runs_lane", "runs_listedframe", "runs_model", "runs_probe"),
    *("runs_probe_buckets", "runs_repeat", "runs_repeat_engine_processes", "runs_repeatscore", "runs_replay"),
    *("runs_response", "runs_rotation", "runs_run", "runs_runfigures", "runs_scorer", "runs_scoring", "runs_selftest"),
    *("runs_shard", "runs_stray", "runs_suitenoise", "runs_traceblock", "runs_trial", "runs_vocabulary", "runs_worker"),
    *("runs_judging", "runs_follow", "runs_outboxmessage"),
)
WORKER_READS = (
    *(
        "django_migrations",
        "runs_anchorset",
        "runs_baseline",
        "runs_case",
        "runs_experiment",
        "runs_experimentarm",
        "runs_gate",
    ),
    *(
        "runs_image",
        "runs_import",
        "runs_profile",
        "runs_release",
        "runs_rotation_reference_runs",
        "runs_samemodel",
        "runs_settling",
    ),
    *("runs_signoff", "runs_suite", "runs_suiteversion", "runs_verdict", "runs_policy"),
)
# By column: a worker tells those who follow what ended, and must not read the secrets that sign messages. To lock a row
# needs the right to write one of its columns.
WORKER_COLUMNS = (
    ("SELECT (id, url, events, created_by_id, owner_id, created_at, is_active, n_failures)", "runs_webhook"),
    ("SELECT (delivered_at, last_error)", "runs_webhook"),
    ("UPDATE (last_error)", "runs_webhook"),
)
# The web server adds security events and seals. It changes none, and neither it nor a worker writes other lines:
# triggers do, with the rights of the owner.
AUDIT = ("runs_auditline", "runs_auditseal")
# Only for the web server and the scheduler.
WEB_ONLY = (
    *("auth_group", "auth_group_permissions", "auth_permission", "auth_user", "auth_user_groups", "runs_comment"),
    *("auth_user_user_permissions", "axes_accessattempt", "axes_accessattemptexpiration", "axes_accessfailurelog"),
    *("axes_accesslog", "django_content_type", "django_session", "runs_idempotencykey", "runs_label"),
    *(
        "runs_deletion",
        "runs_importreading",
        "runs_rolloutseries",
        "runs_rolloutstep",
        "runs_retentionrule",
        "runs_schedule",
        "runs_scheduledstart",
        "runs_token",
        "runs_tourend",
        "runs_upload",
        "runs_uploadedcase",
        "runs_uploadpart",
    ),
)


class Command(BaseCommand):
    help = "Grant what the web server and the workers need to their database roles, and nothing else."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--web", required=True, help="role of the web server and the scheduler")
        parser.add_argument("--worker", required=True, help="role of the workers")

    def handle(self, *args: Any, web: str, worker: str, **options: Any) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [[web, worker]])
            if missing := {web, worker} - {name for (name,) in cursor.fetchall()}:
                raise CommandError(f"There is no role {', '.join(sorted(missing))}; docs/deploy.md creates both.")
            for statement in statements(web, worker):
                cursor.execute(statement)
        self.stdout.write(f"{web} reads and writes all tables, {worker} those of its work.")


def statements(web: str, worker: str) -> list[sql.Composed]:
    """Return what grants both roles their rights, whatever rights they had."""
    everything = "TABLES IN SCHEMA public", "SEQUENCES IN SCHEMA public"
    revoke = [
        sql.SQL("REVOKE ALL ON ALL {} FROM {}").format(sql.SQL(kind), sql.Identifier(role))
        for kind in everything
        for role in (web, worker)
    ]
    grants: list[tuple[str, sql.Composable, tuple[str, ...]]] = [
        ("USAGE", sql.SQL("SCHEMA public"), (web, worker)),
        ("SELECT, INSERT, UPDATE, DELETE", sql.SQL("ALL TABLES IN SCHEMA public"), (web,)),
        ("USAGE, SELECT", sql.SQL("ALL SEQUENCES IN SCHEMA public"), (web, worker)),
        ("SELECT, INSERT, UPDATE, DELETE", _tables(WORKER_WRITES), (worker,)),
        ("SELECT", _tables(WORKER_READS), (worker,)),
    ]
    grants += [(rights, _tables((table,)), (worker,)) for rights, table in WORKER_COLUMNS]
    revoke.append(sql.Composed([sql.SQL("REVOKE CREATE ON SCHEMA public FROM PUBLIC")]))  # which PostgreSQL 14 grants
    granted = [
        sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(rights), target, sql.Identifier(role))
        for rights, target, roles in grants
        for role in roles
    ]
    # Whoever may execute a trigger's function puts it on a table of their own, and writes lines with it.
    writing = sql.SQL("FUNCTION runs_audit(), runs_audit_chain(), runs_audit_cut(integer)")
    cut = sql.SQL("FUNCTION runs_audit_cut(integer)")
    return [
        *revoke,
        *granted,
        sql.SQL("REVOKE UPDATE, DELETE ON {} FROM {}").format(_tables(AUDIT), sql.Identifier(web)),
        sql.SQL("REVOKE EXECUTE ON {} FROM PUBLIC").format(writing),
        sql.SQL("GRANT EXECUTE ON {} TO {}").format(cut, sql.Identifier(web)),
    ]


def _tables(names: tuple[str, ...]) -> sql.Composable:
    return sql.SQL("TABLE {}").format(sql.SQL(", ").join(map(sql.Identifier, names)))
