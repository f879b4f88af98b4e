"""What workers and the web side make is dated by the database's clock, as what they write later: theirs may be off."""

from django.db import migrations, models
from django.db.models.functions import Now

RAN_AT = "where it stands in time: when it was asked for; of a log, when that says that it ran, if it does"
DATED = (
    ("engineprocess", "started_at"),
    ("forcedscoring", "created_at"),
    ("probe", "created_at"),
    ("replay", "created_at"),
    ("run", "created_at"),
    ("schedule", "created_at"),
    ("worker", "started_at"),
)


class Migration(migrations.Migration):
    dependencies = [("runs", "0050_rests_of_probes")]

    operations = [
        *(migrations.AlterField(model, name, models.DateTimeField(db_default=Now())) for model, name in DATED),
        migrations.AlterField("run", "ran_at", models.DateTimeField(db_default=Now(), help_text=RAN_AT)),
    ]
