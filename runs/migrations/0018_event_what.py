"""What a line of a run's history says without the cases that it is about, so that equal lines are shown as one."""

from django.db import migrations, models

# Of the lines that stand there already. Two statements: where one expression has a choice in it, PostgreSQL takes the
# longest match, and a case may be called anything.
SHARDS = r"""
UPDATE runs_event SET what = regexp_replace(text, '^Repeat \d+, cases \d+–\d+(, attempt \d+( by \S+)?)?: ', '')
WHERE text ~ '^Repeat \d+, cases \d+–\d+(, attempt \d+( by \S+)?)?: '
"""
CASES = "UPDATE runs_event SET what = regexp_replace(text, '^Case .+?: ', '') WHERE text ~ '^Case .+?: '"


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0017_worker_left_alone'),
    ]

    operations = [
        migrations.AddField(
            model_name='event',
            name='what',
            field=models.TextField(
                db_default='', default='', help_text='the text without the place that it begins with'
            ),
        ),
        *(migrations.RunSQL(statement, migrations.RunSQL.noop) for statement in (SHARDS, CASES)),
    ]
