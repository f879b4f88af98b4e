"""Who served a response: model, vocabulary, fingerprint, bucket, engine process, worker."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from evalboard.core.profile import NO_ENGINE


class Model(models.Model):
    """Weights, tokenizer and chat template, by content. `files` maps a file's name to size and SHA-256.

    One that only logs know has a name and perhaps a declared `revision`; its digest stands for these.
    """

    digest = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=200)
    revision = models.CharField(max_length=100, blank=True, help_text="as a log declares it")
    line = models.CharField(max_length=80)
    files = models.JSONField(default=dict)
    template_digest = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class SameModelRecord(models.Model):
    """A declaration that two names are one model, for names with unknown weights.

    The names are in alphabetical order. Once withdrawn, the row stays, with who did that and when.
    """

    name = models.CharField(max_length=200)
    other_name = models.CharField(max_length=200)
    reason = models.TextField()
    said_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    said_at = models.DateTimeField(db_default=Now())
    taken_back_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    taken_back_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "runs_samemodel"
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["name", "other_name"],
                condition=models.Q(taken_back_at__isnull=True),
                name="two_names_are_one_model_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} is {self.other_name}"


class VocabularyRecord(models.Model):
    """Token id → bytes, once per tokenizer. `data` is packed by `core.trace.vocabulary`."""

    digest = models.CharField(max_length=64, unique=True)
    n_tokens = models.PositiveIntegerField()
    data = models.BinaryField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "runs_vocabulary"
        verbose_name_plural = "vocabularies"

    def __str__(self) -> str:
        return self.digest[:8]


class FingerprintRecord(models.Model):
    """A serving stack, without the model. `manifest` is exactly what the digest covers."""

    digest = models.CharField(max_length=64, unique=True)
    label = models.CharField(max_length=200)
    manifest = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "runs_fingerprint"

    def __str__(self) -> str:
        return self.digest[:4]


class BucketRecord(models.Model):
    """(model, fingerprint, batch class): the unit of comparison. Scores are never pooled across buckets."""

    model = models.ForeignKey(Model, on_delete=models.PROTECT, related_name="buckets")
    fingerprint = models.ForeignKey(FingerprintRecord, on_delete=models.PROTECT, related_name="buckets")
    batch_class = models.CharField(max_length=40)

    class Meta:
        db_table = "runs_bucket"
        constraints = [
            models.UniqueConstraint(fields=["model", "fingerprint", "batch_class"], name="one_bucket_per_triple"),
        ]

    def __str__(self) -> str:
        return f"{self.model.name} · {self.fingerprint} · {self.batch_class}"


class BackendNameRecord(models.Model):
    """What a bucket is called on an endpoint, for ever: the server's own name, else a letter."""

    endpoint = models.ForeignKey("EndpointRecord", on_delete=models.CASCADE, related_name="backend_names")
    bucket = models.ForeignKey(BucketRecord, on_delete=models.CASCADE, related_name="names")
    name = models.CharField(max_length=320)

    class Meta:
        db_table = "runs_backendname"
        constraints = [
            models.UniqueConstraint(fields=["endpoint", "bucket"], name="one_name_per_backend"),
            models.UniqueConstraint(fields=["endpoint", "name"], name="one_backend_per_name"),
        ]

    def __str__(self) -> str:
        return self.name


class SelfTestRecord(models.Model):
    """The result of a node's self-test (`evalboard worker --self-test`); a node's newest counts.

    `node_digest` covers hardware and versions, so that a test never vouches for a node that has changed since.
    `result` has the shape that `core.profile.self_test` reads; see docs/node.md.
    """

    host = models.CharField(max_length=200)
    node_digest = models.CharField(max_length=64)
    result = models.JSONField()
    is_invariant = models.BooleanField(
        help_text="the same bits alone and inside a batch, under batch-invariant kernels"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "runs_selftest"
        indexes = [models.Index(fields=["host", "node_digest", "-id"], name="self_test_of_a_node")]

    def __str__(self) -> str:
        return f"self-test of {self.host}"


class WorkerRecord(models.Model):
    """A process that claims shards. note: what it does; left_alone: work it does not claim, and why.

    A worker has one of the two: what it wrote last.
    `place` and `process_started` say with `pid` which process it is (runs.own_process); "" and None where not known.
    `n_engine_failures` are those in a row; a worker that has too many is paused.
    """

    name = models.CharField(max_length=200, unique=True)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    place = models.CharField(max_length=200, default="", db_default="", help_text="where its pid counts")
    process_started = models.BigIntegerField(null=True, help_text="clock ticks since the boot")
    pool = models.CharField(max_length=40)
    hardware = models.JSONField(default=dict)
    versions = models.JSONField(default=dict)
    scorers = models.JSONField(default=list, help_text="the teams' own scorers here (contract.scorer.InstalledScorer)")
    self_test = models.ForeignKey(SelfTestRecord, on_delete=models.SET_NULL, null=True, related_name="workers")
    note = models.CharField(max_length=500, blank=True)
    left_alone = models.JSONField(null=True, help_text='{"noun": "run", "probe" or "forced scoring", "id", "why"}')
    n_engine_failures = models.PositiveIntegerField(default=0)
    rests_until = models.DateTimeField(null=True, help_text="degraded: it claims nothing before")
    pace = models.FloatField(null=True, help_text="responses a second over the last shard that it finished")
    n_fenced = models.PositiveIntegerField(default=0, help_text="writes refused because its lease was lost")
    started_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_index=True)
    stopped_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "runs_worker"
        ordering = ["-seen_at"]

    def __str__(self) -> str:
        return self.name

    @property
    def has_engine(self) -> bool:
        """Return whether it can start an engine; without one it serves external endpoints only."""
        return bool(self.hardware.get("kind") != NO_ENGINE)


class EngineProcess(models.Model):
    """One start of an engine: its own report, and whether it kept giving the same bits.

    `manifest` is the whole environment manifest, host part included; `pins` is a list of
    `{"name", "wanted", "found", "held"}`; `self_checks` a list of `{"at", "digest", "same"}`.
    """

    worker = models.ForeignKey(WorkerRecord, on_delete=models.PROTECT, related_name="engine_processes")
    bucket = models.ForeignKey(BucketRecord, on_delete=models.PROTECT, related_name="engine_processes")
    vocabulary = models.ForeignKey(VocabularyRecord, on_delete=models.PROTECT, null=True)
    manifest = models.JSONField()
    pins = models.JSONField(default=list)
    self_checks = models.JSONField(default=list)
    start_seconds = models.FloatField()
    started_at = models.DateTimeField(db_default=Now())
    stopped_at = models.DateTimeField(null=True)
    last_words = models.TextField(blank=True, help_text="the end of the engine's stderr, where it says why it died")

    class Meta:
        verbose_name_plural = "engine processes"

    def __str__(self) -> str:
        return f"engine process {self.pk}"
