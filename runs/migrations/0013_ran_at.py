"""Runs stand where they ran: those that were read from logs at the logs' own times."""

import django.db.models.functions.datetime
import django.utils.timezone
from django.db import migrations, models

PLACE = """
UPDATE runs_run SET ran_at = created_at WHERE source_id IS NULL
"""
OF_LOGS = """
UPDATE runs_run AS run SET ran_at = coalesce(run.started_at, import.created_at)
  FROM runs_import AS import
 WHERE import.id = run.source_id
"""
# An end that a log did not say was written as the time of the import.
END = """
UPDATE runs_run SET finished_at = started_at
 WHERE source_id IS NOT NULL AND started_at IS NOT NULL AND finished_at >= created_at
"""
REPEATS = """
UPDATE runs_repeat AS repeat SET finished_at = run.finished_at
  FROM runs_run AS run
 WHERE run.id = repeat.run_id AND run.source_id IS NOT NULL AND repeat.finished_at IS NOT NULL
"""
PROCESSES = """
UPDATE runs_engineprocess AS process SET started_at = run.ran_at, stopped_at = run.finished_at
  FROM runs_run AS run
  JOIN runs_repeat AS repeat ON repeat.run_id = run.id
  JOIN runs_repeat_engine_processes AS link ON link.repeat_id = repeat.id
 WHERE run.source_id IS NOT NULL AND link.engineprocess_id = process.id
"""


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0012_model_names"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="ran_at",
            field=models.DateTimeField(
                db_default=django.db.models.functions.datetime.Now(),
                default=django.utils.timezone.now,
                help_text="where it stands in time: when it was asked for; of a log, when that says that it ran, if it does",
            ),
        ),
        *(migrations.RunSQL(statement, migrations.RunSQL.noop) for statement in (PLACE, OF_LOGS, END, REPEATS, PROCESSES)),
        migrations.AlterField(
            model_name="run",
            name="created_at",
            field=models.DateTimeField(auto_now_add=True),
        ),
        migrations.AlterField(
            model_name="engineprocess",
            name="started_at",
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["ran_at", "id"], name="run_by_time"),
        ),
    ]
