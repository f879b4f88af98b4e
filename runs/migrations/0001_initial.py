"""The schema, whole. Until 0.2.0 is tagged this file is edited and no other is added (docs/decisions/0011-the-house.md)."""

import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

# The words of a case's id and messages. Punctuation becomes space, because PostgreSQL's own parser reads "tool-041" as
# "tool" and "-041"; line ends of a JSON text are written \\n. The search ignores what follows 20,000 characters.
CASE_WORDS = r"""
CREATE FUNCTION case_words(case_id text, content jsonb) RETURNS tsvector
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT to_tsvector('pg_catalog.simple'::regconfig, translate(
    replace(left(case_id || ' ' || jsonb_path_query_array(content, '$.messages[*].content')::text, 20000), '\n', ' '),
    '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~', repeat(' ', 32)))
$$
"""
# Sign-offs are append-only. TRUNCATE fires no trigger of a row, so the statement has one of its own.
APPEND_ONLY = """
CREATE FUNCTION runs_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'Sign-offs are append-only; % is refused.', TG_OP USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER runs_signoff_append_only BEFORE UPDATE OR DELETE ON runs_signoff
    FOR EACH ROW EXECUTE FUNCTION runs_refuse_change();
CREATE TRIGGER runs_signoff_no_truncate BEFORE TRUNCATE ON runs_signoff
    FOR EACH STATEMENT EXECUTE FUNCTION runs_refuse_change();
"""


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(CASE_WORDS, "DROP FUNCTION case_words(text, jsonb)"),
        migrations.CreateModel(
            name='Fingerprint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('label', models.CharField(max_length=200)),
                ('manifest', models.JSONField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Model',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('name', models.CharField(max_length=200)),
                ('revision', models.CharField(blank=True, help_text='as a log declares it', max_length=100)),
                ('line', models.CharField(max_length=80)),
                ('files', models.JSONField(default=dict)),
                ('template_digest', models.CharField(blank=True, max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Bucket',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('batch_class', models.CharField(max_length=40)),
                ('fingerprint', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='buckets', to='runs.fingerprint')),
                ('model', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='buckets', to='runs.model')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('model', 'fingerprint', 'batch_class'), name='one_bucket_per_triple'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Endpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('engine', models.CharField(choices=[('vllm', "vLLM, in a process of the worker's own"), ('openai', "a server that others run, which speaks OpenAI's protocol"), ('imported', "another tool's log: nothing is decoded here")], default='vllm', max_length=20)),
                ('model_path', models.CharField(blank=True, help_text='a folder on the worker', max_length=500)),
                ('model_repo', models.CharField(blank=True, help_text='a repository on a model hub; of a server of others, the name to ask for', max_length=200)),
                ('model_revision', models.CharField(blank=True, max_length=100)),
                ('dtype', models.CharField(max_length=20)),
                ('quantization', models.CharField(blank=True, max_length=40)),
                ('line', models.CharField(help_text='the series that the model belongs to', max_length=80)),
                ('max_model_len', models.PositiveIntegerField(default=2048, help_text='null: a server of others decides', null=True)),
                ('pool', models.CharField(default='default', help_text='the workers that serve it', max_length=40)),
                ('base_url', models.CharField(blank=True, help_text='where a server of others is, up to /v1', max_length=500)),
                ('api', models.CharField(choices=[('chat', 'chat completions'), ('completions', 'completions'), ('responses', 'the Responses API')], default='chat', max_length=20)),
                ('auth', models.CharField(blank=True, help_text='where a worker reads the key: a variable or a file', max_length=200)),
                ('headers', models.JSONField(default=dict, help_text='name → a constant, or {"env": variable of the worker}')),
                ('extra_body', models.JSONField(default=dict, help_text='fields that go into the body of every call')),
                ('concurrency', models.PositiveIntegerField(default=8, help_text='calls in flight; one under the class alone')),
                ('calls_per_minute', models.PositiveIntegerField(help_text='by all workers together; null: no limit', null=True)),
                ('next_call_at', models.DateTimeField(help_text='no worker makes a call before; null: at any time', null=True)),
                ('endings', models.JSONField(default=dict, help_text='what a person says that words at the end of answers mean')),
                ('rescores', models.BooleanField(default=False, help_text='runs the reference set by itself after a rotation')),
                ('has_daily_check', models.BooleanField(db_default=False, default=False, help_text='a schedule that checks it was made once, at its first use')),
                ('n_failures', models.PositiveIntegerField(default=0, help_text='failed calls in a row, as workers told last')),
                ('rests_until', models.DateTimeField(help_text='no call is made before; null: it is not resting', null=True)),
                ('rest_reason', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('bypass', models.ForeignKey(help_text='the same model without the gateway', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.endpoint')),
                ('reference', models.ForeignKey(help_text='ours, which serves the same weights', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.endpoint')),
            ],
            options={
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('model_path', ''), ('model_repo', ''), _connector='XOR'), name='endpoint_names_one_model'),
                ],
                'ordering': ['slug'],
            },
        ),
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('format', models.CharField(help_text='a name of `runs.importers.FORMATS`', max_length=40)),
                ('tool', models.CharField(help_text='the tool that wrote it, with its version where the log says it', max_length=100)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('files', models.JSONField()),
                ('notes', models.JSONField(default=list, help_text='what the log does not say, or was not taken over')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Profile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80)),
                ('version', models.PositiveIntegerField(default=1)),
                ('title', models.CharField(max_length=200)),
                ('settings', models.JSONField()),
                ('digest', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['slug', '-version'],
                'constraints': [models.UniqueConstraint(fields=('slug', 'version'), name='one_profile_per_version')],
            },
        ),
        migrations.CreateModel(
            name='Scorer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('spec', models.JSONField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80)),
                ('version', models.PositiveIntegerField(default=1)),
                ('title', models.CharField(max_length=200)),
                ('settings', models.JSONField()),
                ('digest', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('slug', 'version'), name='one_policy_per_version'),
                ],
                'verbose_name_plural': 'policies',
                'ordering': ['slug', '-version'],
            },
        ),
        migrations.CreateModel(
            name='Suite',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('policy', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='suites', to='runs.policy')),
            ],
            options={
                'ordering': ['slug'],
            },
        ),
        migrations.CreateModel(
            name='SuiteVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('digest', models.CharField(max_length=64)),
                ('title', models.CharField(max_length=200)),
                ('max_tokens', models.PositiveIntegerField()),
                ('stop', models.JSONField(default=list)),
                ('n_cases', models.PositiveIntegerField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('scorer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='suite_versions', to='runs.scorer')),
                ('suite', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='versions', to='runs.suite')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('suite', 'number'), name='one_number_per_suite'),
                    models.UniqueConstraint(fields=('suite', 'digest'), name='one_version_per_content'),
                ],
                'ordering': ['suite_id', '-number'],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('model_override', models.JSONField(help_text='another checkpoint of the endpoint\'s line: {"path"} or {"repo", "revision"}', null=True)),
                ('seed', models.BigIntegerField(help_text="what the seed of every call follows from; null: the profile's, for every call", null=True)),
                ('is_one_draw', models.BooleanField(default=False, help_text='sampled, and repeats of a case were sent the same seed: all of them are one draw')),
                ('is_shuffled', models.BooleanField(db_default=False, default=False, help_text='each repeat has its cases in an order of its own')),
                ('is_restarted', models.BooleanField(db_default=False, default=False, help_text='each repeat has an engine process of its own, not each half of them')),
                ('labels', models.JSONField(default=dict)),
                ('priority', models.CharField(choices=[('release', 'Release'), ('normal', 'Normal'), ('bulk', 'Bulk')], db_default='normal', default='normal', max_length=10)),
                ('is_reported', models.BooleanField(db_default=False, default=False, help_text='who served it is what a log or a server of others says; nothing of it is attested')),
                ('log_ids', models.JSONField(default=list, help_text='digests of what its eval is told by, in whatever form logged')),
                ('log_digest', models.CharField(blank=True, help_text="of its log's answers and their scores", max_length=64)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('finished', 'Finished'), ('incomplete', 'Incomplete'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=20)),
                ('is_cancel_wanted', models.BooleanField(default=False)),
                ('strays', models.JSONField(help_text='of each bucket that has strays, what work.strays counted; null: nobody has looked', null=True)),
                ('strays_so_far', models.JSONField(help_text='of buckets that have strays, what was read since of cases unread when the run ended', null=True)),
                ('unsteady', models.JSONField(help_text='buckets whose repeats should be the same to the bit and are not; null: nobody has looked', null=True)),
                ('settings_seen', models.JSONField(help_text='what its calls and the newest check of its endpoint showed of each setting (contract.facts.SettingsSeen); null: no server of others has ended it', null=True)),
                ('failure', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('ran_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text='where it stands in time: when it was asked for; of a log, when that says that it ran, if it does')),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('bucket', models.ForeignKey(help_text='the serving stack that the run keeps to, bound by the first shard started', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.bucket')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.endpoint')),
                ('profile', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.profile')),
                ('source', models.ForeignKey(help_text='the log that it was read from', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.import')),
                ('suite_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='runs.suiteversion')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('status', 'finished')), fields=['suite_version', 'endpoint', 'profile', 'bucket', 'id'], name='run_twins'),
                    models.Index(fields=['suite_version', 'ran_at', 'id'], name='run_of_suite'),
                    models.Index(fields=['status'], name='run_by_status'),
                    models.Index(fields=['ran_at', 'id'], name='run_by_time'),
                    models.Index(condition=models.Q(('status', 'finished')), fields=['finished_at', 'id'], name='run_by_end'),
                    models.Index(condition=models.Q(('strays_so_far__isnull', False)), fields=['id'], name='run_strays_unread'),
                ],
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Comparison',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('baseline_repeat', models.PositiveIntegerField(help_text='one repeat only; null: all that have ended', null=True)),
                ('candidate_repeat', models.PositiveIntegerField(null=True)),
                ('input_digest', models.CharField(max_length=64, unique=True)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('finished', 'Finished'), ('failed', 'Failed')], default='queued', max_length=20)),
                ('n_pairs', models.PositiveIntegerField(default=0, help_text='distinct pairs of traces that must be read')),
                ('n_done', models.PositiveIntegerField(default=0)),
                ('summary', models.JSONField(default=dict)),
                ('outcomes', models.JSONField(default=dict, help_text='the cases with each outcome by look, as compare.outcomes keeps them')),
                ('error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('baseline', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comparisons_as_baseline', to='runs.run')),
                ('candidate', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='comparisons_as_candidate', to='runs.run')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['baseline', 'candidate', '-id'], name='comparison_of_two_runs'),
                    models.Index(condition=models.Q(('status', 'queued')), fields=['id'], name='comparison_waiting'),
                    django.contrib.postgres.indexes.GinIndex(models.Func(models.F('summary'), models.Value('$.clusters[*].tokens[*][*]'), function='jsonb_path_query_array', output_field=models.JSONField()), name='comparison_by_token'),
                ],
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='TourEnd',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='tour_end', serialize=False, to=settings.AUTH_USER_MODEL)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name='Vocabulary',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('n_tokens', models.PositiveIntegerField()),
                ('data', models.BinaryField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'verbose_name_plural': 'vocabularies',
            },
        ),
        migrations.CreateModel(
            name='SelfTest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('host', models.CharField(max_length=200)),
                ('node_digest', models.CharField(max_length=64)),
                ('result', models.JSONField()),
                ('is_invariant', models.BooleanField(help_text='the same bits alone and inside a batch, under batch-invariant kernels')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'indexes': [models.Index(fields=['host', 'node_digest', '-id'], name='self_test_of_a_node')],
            },
        ),
        migrations.CreateModel(
            name='Worker',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200, unique=True)),
                ('host', models.CharField(max_length=200)),
                ('pid', models.PositiveIntegerField()),
                ('place', models.CharField(db_default='', default='', help_text='where its pid counts', max_length=200)),
                ('process_started', models.BigIntegerField(help_text='clock ticks since the boot', null=True)),
                ('pool', models.CharField(max_length=40)),
                ('hardware', models.JSONField(default=dict)),
                ('versions', models.JSONField(default=dict)),
                ('note', models.CharField(blank=True, max_length=500)),
                ('left_alone', models.JSONField(help_text='{"noun": "run", "probe" or "forced scoring", "id", "why"}', null=True)),
                ('n_engine_failures', models.PositiveIntegerField(default=0)),
                ('rests_until', models.DateTimeField(help_text='degraded: it claims nothing before', null=True)),
                ('pace', models.FloatField(help_text='responses a second over the last shard that it finished', null=True)),
                ('n_fenced', models.PositiveIntegerField(default=0, help_text='writes refused because its lease was lost')),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('seen_at', models.DateTimeField(db_index=True)),
                ('stopped_at', models.DateTimeField(null=True)),
                ('self_test', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='workers', to='runs.selftest')),
            ],
            options={
                'ordering': ['-seen_at'],
            },
        ),
        migrations.CreateModel(
            name='EngineProcess',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('manifest', models.JSONField()),
                ('pins', models.JSONField(default=list)),
                ('self_checks', models.JSONField(default=list)),
                ('start_seconds', models.FloatField()),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('stopped_at', models.DateTimeField(null=True)),
                ('last_words', models.TextField(blank=True, help_text="the end of the engine's stderr, where it says why it died")),
                ('bucket', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='engine_processes', to='runs.bucket')),
                ('vocabulary', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='runs.vocabulary')),
                ('worker', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='engine_processes', to='runs.worker')),
            ],
            options={
                'verbose_name_plural': 'engine processes',
            },
        ),
        migrations.CreateModel(
            name='Lane',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pool', models.CharField(max_length=40)),
                ('priority', models.CharField(choices=[('release', 'Release'), ('normal', 'Normal'), ('bulk', 'Bulk')], max_length=10)),
                ('turn', models.BigIntegerField(default=0)),
                ('person', models.ForeignKey(help_text='null: what no person asked for', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='lanes', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('pool', 'priority', 'person'), name='one_lane_per_person_and_priority'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ListedFrame',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('first', models.PositiveIntegerField()),
                ('data', models.BinaryField()),
                ('comparison', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='listed_frames', to='runs.comparison')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('comparison', 'first'), name='one_listed_frame_per_place'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Probe',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('finished', 'Finished'), ('failed', 'Failed')], default='queued', max_length=20)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('next_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text="not before; by the database's clock")),
                ('error', models.TextField(blank=True)),
                ('n_crashes', models.PositiveIntegerField(db_default=0, default=0)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('kind', models.CharField(choices=[('seed', 'Seed'), ('batch', 'Batch'), ('routing', 'Routing'), ('canary', 'Canary'), ('capability', 'Capability'), ('determinism', 'Determinism'), ('audit', 'Audit'), ('verify', 'Verify')], max_length=20)),
                ('parameters', models.JSONField()),
                ('answers', models.JSONField(default=list)),
                ('finding', models.JSONField(null=True)),
                ('waits_for', models.JSONField(default=list)),
                ('n_rests', models.PositiveIntegerField(db_default=0, default=0, help_text='of its endpoint, since calls of it were answered')),
                ('bucket', models.ForeignKey(help_text='gave most of its answers; null: none has ended it, or nobody knows who did', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='probes', to='runs.bucket')),
                ('buckets', models.ManyToManyField(help_text='each that gave one of its answers, as far as anything names it', related_name='+', to='runs.bucket')),
                ('bypass_of', models.ForeignKey(help_text='the probe of the gateway that this one goes around', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='bypass_probes', to='runs.probe')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='probes', to='runs.endpoint')),
                ('profile', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='probes', to='runs.profile')),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='%(class)ss', to='runs.worker')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('status', 'queued')), fields=['next_at', 'id'], name='probe_claimable'),
                    models.Index(condition=models.Q(('status', 'running')), fields=['lease_until'], name='probe_leased'),
                    models.Index(fields=['endpoint', 'kind', '-id'], name='probe_of_an_endpoint'),
                ],
                'ordering': ['-id'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Release',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('treatment', models.CharField(choices=[('model', 'the model: both sides must be served alike'), ('stack', 'the serving stack: an engine upgrade or a quantisation of one model'), ('service', 'the service: model and stack together, as a hosted model is bought')], default='model', max_length=20)),
                ('labels', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('policy', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='releases', to='runs.policy')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Repeat',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.PositiveIntegerField()),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('finished', 'Finished'), ('incomplete', 'Incomplete'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=20)),
                ('finished_at', models.DateTimeField(null=True)),
                ('cases', models.BinaryField(help_text='a bit a case, of those that it decodes (core.trace.pack_selection); null: all of them', null=True)),
                ('engine_processes', models.ManyToManyField(help_text='those that decoded some of it; kept here so that no page asks the responses', related_name='repeats', to='runs.engineprocess')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='repeats', to='runs.run')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('run', 'index'), name='one_repeat_per_index'),
                ],
                'ordering': ['run_id', 'index'],
            },
        ),
        migrations.CreateModel(
            name='CaseColumns',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('text_digests', models.BinaryField()),
                ('trace_digests', models.BinaryField()),
                ('buckets', models.BinaryField()),
                ('bucket_ids', models.JSONField()),
                ('digest', models.CharField(blank=True, help_text='of the columns above and the bucket ids', max_length=64)),
                ('marks', models.BinaryField(help_text='null where no response carries one', null=True)),
                ('n_left_out', models.PositiveIntegerField(default=0, help_text='responses that are no draws')),
                ('batch_sizes', models.JSONField(default=dict, help_text='the largest batch of each response: size → responses')),
                ('calls_in_flight', models.JSONField(help_text='the most of our calls at once during each response: calls → responses; null where not counted', null=True)),
                ('flip_chances', models.BinaryField(help_text='a little-endian float32 a case, NaN where unknown; see core.fragility', null=True)),
                ('repeat', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='columns', to='runs.repeat')),
            ],
            options={
                'verbose_name_plural': 'case columns',
            },
        ),
        migrations.CreateModel(
            name='Rotation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('profile_slug', models.SlugField(blank=True, max_length=80)),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('attended_at', models.DateTimeField(help_text='when the reference sets of its baselines were started; null: not yet, or not wanted', null=True)),
                ('problem', models.TextField(blank=True, db_default='', help_text='why reference sets could not be started, a line each')),
                ('after', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='rotations_here', to='runs.fingerprint')),
                ('before', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='rotations_away', to='runs.fingerprint')),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rotations', to='runs.endpoint')),
                ('probe', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='rotation', to='runs.probe')),
                ('reference_runs', models.ManyToManyField(help_text='started by themselves after it', related_name='+', to='runs.run')),
                ('run', models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='rotation', to='runs.run')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['endpoint', 'profile_slug', '-id'], name='rotation_of_an_endpoint'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('run', None), ('probe', None), _connector='XOR'), name='a_run_or_a_probe_shows_a_rotation'),
                ],
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='IdempotencyKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=255)),
                ('body_digest', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True, db_index=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='idempotency_keys', to=settings.AUTH_USER_MODEL)),
                ('candidate', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.run')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='idempotency_keys', to='runs.run')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('user', 'key'), name='one_request_per_key'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ForcedScoring',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('finished', 'Finished'), ('failed', 'Failed')], default='queued', max_length=20)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('next_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text="not before; by the database's clock")),
                ('error', models.TextField(blank=True)),
                ('n_crashes', models.PositiveIntegerField(db_default=0, default=0)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('model_override', models.JSONField(help_text="another checkpoint of the endpoint's line, as a run has it", null=True)),
                ('cases', models.BinaryField(help_text='a bit a case (core.trace.pack_selection); null: all of them', null=True)),
                ('repeats', models.JSONField(help_text='their indexes')),
                ('n_answers', models.PositiveIntegerField(help_text='different ones, to be scored')),
                ('n_tokens', models.PositiveIntegerField(help_text='of these answers, as far as their run counted them')),
                ('n_done', models.PositiveIntegerField(default=0)),
                ('figures', models.JSONField(help_text='of all its answers (runs.forced.figures.store_figures), once it has ended', null=True)),
                ('figures_by_bucket', models.JSONField(db_default=[], default=list, help_text='where several buckets gave the answers: {"bucket", "figures"} of each')),
                ('bucket', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='forced_scorings', to='runs.bucket')),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('endpoint', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='forced_scorings', to='runs.endpoint')),
                ('profile', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='forced_scorings', to='runs.profile')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='forced_scorings', to='runs.run')),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='%(class)ss', to='runs.worker')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('status', 'queued')), fields=['next_at', 'id'], name='forcedscoring_claimable'),
                    models.Index(condition=models.Q(('status', 'running')), fields=['lease_until'], name='forcedscoring_leased'),
                    models.Index(fields=['run', '-id'], name='forced_scoring_of_a_run'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(models.Q(('endpoint__isnull', False), ('profile__isnull', False)), models.Q(('bucket__isnull', True), ('endpoint__isnull', True), ('profile__isnull', True)), _connector='OR'), name='a_stack_scores_or_a_trainer_did'),
                ],
                'ordering': ['-id'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Experiment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('variance', 'Variance'), ('bisect', 'Bisect')], max_length=20)),
                ('n_runs', models.PositiveIntegerField(help_text='passes over the suite in an arm')),
                ('left_out', models.JSONField(default=list)),
                ('plan', models.JSONField(db_default={}, default=dict)),
                ('budget_minutes', models.FloatField(help_text='of engines; nothing is begun once it is spent')),
                ('status', models.CharField(choices=[('planned', 'Planned'), ('running', 'Running'), ('finished', 'Finished'), ('stopped', 'stopped by its budget'), ('cancelled', 'Cancelled'), ('failed', 'Failed')], default='planned', max_length=20)),
                ('problem', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='experiments', to='runs.endpoint')),
                ('profile', models.ForeignKey(help_text='what all else is pinned by', on_delete=django.db.models.deletion.PROTECT, related_name='experiments', to='runs.profile')),
                ('baseline', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run')),
                ('candidate', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run')),
                ('suite_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='experiments', to='runs.suiteversion')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('status', 'running')), fields=['id'], name='experiment_running'),
                ],
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('level', models.CharField(choices=[('info', 'Info'), ('warning', 'Warning'), ('error', 'Error')], default='info', max_length=10)),
                ('code', models.CharField(max_length=40)),
                ('text', models.TextField()),
                ('what', models.TextField(db_default='', default='', help_text='the text without the place that it begins with')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='runs.run')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='CaseFrame',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('first', models.PositiveIntegerField()),
                ('data', models.BinaryField()),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='case_frames', to='runs.run')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('run', 'first', 'digest'), name='one_frame_per_place'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Baseline',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('line', models.CharField(max_length=80)),
                ('profile_slug', models.SlugField(max_length=80)),
                ('reason', models.TextField()),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('set_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('rotation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='expired_baselines', to='runs.rotation')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='baselines', to='runs.run')),
                ('suite', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='baselines', to='runs.suite')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['suite', 'line', 'profile_slug', '-id'], name='baseline_by_key'),
                ],
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='AnswerSet',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('endpoint', 'Endpoint'), ('control', 'Control'), ('numerics', 'Numerics'), ('planted', 'Planted')], max_length=20)),
                ('scoring', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.forcedscoring')),
                ('probe', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sets', to='runs.probe')),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('probe', 'role'), name='a_probe_has_a_role_once'),
                ],
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='RunFigures',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('figures', models.JSONField()),
                ('cases', models.BinaryField()),
                ('twin', models.JSONField(null=True)),
                ('twin_digest', models.CharField(blank=True, max_length=64)),
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='figures', to='runs.run')),
            ],
            options={
                'verbose_name_plural': 'run figures',
            },
        ),
        migrations.CreateModel(
            name='SameModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200)),
                ('other_name', models.CharField(max_length=200)),
                ('reason', models.TextField()),
                ('said_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('taken_back_at', models.DateTimeField(null=True)),
                ('said_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('taken_back_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('taken_back_at__isnull', True)), fields=('name', 'other_name'), name='two_names_are_one_model_once'),
                ],
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Schedule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(max_length=80, unique=True)),
                ('kind', models.CharField(choices=[('run', 'Run'), ('probe', 'Probe')], max_length=20)),
                ('order', models.JSONField()),
                ('cron', models.CharField(help_text='minute, hour, day of the month, month, day of the week', max_length=100)),
                ('time_zone', models.CharField(max_length=60)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('next_at', models.DateTimeField(null=True)),
                ('n_failures', models.PositiveIntegerField(default=0)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='schedules', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [
                    models.Index(fields=['next_at'], name='schedule_due'),
                ],
                'ordering': ['slug'],
            },
        ),
        migrations.CreateModel(
            name='ScheduledStart',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('due_at', models.DateTimeField()),
                ('missed_since', models.DateTimeField(null=True)),
                ('started_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('problem', models.TextField(blank=True)),
                ('probe', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.probe')),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.run')),
                ('schedule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='starts', to='runs.schedule')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('schedule', 'due_at'), name='one_start_for_each_due_time'),
                ],
                'ordering': ['-due_at'],
            },
        ),
        migrations.CreateModel(
            name='RepeatScore',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scores', models.BinaryField()),
                ('reasons', models.BinaryField()),
                ('answers', models.BinaryField(help_text='zeros where none was read; null where the scorer reads none, or read them before this', null=True)),
                ('n_scored', models.PositiveIntegerField()),
                ('n_missing', models.PositiveIntegerField()),
                ('points', models.FloatField(help_text='percent of the suite; null unless every case is scored and one bucket served them all', null=True)),
                ('digest', models.CharField(blank=True, help_text='of scores and reasons', max_length=64)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('repeat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scores', to='runs.repeat')),
                ('scorer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='repeat_scores', to='runs.scorer')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('repeat', 'scorer'), name='one_score_per_scorer'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Settling',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('look', models.PositiveIntegerField()),
                ('plan', models.JSONField()),
                ('estimated_minutes', models.FloatField(null=True)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('asked_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('release', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='settlings', to='runs.release')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='Stray',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('case_index', models.PositiveIntegerField()),
                ('repeat', models.PositiveIntegerField(help_text='its index')),
                ('is_listed', models.BooleanField(default=True, help_text='false: of cases read since the run ended, until all of them are read')),
                ('bucket', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.bucket')),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='stray_responses', to='runs.run')),
            ],
            options={
                'indexes': [
                    models.Index(fields=['run', 'is_listed', 'id'], name='strays_of_run'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Gate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField(help_text='0-based, as asked for')),
                ('tier', models.CharField(choices=[('critical', 'Critical'), ('advisory', 'Advisory')], default='critical', max_length=20)),
                ('baseline', models.ForeignKey(help_text='asked for as "current"', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='gates', to='runs.baseline')),
                ('release', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='gates', to='runs.release')),
                ('baseline_run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='gates_as_baseline', to='runs.run')),
                ('candidate_run', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='gates_as_candidate', to='runs.run')),
                ('suite', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='gates', to='runs.suite')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('release', 'position'), name='one_gate_per_position'),
                ],
                'ordering': ['release_id', 'position'],
            },
        ),
        migrations.CreateModel(
            name='SuiteNoise',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('noise', models.JSONField(null=True)),
                ('bucket', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.bucket')),
                ('suite_version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='noises', to='runs.suiteversion')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('suite_version', 'bucket'), name='one_noise_per_bucket'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ExperimentArm',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField()),
                ('source', models.CharField(max_length=20)),
                ('name', models.CharField(blank=True, help_text='what tells it from other arms of its source', max_length=80)),
                ('settings', models.JSONField(null=True)),
                ('turned', models.JSONField(null=True)),
                ('serving', models.JSONField(null=True)),
                ('n_runs', models.PositiveIntegerField()),
                ('is_shuffled', models.BooleanField(default=False)),
                ('is_restarted', models.BooleanField(default=False)),
                ('cost', models.JSONField()),
                ('status', models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('finished', 'Finished'), ('cut', 'cut short'), ('failed', 'Failed'), ('missing', 'Missing')], default='waiting', max_length=20)),
                ('problem', models.TextField(blank=True)),
                ('figures', models.JSONField(null=True)),
                ('spent_minutes', models.FloatField(default=0.0)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.endpoint')),
                ('experiment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='arms', to='runs.experiment')),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='experiment_arms', to='runs.run')),
                ('suite_version', models.ForeignKey(help_text="null: the experiment's", null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.suiteversion')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('experiment', 'position'), name='one_arm_per_position'),
                ],
                'ordering': ['experiment_id', 'position'],
            },
        ),
        migrations.CreateModel(
            name='Case',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.PositiveIntegerField()),
                ('case_id', models.CharField(max_length=200)),
                ('digest', models.CharField(max_length=64)),
                ('content', models.JSONField()),
                ('tags', models.JSONField(default=list)),
                ('group', models.CharField(blank=True, max_length=200)),
                ('is_reference', models.BooleanField(default=False)),
                ('suite_version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='cases', to='runs.suiteversion')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('is_reference', True)), fields=['suite_version'], name='case_reference'),
                    models.Index(condition=models.Q(('group', ''), _negated=True), fields=['suite_version'], name='case_grouped'),
                    models.Index(fields=['case_id'], name='case_by_id', opclasses=['varchar_pattern_ops']),
                    models.Index(fields=['digest'], name='case_by_digest', opclasses=['varchar_pattern_ops']),
                    django.contrib.postgres.indexes.GinIndex(models.Func(models.F('case_id'), models.F('content'), function='case_words'), name='case_by_word'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('suite_version', 'index'), name='one_case_per_index'),
                    models.UniqueConstraint(fields=('suite_version', 'case_id'), name='one_case_per_id'),
                ],
                'ordering': ['suite_version_id', 'index'],
            },
        ),
        migrations.CreateModel(
            name='Token',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=80)),
                ('secret_digest', models.CharField(max_length=64, unique=True)),
                ('scopes', models.JSONField(help_text='of "read", "run", "sign", "admin"')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('last_used_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evalboard_tokens', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='TraceBlock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('data', models.BinaryField()),
                ('n_traces', models.PositiveIntegerField()),
                ('is_packed', models.BooleanField(default=False, help_text='final; until then the shard that wrote it may repack it')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='trace_blocks', to='runs.run')),
            ],
        ),
        migrations.CreateModel(
            name='Response',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('case_index', models.PositiveIntegerField()),
                ('attempt', models.PositiveIntegerField()),
                ('text', models.TextField(blank=True)),
                ('reasoning', models.TextField(help_text='what the model thought; null where nothing is apart', null=True)),
                ('n_reasoning_tokens', models.PositiveIntegerField(null=True)),
                ('is_truncated', models.BooleanField(help_text='cut while it thought; null where nothing is apart', null=True)),
                ('finish_reason', models.CharField(blank=True, max_length=40)),
                ('ending', models.CharField(blank=True, help_text='core.trace.Ending; empty where nothing says it', max_length=12)),
                ('error_code', models.CharField(blank=True, max_length=40)),
                ('error_detail', models.TextField(blank=True)),
                ('trace_slot', models.PositiveIntegerField(null=True)),
                ('trace_reason', models.CharField(blank=True, help_text='why the tokens are not measured (importers.spelling); blank: they are', max_length=20)),
                ('unmeasured_trace', models.BinaryField(help_text='a block of that one trace, which is shown and no more', null=True)),
                ('text_digest', models.BinaryField(max_length=16, null=True)),
                ('trace_digest', models.BinaryField(max_length=16, null=True)),
                ('prompt_digest', models.BinaryField(max_length=16, null=True)),
                ('n_tokens', models.PositiveIntegerField(null=True)),
                ('n_prompt_tokens', models.PositiveIntegerField(null=True)),
                ('n_cached_tokens', models.PositiveIntegerField(null=True)),
                ('n_preemptions', models.PositiveIntegerField(null=True)),
                ('batch_min', models.PositiveIntegerField(null=True)),
                ('batch_max', models.PositiveIntegerField(null=True)),
                ('seed_sent', models.BigIntegerField(null=True)),
                ('request_id', models.CharField(blank=True, max_length=100)),
                ('queued_seconds', models.FloatField(null=True)),
                ('prefill_seconds', models.FloatField(null=True)),
                ('decode_seconds', models.FloatField(null=True)),
                ('marks', models.PositiveSmallIntegerField(default=0, help_text='bits of core.live_answers.MARKS: what a log says of an answer that may be no draw')),
                ('is_vouched', models.BooleanField(default=True, help_text="false where the engine's self-check no longer gave the same bits")),
                ('call', models.JSONField(help_text='how the call to a server of others went (contract.call.CallFacts); null: none was made', null=True)),
                ('recorded_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('engine_process', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='responses', to='runs.engineprocess')),
                ('repeat', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='responses', to='runs.repeat')),
                ('trace_block', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='responses', to='runs.traceblock')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('error_code', ''), _negated=True), fields=['repeat'], name='response_missing'),
                    models.Index(condition=models.Q(('is_vouched', False)), fields=['repeat'], name='response_unvouched'),
                    models.Index(condition=models.Q(('is_truncated', True)), fields=['repeat'], name='response_truncated'),
                    models.Index(condition=models.Q(('ending__in', ['cut', 'filtered', 'refused', 'empty', 'unknown'])), fields=['repeat'], name='response_by_ending'),
                    models.Index(condition=models.Q(models.Q(('request_id', ''), _negated=True), models.Q(('request_id__regex', '^[0-9]+(-[0-9a-f]{8})?$'), _negated=True)), fields=['request_id'], name='response_by_request', opclasses=['varchar_pattern_ops']),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('repeat', 'case_index'), name='one_response_per_case_and_repeat'),
                    models.CheckConstraint(condition=models.Q(models.Q(('error_code', ''), ('trace_digest__isnull', False)), models.Q(models.Q(('error_code', ''), _negated=True), ('text', ''), ('trace_digest__isnull', True)), _connector='OR'), name='a_missing_response_has_no_text_and_no_trace'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ForcedAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('case_index', models.PositiveIntegerField()),
                ('trace_digest', models.BinaryField(help_text="of the response's own trace", max_length=16)),
                ('error_code', models.CharField(blank=True, max_length=40)),
                ('error_detail', models.TextField(blank=True)),
                ('trace_slot', models.PositiveIntegerField(null=True)),
                ('n_tokens', models.PositiveIntegerField(null=True)),
                ('tokens', models.CharField(blank=True, choices=[('same', 'the ids of the response'), ('by_bytes', 'the tokens of the response, found by their bytes'), ('as_given', 'the ids of the log, of which nobody knows the bytes'), ('retokenised', "the text of the response, in tokens of the target's tokenizer")], max_length=20)),
                ('figures', models.JSONField(help_text='contract.forced.AnswerFigures; null without a trace', null=True)),
                ('is_rendered', models.BooleanField(default=False, help_text="the prompt's tokens are those of the target's chat template")),
                ('engine_process', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='runs.engineprocess')),
                ('scoring', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='runs.forcedscoring')),
                ('repeat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.repeat')),
                ('trace_block', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='runs.traceblock')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('scoring', 'case_index', 'trace_digest'), name='an_answer_is_scored_once'),
                    models.CheckConstraint(condition=models.Q(models.Q(('error_code', ''), ('trace_block__isnull', False), ('trace_slot__isnull', False)), models.Q(models.Q(('error_code', ''), _negated=True), ('trace_block__isnull', True)), _connector='OR'), name='a_scored_answer_has_a_trace'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Upload',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.CharField(max_length=80)),
                ('title', models.CharField(blank=True, max_length=200)),
                ('status', models.CharField(choices=[('open', 'takes parts'), ('reading', 'whole; a worker reads it, or will'), ('finished', 'Finished'), ('failed', 'Failed')], default='open', max_length=20)),
                ('n_bytes', models.BigIntegerField(help_text='of all lines; null while it takes parts', null=True)),
                ('n_read', models.BigIntegerField(default=0, help_text='bytes whose cases are checked and kept')),
                ('n_lines', models.PositiveIntegerField(default=0, help_text='of what was read')),
                ('n_cases', models.PositiveIntegerField(default=0, help_text='of what was read')),
                ('header', models.JSONField(default=dict, help_text='what the first line says of the suite')),
                ('fields', models.JSONField(default=dict)),
                ('is_new', models.BooleanField(help_text='false where that content was stored before', null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('touched_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='uploads', to='runs.suiteversion')),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='UploadedCase',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('index', models.PositiveIntegerField()),
                ('case_id', models.CharField(max_length=200)),
                ('digest', models.CharField(max_length=64)),
                ('content', models.JSONField()),
                ('tags', models.JSONField()),
                ('group', models.CharField(max_length=200)),
                ('is_reference', models.BooleanField()),
                ('scorer', models.JSONField(null=True)),
                ('upload', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='cases', to='runs.upload')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('upload', 'index'), name='one_uploaded_case_per_index'),
                    models.UniqueConstraint(fields=('upload', 'case_id'), name='one_uploaded_case_per_id'),
                ],
                'ordering': ['upload_id', 'index'],
            },
        ),
        migrations.CreateModel(
            name='UploadPart',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('offset', models.BigIntegerField()),
                ('n_bytes', models.PositiveIntegerField()),
                ('sha256', models.CharField(help_text='of the lines', max_length=64)),
                ('data', models.BinaryField()),
                ('upload', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='runs.upload')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('upload', 'offset'), name='one_part_per_offset'),
                ],
                'ordering': ['upload_id', 'offset'],
            },
        ),
        migrations.CreateModel(
            name='Verdict',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('word', models.CharField(choices=[('ship', 'Ship'), ('no_ship', 'No Ship'), ('inconclusive', 'Inconclusive'), ('not_comparable', 'Not Comparable')], max_length=20)),
                ('document', models.JSONField()),
                ('input_digest', models.CharField(max_length=64)),
                ('decided_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('policy', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='verdicts', to='runs.policy')),
                ('release', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='verdicts', to='runs.release')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('release', 'input_digest'), name='one_verdict_per_inputs'),
                ],
                'ordering': ['release_id', 'id'],
            },
        ),
        migrations.CreateModel(
            name='SignOff',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('person_name', models.CharField(help_text='as it was then', max_length=150)),
                ('decision', models.CharField(choices=[('approve', 'Approve'), ('reject', 'Reject'), ('waive', 'Waive')], max_length=20)),
                ('note', models.TextField(blank=True)),
                ('expires_at', models.DateTimeField(help_text='of a waiver', null=True)),
                ('input_digest', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField()),
                ('made_with', models.CharField(db_default='', default='', help_text='"token evb_… (its name)" or "session …"; "" before version 2', max_length=200)),
                ('version', models.PositiveSmallIntegerField(db_default=1, default=1, help_text='of what `digest` covers: runs.sign_off_chain')),
                ('verdict_digest', models.CharField(db_default='', default='', help_text='"" before version 2', max_length=64)),
                ('previous_digest', models.CharField(blank=True, max_length=64)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('person', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='sign_offs', to=settings.AUTH_USER_MODEL)),
                ('release', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='sign_offs', to='runs.release')),
                ('verdict', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='sign_offs', to='runs.verdict')),
            ],
            options={
                'ordering': ['id'],
            },
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.URLField(max_length=500)),
                ('secret', models.CharField(max_length=100)),
                ('events', models.JSONField(help_text='the kinds it is told of; see docs/webhooks.md')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('is_active', models.BooleanField(default=True, help_text='false after too many failures in a row')),
                ('n_failures', models.PositiveIntegerField(default=0, help_text='messages given up on, in a row')),
                ('delivered_at', models.DateTimeField(help_text='the last message that was taken', null=True)),
                ('last_error', models.CharField(blank=True, max_length=500)),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='OutboxMessage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message_id', models.CharField(max_length=64, unique=True)),
                ('event', models.CharField(max_length=40)),
                ('payload', models.JSONField()),
                ('status', models.CharField(choices=[('waiting', 'Waiting'), ('delivered', 'Delivered'), ('failed', 'Failed')], default='waiting', max_length=20)),
                ('n_attempts', models.PositiveIntegerField(default=0)),
                ('next_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('last_error', models.CharField(blank=True, max_length=500)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('delivered_at', models.DateTimeField(null=True)),
                ('webhook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='runs.webhook')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('status', 'waiting')), fields=['next_at', 'id'], name='outbox_waiting'),
                ],
                'ordering': ['-id'],
            },
        ),
        migrations.CreateModel(
            name='Shard',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('next_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text="not before; by the database's clock")),
                ('error', models.TextField(blank=True)),
                ('first', models.PositiveIntegerField()),
                ('last', models.PositiveIntegerField()),
                ('n_chosen', models.PositiveIntegerField(help_text='of its cases, those to decode; null: all of them', null=True)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('finished', 'Finished'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=20)),
                ('n_crashes', models.PositiveIntegerField(default=0)),
                ('n_failed_starts', models.PositiveIntegerField(default=0)),
                ('n_rests', models.PositiveIntegerField(db_default=0, default=0, help_text='of its endpoint, since a case of it was answered')),
                ('in_flight', models.PositiveIntegerField(null=True)),
                ('n_done', models.PositiveIntegerField(default=0)),
                ('lane', models.ForeignKey(db_index=False, help_text='where it waits; null: it never was in a lane, as those of logs', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='shards', to='runs.lane')),
                ('repeat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='shards', to='runs.repeat')),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='shards', to='runs.worker')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('status', 'queued')), fields=['next_at', 'id'], name='shard_claimable'),
                    models.Index(condition=models.Q(('status', 'running')), fields=['lease_until'], name='shard_leased'),
                    models.Index(models.F('lane'), django.db.models.expressions.CombinedExpression(models.F('id'), '+', models.Value(0)), condition=models.Q(('status', 'queued')), name='shard_in_lane'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('repeat', 'first'), name='one_shard_per_slice'),
                ],
                'ordering': ['repeat_id', 'first'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Replay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('finished', 'Finished'), ('failed', 'Failed')], default='queued', max_length=20)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('next_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), help_text="not before; by the database's clock")),
                ('error', models.TextField(blank=True)),
                ('n_crashes', models.PositiveIntegerField(db_default=0, default=0)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('finished_at', models.DateTimeField(null=True)),
                ('case_index', models.PositiveIntegerField(null=True)),
                ('body', models.JSONField(help_text='of a chat completion, as it came; null: a case of the run', null=True)),
                ('variants', models.JSONField()),
                ('results', models.JSONField(default=list)),
                ('created_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to=settings.AUTH_USER_MODEL)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='replays', to='runs.endpoint')),
                ('profile', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='replays', to='runs.profile')),
                ('repeat', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='replays', to='runs.repeat')),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='replays', to='runs.run')),
                ('owner', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='%(class)ss', to='runs.worker')),
            ],
            options={
                'indexes': [
                    models.Index(condition=models.Q(('status', 'queued')), fields=['next_at', 'id'], name='replay_claimable'),
                    models.Index(condition=models.Q(('status', 'running')), fields=['lease_until'], name='replay_leased'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(models.Q(('body__isnull', True), ('case_index__isnull', False), ('repeat__isnull', False), ('run__isnull', False)), models.Q(('body__isnull', False), ('case_index__isnull', True), ('repeat__isnull', True), ('run__isnull', True)), _connector='OR'), name='a_replay_has_a_case_or_a_body'),
                ],
                'ordering': ['-id'],
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='CallSlot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField(help_text='from 0; under the class alone a call has the first')),
                ('until', models.DateTimeField(null=True)),
                ('endpoint', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='slots', to='runs.endpoint')),
                ('worker', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.worker')),
            ],
            options={
                'constraints': [
                    models.UniqueConstraint(fields=('endpoint', 'number'), name='a_slot_of_an_endpoint_once'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Divergence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('case_index', models.PositiveIntegerField()),
                ('repeat_baseline', models.PositiveIntegerField()),
                ('repeat_candidate', models.PositiveIntegerField()),
                ('cause', models.CharField(max_length=20)),
                ('numeric', models.CharField(blank=True, max_length=20)),
                ('consequence', models.PositiveSmallIntegerField(help_text='0 is the gravest; the order of the case list')),
                ('score_baseline', models.FloatField(null=True)),
                ('score_candidate', models.FloatField(null=True)),
                ('drift_onset', models.PositiveIntegerField(null=True)),
                ('flip_position', models.PositiveIntegerField(null=True)),
                ('margin_baseline', models.FloatField(null=True)),
                ('margin_candidate', models.FloatField(null=True)),
                ('gap_at_onset', models.FloatField(null=True)),
                ('token_baseline', models.IntegerField(help_text='chosen at the flip', null=True)),
                ('token_candidate', models.IntegerField(null=True)),
                ('evidence', models.JSONField(default=dict)),
                ('comparison', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='divergences', to='runs.comparison')),
            ],
            options={
                'ordering': ['comparison_id', 'consequence', 'case_index', 'repeat_baseline', 'repeat_candidate'],
                'indexes': [models.Index(fields=['comparison', 'consequence', 'case_index', 'repeat_baseline', 'repeat_candidate'], name='divergence_by_consequence')],
                'constraints': [models.UniqueConstraint(fields=('comparison', 'case_index', 'repeat_baseline', 'repeat_candidate'), name='one_divergence_per_pair')],
            },
        ),
        migrations.AddField(
            model_name='suite',
            name='reference_of',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='reference_suites', to='runs.suiteversion'),
        ),
        migrations.AddField(
            model_name='release',
            name='verdict',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='runs.verdict'),
        ),
        migrations.RunSQL(APPEND_ONLY, "DROP FUNCTION runs_refuse_change() CASCADE"),
    ]
