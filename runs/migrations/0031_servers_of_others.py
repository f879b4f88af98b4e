"""Endpoints that others run, how each call to them went, and runs whose stack is only told of."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0030_targeted_repeats'),
    ]

    operations = [
        migrations.AddField(
            model_name='endpoint',
            name='api',
            field=models.CharField(choices=[('chat', 'chat completions'), ('completions', 'completions'), ('responses', 'the Responses API')], default='chat', max_length=20),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='auth',
            field=models.CharField(blank=True, help_text='where a worker reads the key: a variable or a file', max_length=200),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='base_url',
            field=models.CharField(blank=True, help_text='where a server of others is, up to /v1', max_length=500),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='bypass',
            field=models.ForeignKey(help_text='the same model without the gateway', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.endpoint'),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='concurrency',
            field=models.PositiveIntegerField(default=8, help_text='calls in flight; one under the class alone'),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='extra_body',
            field=models.JSONField(default=dict, help_text='fields that go into the body of every call'),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='headers',
            field=models.JSONField(default=dict, help_text='name → a constant, or {"env": variable of the worker}'),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='n_failures',
            field=models.PositiveIntegerField(default=0, help_text='failed calls in a row, as workers told last'),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='reference',
            field=models.ForeignKey(help_text='ours, which serves the same weights', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.endpoint'),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='rescores',
            field=models.BooleanField(default=True, help_text='runs the reference set by itself after a rotation'),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='rest_reason',
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='rests_until',
            field=models.DateTimeField(help_text='no call is made before; null: it is not resting', null=True),
        ),
        migrations.AddField(
            model_name='response',
            name='call',
            field=models.JSONField(help_text='how the call to a server of others went (contract.call.CallFacts); null: none was made', null=True),
        ),
        migrations.AddField(
            model_name='run',
            name='is_reported',
            field=models.BooleanField(db_default=False, default=False, help_text='who served it is what a log or a server of others says; nothing of it is attested'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='engine',
            field=models.CharField(choices=[('vllm', "vLLM, in a process of the worker's own"), ('openai', "a server that others run, which speaks OpenAI's protocol"), ('imported', "another tool's log: nothing is decoded here")], default='vllm', max_length=20),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='max_model_len',
            field=models.PositiveIntegerField(default=2048, help_text='null: a server of others decides', null=True),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='model_repo',
            field=models.CharField(blank=True, help_text='a repository on a model hub; of a server of others, the name to ask for', max_length=200),
        ),
        migrations.AddField(
            model_name='probe',
            name='bypass_of',
            field=models.ForeignKey(help_text='the probe of the gateway that this one goes around', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='bypass_probes', to='runs.probe'),
        ),
        migrations.AlterField(
            model_name='probe',
            name='kind',
            field=models.CharField(choices=[('seed', 'Seed'), ('batch', 'Batch'), ('routing', 'Routing'), ('canary', 'Canary'), ('capability', 'Capability')], max_length=20),
        ),
        migrations.AlterField(
            model_name='release',
            name='treatment',
            field=models.CharField(choices=[('model', 'the model: both sides must be served alike'), ('stack', 'the serving stack: an engine upgrade or a quantisation of one model'), ('service', 'the service: model and stack together, as a hosted model is bought')], default='model', max_length=20),
        ),
        migrations.AddField(
            model_name='rotation',
            name='attended_at',
            field=models.DateTimeField(help_text='when the reference sets of its baselines were started; null: not yet, or not wanted', null=True),
        ),
        migrations.AddField(
            model_name='rotation',
            name='reference_runs',
            field=models.ManyToManyField(help_text='started by themselves after it', related_name='+', to='runs.run'),
        ),
        migrations.RunSQL(
            "UPDATE runs_run SET is_reported = true WHERE source_id IS NOT NULL",
            migrations.RunSQL.noop,
        ),
    ]
