"""The answers of runs scored on other stacks."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0031_servers_of_others'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name='worker',
            name='left_alone',
            field=models.JSONField(help_text='{"noun": "run", "probe" or "forced scoring", "id", "why"}', null=True),
        ),
        migrations.CreateModel(
            name='ForcedScoring',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('finished', 'Finished'), ('failed', 'Failed')], default='queued', max_length=20)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('next_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text="not before; by the database's clock")),
                ('error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('model_override', models.JSONField(help_text="another checkpoint of the endpoint's line, as a run has it", null=True)),
                ('cases', models.BinaryField(help_text='a bit a case (core.trace.pack_selection); null: all of them', null=True)),
                ('repeats', models.JSONField(help_text='their indexes')),
                ('n_answers', models.PositiveIntegerField(help_text='different ones, to be scored')),
                ('n_tokens', models.PositiveIntegerField(help_text='of these answers, as far as their run counted them')),
                ('n_done', models.PositiveIntegerField(default=0)),
                ('figures', models.JSONField(help_text='of all its answers (core.forced.ForcedFigures), once it has ended', null=True)),
                ('bucket', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='forced_scorings', to='runs.bucket')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='forced_scorings', to='runs.endpoint')),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='%(class)ss', to='runs.worker')),
                ('profile', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='forced_scorings', to='runs.profile')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='forced_scorings', to='runs.run')),
            ],
            options={
                'ordering': ['-id'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='ForcedAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('case_index', models.PositiveIntegerField()),
                ('trace_digest', models.BinaryField(help_text="of the response's own trace", max_length=16)),
                ('error_code', models.CharField(blank=True, max_length=40)),
                ('error_detail', models.TextField(blank=True)),
                ('trace_slot', models.PositiveIntegerField(null=True)),
                ('n_tokens', models.PositiveIntegerField(null=True)),
                ('tokens', models.CharField(blank=True, choices=[('same', 'the ids of the response'), ('by_bytes', 'the tokens of the response, found by their bytes'), ('retokenised', "the text of the response, in tokens of the target's tokenizer")], max_length=20)),
                ('figures', models.JSONField(help_text='core.forced.ResponseFigures; null without a trace', null=True)),
                ('is_rendered', models.BooleanField(default=False, help_text="the prompt's tokens are those of the target's chat template")),
                ('engine_process', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.engineprocess')),
                ('repeat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.repeat')),
                ('trace_block', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.traceblock')),
                ('scoring', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='runs.forcedscoring')),
            ],
        ),
        migrations.AddIndex(
            model_name='forcedscoring',
            index=models.Index(condition=models.Q(('status', 'queued')), fields=['next_at', 'id'], name='forcedscoring_claimable'),
        ),
        migrations.AddIndex(
            model_name='forcedscoring',
            index=models.Index(condition=models.Q(('status', 'running')), fields=['lease_until'], name='forcedscoring_leased'),
        ),
        migrations.AddIndex(
            model_name='forcedscoring',
            index=models.Index(fields=['run', '-id'], name='forced_scoring_of_a_run'),
        ),
        migrations.AddConstraint(
            model_name='forcedanswer',
            constraint=models.UniqueConstraint(fields=('scoring', 'case_index', 'trace_digest'), name='an_answer_is_scored_once'),
        ),
        migrations.AddConstraint(
            model_name='forcedanswer',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('error_code', ''), ('trace_block__isnull', False), ('trace_slot__isnull', False)), models.Q(models.Q(('error_code', ''), _negated=True), ('trace_block__isnull', True)), _connector='OR'), name='a_scored_answer_has_a_trace'),
        ),
    ]
