"""Replays name what decodes them, and may be of a request of production instead of a run's case."""

import django.db.models.deletion
from django.db import migrations, models

AS_THEIR_RUNS = """
UPDATE runs_replay SET endpoint_id = runs_run.endpoint_id, profile_id = runs_run.profile_id
  FROM runs_run WHERE runs_run.id = runs_replay.run_id;
SET CONSTRAINTS ALL IMMEDIATE;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0042_rollouts'),
    ]

    operations = [
        migrations.AddField(
            model_name='replay',
            name='endpoint',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='replays', to='runs.endpoint'),
        ),
        migrations.AddField(
            model_name='replay',
            name='profile',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='replays', to='runs.profile'),
        ),
        migrations.RunSQL(AS_THEIR_RUNS, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name='replay',
            name='endpoint',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='replays', to='runs.endpoint'),
        ),
        migrations.AlterField(
            model_name='replay',
            name='profile',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='replays', to='runs.profile'),
        ),
        migrations.AddField(
            model_name='replay',
            name='body',
            field=models.JSONField(help_text='of a chat completion, as it came; null: a case of the run', null=True),
        ),
        migrations.AlterField(
            model_name='replay',
            name='case_index',
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AlterField(
            model_name='replay',
            name='repeat',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='replays', to='runs.repeat'),
        ),
        migrations.AlterField(
            model_name='replay',
            name='run',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='replays', to='runs.run'),
        ),
        migrations.AddConstraint(
            model_name='replay',
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ('body__isnull', True), ('case_index__isnull', False), ('repeat__isnull', False), ('run__isnull', False)
                )
                | models.Q(
                    ('body__isnull', False), ('case_index__isnull', True), ('repeat__isnull', True), ('run__isnull', True)
                ),
                name='a_replay_has_a_case_or_a_body',
            ),
        ),
    ]
