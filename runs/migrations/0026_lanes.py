"""Put what waits for workers into lanes, by person and priority; what waits already comes into those of its runs."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# Also of running ones: they may come back into the queue.
OPEN = """
  FROM runs_shard shard JOIN runs_repeat repeat ON repeat.id = shard.repeat_id
  JOIN runs_run run ON run.id = repeat.run_id JOIN runs_endpoint endpoint ON endpoint.id = run.endpoint_id
 WHERE shard.status IN ('queued', 'running')
"""
JUDGED = """
UPDATE runs_run SET priority = 'release' WHERE status IN ('queued', 'running')
   AND id IN (SELECT baseline_run_id FROM runs_gate UNION SELECT candidate_run_id FROM runs_gate)
"""
MAKE = f"""
INSERT INTO runs_lane (pool, priority, person_id, turn)
SELECT DISTINCT endpoint.pool, run.priority, run.created_by_id, 0 {OPEN}
"""
FILL = f"""
UPDATE runs_shard SET lane_id = waiting.lane_id FROM (
    SELECT shard.id, (
        SELECT min(lane.id) FROM runs_lane lane WHERE lane.pool = endpoint.pool AND lane.priority = run.priority
           AND lane.person_id IS NOT DISTINCT FROM run.created_by_id
    ) AS lane_id {OPEN}
) waiting WHERE waiting.id = runs_shard.id
"""


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0025_schedule'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='priority',
            field=models.CharField(choices=[('release', 'Release'), ('normal', 'Normal'), ('bulk', 'Bulk')], db_default='normal', default='normal', max_length=10),
        ),
        migrations.AddField(
            model_name='worker',
            name='pace',
            field=models.FloatField(help_text='responses a second over the last shard that it finished', null=True),
        ),
        migrations.CreateModel(
            name='Lane',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pool', models.CharField(max_length=40)),
                ('priority', models.CharField(choices=[('release', 'Release'), ('normal', 'Normal'), ('bulk', 'Bulk')], max_length=10)),
                ('turn', models.BigIntegerField(default=0)),
                ('person', models.ForeignKey(help_text='null: what no person asked for', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='lanes', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('pool', 'priority', 'person'), name='one_lane_per_person_and_priority')],
            },
        ),
        migrations.AddField(
            model_name='shard',
            name='lane',
            field=models.ForeignKey(db_index=False, help_text='where it waits; null: it never was in a lane, as those of logs', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='shards', to='runs.lane'),
        ),
        migrations.RunSQL([JUDGED, MAKE, FILL], migrations.RunSQL.noop),
        # Once the rows are written: PostgreSQL alters no table that still has rows to check.
        migrations.RunSQL('SET CONSTRAINTS ALL IMMEDIATE', migrations.RunSQL.noop),
        migrations.AddIndex(
            model_name='shard',
            index=models.Index(models.F('lane'), models.expressions.CombinedExpression(models.F('id'), '+', models.Value(0)), condition=models.Q(('status', 'queued')), name='shard_in_lane'),
        ),
    ]
