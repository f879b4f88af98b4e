"""The cases of a comparison, packed in the order of their list, for pages to read a part of."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0046_rests_and_slots")]

    operations = [
        migrations.CreateModel(
            name="ListedFrame",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("first", models.PositiveIntegerField()),
                ("data", models.BinaryField()),
                (
                    "comparison",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="listed_frames",
                        to="runs.comparison",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("comparison", "first"), name="one_listed_frame_per_place")
                ],
            },
        ),
    ]
