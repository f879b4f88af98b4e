"""Keep with a repeat's columns how its responses were batched; of earlier ones a verdict counts it when it is taken."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0020_answers'),
    ]

    operations = [
        migrations.AddField(
            model_name='casecolumns',
            name='batch_sizes',
            field=models.JSONField(help_text='the largest batch of each response: size → responses; null where nobody has counted', null=True),
        ),
    ]
