"""Keep which steady buckets of a run gave repeats that are not the same; of runs that ended before nobody has looked."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0022_reasoning'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='unsteady',
            field=models.JSONField(help_text='buckets whose repeats should be the same to the bit and are not; null: nobody has looked', null=True),
        ),
    ]
