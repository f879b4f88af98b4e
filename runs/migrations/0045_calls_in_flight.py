"""Keep with a repeat's columns how many of our calls were in flight; a verdict counts them when it is taken."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0044_strays_so_far'),
    ]

    operations = [
        migrations.AddField(
            model_name='casecolumns',
            name='calls_in_flight',
            field=models.JSONField(help_text='the most of our calls at once during that of each response: calls → responses; likewise', null=True),
        ),
    ]
