"""Indexes of the search over everything: cases by id, digest and word, comparisons by token, responses by request.

They are built beside the work that goes on. One that was left unfinished is built anew when the migration is tried again.
"""

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

# The words of a case's id and messages. Punctuation becomes space, as PostgreSQL's own parser reads "tool-041" as "tool"
# and "-041"; a JSON text has its line ends as \n. What lies beyond 20,000 characters of a prompt is not looked for.
CASE_WORDS = r"""
CREATE OR REPLACE FUNCTION case_words(case_id text, content jsonb) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT to_tsvector('pg_catalog.simple'::regconfig, translate(
    replace(left(case_id || ' ' || jsonb_path_query_array(content, '$.messages[*].content')::text, 20000), '\n', ' '),
    '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32)))
$$
"""
TOKENS = models.Func(
    models.F("summary"),
    models.Value("$.clusters[*].tokens[*][*]"),
    function="jsonb_path_query_array",
    output_field=models.JSONField(),
)
OF_OTHERS = models.Q(
    models.Q(("request_id", ""), _negated=True),
    models.Q(("request_id__regex", "^[0-9]+(-[0-9a-f]{8})?$"), _negated=True),
)
BY_WORD = GinIndex(models.Func(models.F("case_id"), models.F("content"), function="case_words"), name="case_by_word")
BY_TOKEN = GinIndex(TOKENS, name="comparison_by_token")
INDEXES = (
    ("case", models.Index(fields=["case_id"], name="case_by_id", opclasses=["varchar_pattern_ops"])),
    ("case", models.Index(fields=["digest"], name="case_by_digest", opclasses=["varchar_pattern_ops"])),
    ("case", BY_WORD),
    ("comparison", BY_TOKEN),
    (
        "response",
        models.Index(
            fields=["request_id"], name="response_by_request", opclasses=["varchar_pattern_ops"], condition=OF_OTHERS
        ),
    ),
)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0036_daily_checks")]

    operations = [
        migrations.RunSQL(CASE_WORDS, "DROP FUNCTION case_words(text, jsonb)"),
        *(
            step
            for model, index in INDEXES
            for step in (
                migrations.RunSQL(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}", migrations.RunSQL.noop),
                AddIndexConcurrently(model, index),
            )
        ),
    ]
