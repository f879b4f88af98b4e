"""Where a model answers (endpoint) and how cases are decoded (profile). Both are data."""

from django.db import models


class Endpoint(models.Model):
    """A place where a model answers. Dtype and quantisation belong here, never to the profile."""

    class Engine(models.TextChoices):
        VLLM = "vllm", "vLLM, in a process of the worker's own"
        IMPORTED = "imported", "another tool's log: nothing is decoded here"

    slug = models.SlugField(max_length=80, unique=True)
    engine = models.CharField(max_length=20, choices=Engine.choices, default=Engine.VLLM)
    model_path = models.CharField(max_length=500, blank=True, help_text="a folder on the worker")
    model_repo = models.CharField(max_length=200, blank=True, help_text="a repository on a model hub")
    model_revision = models.CharField(max_length=100, blank=True)
    dtype = models.CharField(max_length=20)
    quantization = models.CharField(max_length=40, blank=True)
    line = models.CharField(max_length=80, help_text="the series that the model belongs to")
    max_model_len = models.PositiveIntegerField(default=2048)
    pool = models.CharField(max_length=40, default="default", help_text="the workers that serve it")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
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
    def model_name(self) -> str:
        """The last part of the path or repository: what people call the model."""
        return (self.model_repo or self.model_path).rstrip("/").rsplit("/", 1)[-1]


class Profile(models.Model):
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
        ordering = ["slug", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["slug", "version"], name="one_profile_per_version"),
        ]

    def __str__(self) -> str:
        return self.slug if self.version == 1 else f"{self.slug} v{self.version}"
