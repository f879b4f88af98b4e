"""Repeats that several buckets served lose their points, which were over all of them."""

from django.db import migrations, models

FORGET = """
UPDATE runs_repeatscore AS score SET points = NULL
  FROM runs_casecolumns AS packed
 WHERE packed.repeat_id = score.repeat_id AND jsonb_array_length(packed.bucket_ids) > 1
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0008_marks")]

    operations = [
        migrations.AlterField(
            model_name="repeatscore",
            name="points",
            field=models.FloatField(
                help_text="percent of the suite; null unless every case is scored and one bucket served them all",
                null=True,
            ),
        ),
        migrations.RunSQL(FORGET, migrations.RunSQL.noop),
    ]
