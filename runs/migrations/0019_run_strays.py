"""Keep with a run the responses that another computation gave; nothing is known of runs that ended before."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0018_event_what'),
    ]

    operations = [
        migrations.AddField(
            model_name='run',
            name='strays',
            field=models.JSONField(help_text='what work.strays found when the run ended; null: nobody has looked', null=True),
        ),
    ]
