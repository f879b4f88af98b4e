"""Keep what a model thinks apart from what it answers; of older responses nothing is apart."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0021_batch_sizes'),
    ]

    operations = [
        migrations.AddField(
            model_name='response',
            name='reasoning',
            field=models.TextField(help_text='what the model thought; null where nothing is apart', null=True),
        ),
        migrations.AddField(
            model_name='response',
            name='n_reasoning_tokens',
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='response',
            name='is_truncated',
            field=models.BooleanField(help_text='cut while it thought; null where nothing is apart', null=True),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('is_truncated', True)), fields=['repeat'], name='response_truncated'),
        ),
    ]
