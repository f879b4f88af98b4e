"""Where a model answers (endpoint) and how cases are decoded (profile). Both are data."""

from collections.abc import Mapping
from typing import Any

from django.db import models

from evalboard.contract.catalogue import name_adapted

BASE = ("model_path", "model_repo", "model_revision")
CHECKPOINT = (*BASE, "model_adapter")  # what names the weights of an endpoint of ours


class EndpointRecord(models.Model):
    """A place where a model answers. Dtype and quantisation belong here, never to the profile."""

    class Engine(models.TextChoices):
        VLLM = "vllm", "vLLM, in a process of the worker's own"
        OPENAI = "openai", "an external server that speaks OpenAI's protocol"
        IMPORTED = "imported", "another tool's log: nothing is decoded here"

    class Api(models.TextChoices):
        CHAT = "chat", "chat completions"
        COMPLETIONS = "completions", "completions"
        RESPONSES = "responses", "the Responses API"

    slug = models.SlugField(max_length=80, unique=True)
    engine = models.CharField(max_length=20, choices=Engine.choices, default=Engine.VLLM)
    model_path = models.CharField(max_length=500, blank=True, help_text="a folder on the worker")
    model_repo = models.CharField(
        max_length=200, blank=True, help_text="a repository on a model hub; of an external server, the name to request"
    )
    model_revision = models.CharField(max_length=100, blank=True)
    model_adapter = models.CharField(
        max_length=500,
        blank=True,
        db_default="",
        help_text="a LoRA adapter of the model: a folder on the worker, s3://…, or owner/name@commit",
    )
    dtype = models.CharField(max_length=20)
    quantization = models.CharField(max_length=40, blank=True)
    line = models.CharField(max_length=80, help_text="the series that the model belongs to")
    max_model_len = models.PositiveIntegerField(default=2048, null=True, help_text="null: an external server decides")
    tensor_parallel_size = models.PositiveSmallIntegerField(
        default=1, db_default=1, help_text="GPUs that share each layer"
    )
    pipeline_parallel_size = models.PositiveSmallIntegerField(
        default=1, db_default=1, help_text="groups of GPUs, each with a part of the layers"
    )
    pool = models.CharField(max_length=40, default="default", help_text="the workers that serve it")
    base_url = models.CharField(max_length=500, blank=True, help_text="address of an external server, up to /v1")
    api = models.CharField(max_length=20, choices=Api.choices, default=Api.CHAT)
    auth = models.CharField(max_length=200, blank=True, help_text="where a worker reads the key: a variable or a file")
    headers = models.JSONField(default=dict, help_text='name → a constant, or {"env": variable of the worker}')
    extra_body = models.JSONField(default=dict, help_text="fields that go into the body of every call")
    concurrency = models.PositiveIntegerField(default=8, help_text="calls in flight; one under the class alone")
    calls_per_minute = models.PositiveIntegerField(null=True, help_text="by all workers together; null: no limit")
    next_call_at = models.DateTimeField(null=True, help_text="no worker makes a call before; null: at any time")
    price = models.JSONField(default=dict, help_text="for a million tokens (contract.catalogue.Price); {}: not known")
    reference = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="+", help_text="ours, which serves the same weights"
    )
    bypass = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, related_name="+", help_text="the same model without the gateway"
    )
    endings = models.JSONField(default=dict, help_text="what a person says that words at the end of answers mean")
    ignores_fingerprint = models.BooleanField(
        default=False, db_default=False, help_text="a system_fingerprint names no server, so it is ignored"
    )
    rescores = models.BooleanField(default=False, help_text="runs the reference set automatically after a rotation")
    daily_check = models.BooleanField(
        default=False, db_default=False, help_text="a person wants it checked daily, from its first use on"
    )
    n_failures = models.PositiveIntegerField(default=0, help_text="failed calls in a row, as workers last reported")
    failing_since = models.DateTimeField(null=True, help_text="the first pause since a call came through")
    rests_until = models.DateTimeField(null=True, help_text="no call is made before; null: it is not resting")
    rest_reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "runs_endpoint"
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(
                name="endpoint_names_one_model",
                condition=models.Q(model_path="") ^ models.Q(model_repo=""),
            )
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def is_remote(self) -> bool:
        """Return whether the server is external: who answered is self-reported, not attested."""
        return self.engine == self.Engine.OPENAI

    @property
    def model_name(self) -> str:
        """Return what people call the model: the last part of its address, with its adapter's."""
        return name_adapted(self.model_repo or self.model_path, self.model_adapter)

    @property
    def sizes(self) -> tuple[int, int]:
        """Return over how many GPUs the model is spread: within a layer, and layer after layer."""
        return self.tensor_parallel_size, self.pipeline_parallel_size

    def checkpoint(self, override: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Return the fields of CHECKPOINT. override: as a run has it, another base, another adapter, or both.

        Another base has no adapter unless one is named with it.
        """
        own = {name: getattr(self, name) for name in CHECKPOINT}
        given = {name: (override or {}).get(name.removeprefix("model_")) or "" for name in CHECKPOINT}
        if not any(given.values()):
            return own
        return given if any(given[name] for name in BASE) else own | {"model_adapter": given["model_adapter"]}


class CallSlot(models.Model):
    """One of an endpoint's `concurrency` call slots over all workers; used by `worker` until `until`.

    It is free without a worker, after `until`, and when its worker is gone.
    """

    endpoint = models.ForeignKey(EndpointRecord, on_delete=models.CASCADE, related_name="slots", db_index=False)
    number = models.PositiveSmallIntegerField(help_text="from 0; under the class alone a call has the first")
    worker = models.ForeignKey("runs.WorkerRecord", on_delete=models.SET_NULL, null=True, related_name="+")
    until = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["endpoint", "number"], name="a_slot_of_an_endpoint_once")]

    def __str__(self) -> str:
        return f"slot {self.number} of {self.endpoint}"


class ProfileRecord(models.Model):
    """Sampling settings and engine pins. A change makes a new version; runs keep theirs.

    `settings` has the shape that `core.profile.parse_profile` checks; see docs/profiles.md.
    """

    slug = models.SlugField(max_length=80)
    version = models.PositiveIntegerField(default=1)
    title = models.CharField(max_length=200)
    settings = models.JSONField()
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "runs_profile"
        ordering = ["slug", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["slug", "version"], name="one_profile_per_version"),
        ]

    def __str__(self) -> str:
        return self.slug if self.version == 1 else f"{self.slug} v{self.version}"
