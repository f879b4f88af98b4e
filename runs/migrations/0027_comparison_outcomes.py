"""Keep which cases changed, and how likely by chance, with their comparison; of older ones when somebody asks."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0026_lanes'),
    ]

    operations = [
        migrations.AddField(
            model_name='comparison',
            name='outcomes',
            field=models.JSONField(default=dict, help_text='the cases with each outcome by look, as compare.outcomes keeps them'),
        ),
    ]
