"""The strays of a run with many cases are read on by workers after its end."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0043_production_replays'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='strays_so_far',
            field=models.JSONField(help_text='of buckets that have strays, what was read since of cases unread when the run ended', null=True),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(condition=models.Q(('strays_so_far__isnull', False)), fields=['id'], name='run_strays_unread'),
        ),
    ]
