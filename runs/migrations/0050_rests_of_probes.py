"""How often a probe's endpoint rested since it answered, so that a probe of one that never returns ends."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0049_one_index_less_a_divergence")]

    operations = [
        migrations.AddField(
            model_name="probe",
            name="n_rests",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="of its endpoint, since calls of it were answered"
            ),
        ),
    ]
