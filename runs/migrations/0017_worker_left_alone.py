"""Which work a worker leaves to others, and why, beside its note: nobody reads it out of a sentence."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0016_scopes_at_birth'),
    ]

    operations = [
        migrations.AddField(
            model_name='worker',
            name='left_alone',
            field=models.JSONField(help_text='{"noun": "run" or "probe", "id", "why"}', null=True),
        ),
    ]
