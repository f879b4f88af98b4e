"""Every bucket that gave answers to a probe, so that a timeline has them without reading each call."""

from django.db import migrations, models

FILL = """
INSERT INTO runs_probe_buckets (probe_id, bucket_id)
SELECT DISTINCT probe.id, bucket.id
  FROM runs_probe probe, jsonb_array_elements(probe.answers) call, runs_bucket bucket
 WHERE probe.finished_at IS NOT NULL AND bucket.id = (call->>'bucket')::bigint AND coalesce(call->>'error', '') = ''
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0051_dated_by_the_database")]

    operations = [
        migrations.AddField(
            model_name="probe",
            name="buckets",
            field=models.ManyToManyField(
                related_name="+",
                to="runs.bucket",
                help_text="each that gave one of its answers, as far as anything names it",
            ),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
    ]
