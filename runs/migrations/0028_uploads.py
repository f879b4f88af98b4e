"""Keep suites on their way: their parts, and their cases until all are there."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0027_comparison_outcomes'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
                'ordering': ['upload_id', 'index'],
                'constraints': [models.UniqueConstraint(fields=('upload', 'index'), name='one_uploaded_case_per_index'), models.UniqueConstraint(fields=('upload', 'case_id'), name='one_uploaded_case_per_id')],
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
                'ordering': ['upload_id', 'offset'],
                'constraints': [models.UniqueConstraint(fields=('upload', 'offset'), name='one_part_per_offset')],
            },
        ),
    ]
