"""How many calls an endpoint may have in flight and a minute, over all workers; how often a shard's endpoint rested."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0046_rotations_seen_by_probes'),
    ]

    operations = [
        migrations.AddField(
            model_name='shard',
            name='n_rests',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='of its endpoint, since a case of it was answered'),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='calls_per_minute',
            field=models.PositiveIntegerField(help_text='by all workers together; null: no limit', null=True),
        ),
        migrations.AddField(
            model_name='endpoint',
            name='next_call_at',
            field=models.DateTimeField(help_text='no worker makes a call before; null: at any time', null=True),
        ),
        migrations.CreateModel(
            name='CallSlot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField(help_text='from 0; under the class alone a call has the first')),
                ('until', models.DateTimeField(null=True)),
                ('endpoint', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='slots', to='runs.endpoint')),
                ('worker', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.worker')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('endpoint', 'number'), name='a_slot_of_an_endpoint_once')],
            },
        ),
    ]
