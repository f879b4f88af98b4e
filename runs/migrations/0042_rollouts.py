"""What a trainer gave the tokens of rollouts, and figures of forced scorings by bucket."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0041_bisect'),
    ]

    operations = [
        migrations.AlterField(
            model_name='forcedscoring',
            name='endpoint',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='forced_scorings', to='runs.endpoint'),
        ),
        migrations.AlterField(
            model_name='forcedscoring',
            name='profile',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='forced_scorings', to='runs.profile'),
        ),
        migrations.AddField(
            model_name='forcedscoring',
            name='figures_by_bucket',
            field=models.JSONField(db_default=[], default=list, help_text='where several buckets gave the answers: {"bucket", "figures"} of each'),
        ),
        migrations.AlterField(
            model_name='forcedanswer',
            name='tokens',
            field=models.CharField(blank=True, choices=[('same', 'the ids of the response'), ('by_bytes', 'the tokens of the response, found by their bytes'), ('as_given', 'the ids of the log, of which nobody knows the bytes'), ('retokenised', "the text of the response, in tokens of the target's tokenizer")], max_length=20),
        ),
        migrations.AddConstraint(
            model_name='forcedscoring',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('endpoint__isnull', False), ('profile__isnull', False)), models.Q(('bucket__isnull', True), ('endpoint__isnull', True), ('profile__isnull', True)), _connector='OR'), name='a_stack_scores_or_a_trainer_did'),
        ),
    ]
