"""What people fill in to describe what may be run, how, and by which rule it is judged."""

from collections.abc import Sequence
from typing import Any

from django import forms

from frontend.shell.forms import JSONText, PlainForm

ENDPOINT_FIELDS = {"model": "model_path", "model.path": "model_path", "model.repo": "model_repo"}
ENDPOINT_FIELDS["model.revision"] = "model_revision"


class EndpointForm(PlainForm):
    slug = forms.CharField(max_length=80, help_text="Small letters, digits, dots and dashes.")
    model_path = forms.CharField(required=False, max_length=500, help_text="A folder on the worker; or else:")
    model_repo = forms.CharField(required=False, max_length=200, label="Model repository", help_text="owner/name")
    model_revision = forms.CharField(required=False, max_length=100, help_text="A full commit of the repository.")
    dtype = forms.ChoiceField(choices=[(name, name) for name in ("float32", "bfloat16", "float16")])
    quantization = forms.CharField(required=False, max_length=40)
    line = forms.CharField(max_length=80, label="Model line", help_text="The series that the model belongs to.")
    max_model_len = forms.IntegerField(min_value=16, initial=2048, label="Longest prompt and answer, tokens")
    pool = forms.CharField(max_length=40, initial="default", help_text="The workers that serve it.")


class PolicyForm(PlainForm):
    slug = forms.CharField(max_length=80, help_text="The same slug with other settings makes a new version.")
    title = forms.CharField(max_length=200)
    settings = JSONText(
        widget=forms.Textarea(attrs={"rows": 9, "spellcheck": "false"}),
        label="Settings as JSON",
        help_text="rule is strict or paired; tolerance and guard are in points; looks are 5, 10, 20 or 3, 10, 20.",
    )


class SameModelForm(PlainForm):
    name = forms.ChoiceField(label="This name")
    other_name = forms.ChoiceField(label="and this name")
    reason = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 2}),
        label="Why are they one model?",
        help_text="It is kept with your name and the time, also once it is taken back.",
    )

    def __init__(self, *args: Any, names: Sequence[str], **kwargs: Any) -> None:
        """`names` are those that logs gave."""
        super().__init__(*args, **kwargs)
        for field in ("name", "other_name"):
            self.fields[field].choices = [(name, name) for name in names]  # type: ignore[attr-defined]
        self.fields["other_name"].initial = names[-1] if names else None


class ProfileForm(PlainForm):
    slug = forms.CharField(max_length=80, help_text="The same slug with other settings makes a new version.")
    title = forms.CharField(max_length=200)
    settings = JSONText(widget=forms.Textarea(attrs={"rows": 12, "spellcheck": "false"}), label="Settings as JSON")
