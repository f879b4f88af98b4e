from django.db import migrations, models

# Until now every call of a run was sent the profile's seed, so that repeats of one that sampled are one draw; those of a
# log are where it says that two calls for a case were sent one seed (evalboard.core.draws).
ONE_DRAW = """
UPDATE runs_run AS run
   SET is_one_draw = true
  FROM runs_profile AS profile
 WHERE profile.id = run.profile_id
   AND jsonb_typeof(profile.settings #> '{sampling,temperature}') = 'number'
   AND (profile.settings #>> '{sampling,temperature}')::float8 > 0
   AND (run.source_id IS NULL OR EXISTS (
        SELECT 1
          FROM runs_response AS response
          JOIN runs_repeat AS repeat ON repeat.id = response.repeat_id
         WHERE repeat.run_id = run.id AND response.seed_sent IS NOT NULL
         GROUP BY response.case_index, response.seed_sent
        HAVING count(*) FILTER (WHERE response.request_id = '')
             + count(DISTINCT response.request_id) FILTER (WHERE response.request_id <> '') > 1))
"""


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0006_imports_and_probes"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="is_one_draw",
            field=models.BooleanField(
                default=False,
                help_text="sampled, and repeats of a case were sent the same seed: all of them are one draw",
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="seed",
            field=models.BigIntegerField(
                help_text="what the seed of every call follows from; null: the profile's, for every call", null=True
            ),
        ),
        migrations.RunSQL(ONE_DRAW, migrations.RunSQL.noop),
    ]
