"""What is started at set times, and each time that it was."""


import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0024_pair_keys'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Schedule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('kind', models.CharField(choices=[('run', 'Run'), ('probe', 'Probe')], max_length=20)),
                ('order', models.JSONField()),
                ('cron', models.CharField(help_text='minute, hour, day of the month, month, day of the week', max_length=100)),
                ('time_zone', models.CharField(max_length=60)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('next_at', models.DateTimeField(null=True)),
                ('n_failures', models.PositiveIntegerField(default=0)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='schedules', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['slug'],
            },
        ),
        migrations.CreateModel(
            name='ScheduledStart',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('due_at', models.DateTimeField()),
                ('missed_since', models.DateTimeField(null=True)),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('problem', models.TextField(blank=True)),
                ('probe', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.probe')),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run')),
                ('schedule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='starts', to='runs.schedule')),
            ],
            options={
                'ordering': ['-due_at'],
            },
        ),
        migrations.AddIndex(
            model_name='schedule',
            index=models.Index(fields=['next_at'], name='schedule_due'),
        ),
        migrations.AddConstraint(
            model_name='scheduledstart',
            constraint=models.UniqueConstraint(fields=('schedule', 'due_at'), name='one_start_for_each_due_time'),
        ),
    ]
