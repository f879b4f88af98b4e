"""Rotations that a probe is the first to show; what could not be run after one; reference sets run where asked for."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0045_calls_in_flight'),
    ]

    operations = [
        migrations.AddField(
            model_name='probe',
            name='bucket',
            field=models.ForeignKey(help_text='gave most of its answers; null: none has ended it, or nobody knows who did', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='probes', to='runs.bucket'),
        ),
        migrations.AddField(
            model_name='rotation',
            name='probe',
            field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='rotation', to='runs.probe'),
        ),
        migrations.AddField(
            model_name='rotation',
            name='problem',
            field=models.TextField(blank=True, db_default='', help_text='why reference sets could not be started, a line each'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='rescores',
            field=models.BooleanField(default=False, help_text='runs the reference set by itself after a rotation'),
        ),
        migrations.AlterField(
            model_name='rotation',
            name='profile_slug',
            field=models.SlugField(blank=True, max_length=80),
        ),
        migrations.AlterField(
            model_name='rotation',
            name='run',
            field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='rotation', to='runs.run'),
        ),
        migrations.AddConstraint(
            model_name='rotation',
            constraint=models.CheckConstraint(condition=models.Q(('run', None), ('probe', None), _connector='XOR'), name='a_run_or_a_probe_shows_a_rotation'),
        ),
    ]
