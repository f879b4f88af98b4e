"""The strays of a run are rows of their own; the run only counts them, so that it does not grow with their number."""

import django.db.models.deletion
from django.db import migrations, models

APART = """
INSERT INTO runs_stray (run_id, bucket_id, case_index, repeat, is_listed)
SELECT run.id, (entry.value->>'bucket')::bigint, cases.index, (listed.value->>1)::integer, true
FROM runs_run run, jsonb_array_elements(run.strays) WITH ORDINALITY entry,
     jsonb_array_elements(entry.value->'responses') listed, runs_case cases
WHERE cases.suite_version_id = run.suite_version_id AND cases.case_id = listed.value->>0
ORDER BY run.id, entry.ordinality, cases.index, 4;

UPDATE runs_run SET strays = (
    SELECT jsonb_agg(
        (entry.value - 'responses') || jsonb_build_object(
            'n_strays', jsonb_array_length(entry.value->'responses'),
            'n_stray_cases', (SELECT count(DISTINCT listed.value->>0)
                              FROM jsonb_array_elements(entry.value->'responses') listed))
        ORDER BY entry.ordinality)
    FROM jsonb_array_elements(strays) WITH ORDINALITY entry)
WHERE strays <> '[]';
"""
TOGETHER = """
UPDATE runs_run run SET strays = (
    SELECT jsonb_agg(
        (entry.value - 'n_strays' - 'n_stray_cases') || jsonb_build_object(
            'responses', (SELECT jsonb_agg(jsonb_build_array(cases.case_id, stray.repeat) ORDER BY stray.id)
                          FROM runs_stray stray JOIN runs_case cases
                            ON cases.suite_version_id = run.suite_version_id AND cases.index = stray.case_index
                          WHERE stray.run_id = run.id AND stray.is_listed
                            AND stray.bucket_id = (entry.value->>'bucket')::bigint))
        ORDER BY entry.ordinality)
    FROM jsonb_array_elements(run.strays) WITH ORDINALITY entry)
WHERE strays <> '[]';
"""
AGAIN = "UPDATE runs_run SET strays_so_far = '[]' WHERE strays_so_far IS NOT NULL"  # workers begin anew


class Migration(migrations.Migration):
    dependencies = [("runs", "0052_buckets_of_probes")]

    operations = [
        migrations.AlterField(
            model_name="run",
            name="strays",
            field=models.JSONField(
                help_text="of each bucket that has strays, what work.strays counted; null: nobody has looked", null=True
            ),
        ),
        migrations.CreateModel(
            name="Stray",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("case_index", models.PositiveIntegerField()),
                ("repeat", models.PositiveIntegerField(help_text="its index")),
                (
                    "is_listed",
                    models.BooleanField(
                        default=True,
                        help_text="false: of cases read since the run ended, until all of them are read",
                    ),
                ),
                (
                    "bucket",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="runs.bucket",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="stray_responses",
                        to="runs.run",
                    ),
                ),
            ],
            options={"indexes": [models.Index(fields=["run", "is_listed", "id"], name="strays_of_run")]},
        ),
        migrations.RunSQL(APART, TOGETHER),
        migrations.RunSQL(AGAIN, AGAIN),
    ]
