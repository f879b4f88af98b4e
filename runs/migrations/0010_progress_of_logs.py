"""Of a run that was read from a log, only what the log has counts as done."""

from django.db import migrations

COUNT = """
UPDATE runs_shard AS shard SET n_done =
       (SELECT count(*) FROM runs_response AS response
         WHERE response.repeat_id = shard.repeat_id AND response.error_code <> 'not_in_log')
  FROM runs_repeat AS repeat JOIN runs_run AS run ON run.id = repeat.run_id
 WHERE shard.repeat_id = repeat.id AND run.source_id IS NOT NULL
"""


class Migration(migrations.Migration):
    dependencies = [("runs", "0009_no_points_of_two_buckets")]

    operations = [migrations.RunSQL(COUNT, migrations.RunSQL.noop)]
