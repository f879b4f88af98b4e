"""Let an idempotency key stand for the two runs of a pair."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0023_run_unsteady'),
    ]

    operations = [
        migrations.AddField(
            model_name='idempotencykey',
            name='candidate',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run'),
        ),
    ]
