"""Let a repeat decode chosen cases alone; all older ones are of all cases."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0029_run_figures'),
    ]

    operations = [
        migrations.AddField(
            model_name='repeat',
            name='cases',
            field=models.BinaryField(help_text='a bit a case, of those that it decodes (core.trace.pack_selection); null: all of them', null=True),
        ),
        migrations.AddField(
            model_name='shard',
            name='n_chosen',
            field=models.PositiveIntegerField(help_text='of its cases, those to decode; null: all of them', null=True),
        ),
    ]
