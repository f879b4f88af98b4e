"""Keep with a score which answer it was read from, so that draws of a case can be told to agree; null until scored again."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0019_run_strays'),
    ]

    operations = [
        migrations.AddField(
            model_name='repeatscore',
            name='answers',
            field=models.BinaryField(help_text='zeros where none was read; null where the scorer reads none, or read them before this', null=True),
        ),
    ]
