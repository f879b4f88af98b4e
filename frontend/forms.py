"""What people fill in. The forms check shape; the services check meaning, and `blame` puts their words at the field."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS

from evalboard.core.digest import digest_json
from evalboard.core.draws import MAX_SEED
from evalboard.core.errors import EvalboardError
from frontend.templatetags.drawing import drawn_plain, shortened
from frontend.templatetags.numbers import points

MAX_REPEATS_ASKED = 100
ENDPOINT_FIELDS = {"model": "model_path", "model.path": "model_path", "model.repo": "model_repo"}
ENDPOINT_FIELDS["model.revision"] = "model_revision"


def blame(
    form: forms.Form, problem: EvalboardError, *, names: Mapping[str, str] | None = None, under: str | None = None
) -> None:
    """Show a service's error at the fields it names; the rest at the field `under` or at the top, as its sentence."""
    for path, words in problem.fields.items():
        field = (names or {}).get(path) or path.split(".")[0].split("[")[0]
        if field not in form.fields:
            form.add_error(under, f"{path}: {words}")
            continue
        prefix = f"{path}: " if path != field and not names else ""
        form.add_error(field, f"{prefix}{words}")
    if not problem.fields:
        form.add_error(None, problem.detail)


def labels_of(text: str) -> dict[str, str]:
    """Labels as typed, one name=value a line. Raises ValidationError for a line that is none."""
    labels: dict[str, str] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise forms.ValidationError(f"“{shortened(line, 40)}” is not name=value.")
        labels[name.strip()] = value.strip()
    return labels


class JSONText(forms.CharField):
    """A JSON object typed as text."""

    widget = forms.Textarea

    def clean(self, value: Any) -> dict[str, Any]:
        text = super().clean(value)
        try:
            parsed = json.loads(text, parse_constant=_refuse_constant)
        except ValueError as problem:
            raise forms.ValidationError(f"This is not valid JSON: {problem}.") from problem
        if not isinstance(parsed, dict):
            raise forms.ValidationError("This must be a JSON object: { … }.")
        return parsed


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


class PlainForm(forms.Form):
    """Marks fields in error for assistive technology; the template draws the rest."""

    def mark_problems(self) -> None:
        for name in self.errors:
            if name != NON_FIELD_ERRORS and name in self.fields:
                attrs = self.fields[name].widget.attrs
                attrs["aria-invalid"] = "true"
                attrs["aria-describedby"] = f"{self[name].id_for_label}-problem"


class StartRunForm(PlainForm):
    """`key` is drawn with the form, so that sending one form twice as it is starts one run."""

    key = forms.CharField(widget=forms.HiddenInput, required=False, max_length=80)
    suite = forms.ChoiceField()
    endpoint = forms.ChoiceField()
    profile = forms.ChoiceField()
    repeats = forms.IntegerField(
        min_value=1,
        max_value=MAX_REPEATS_ASKED,
        initial=5,
        help_text="Five show how far the score moves by itself. Repeats can be added later.",
    )
    seed = forms.IntegerField(
        min_value=0,
        max_value=MAX_SEED,
        required=False,
        help_text="Where the profile samples: runs with the seed of the baseline draw alike, and small changes show. "
        "Empty: the profile’s.",
    )
    checkpoint = forms.CharField(
        required=False,
        max_length=500,
        label="Another checkpoint",
        help_text="A folder on the worker, of the endpoint's model line. Empty: the endpoint's own model.",
    )
    labels = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "commit=8f21c0e\nbranch=main", "spellcheck": "false"}),
        help_text="One name=value a line.",
    )

    def __init__(self, *args: Any, suites: Any = (), endpoints: Any = (), profiles: Any = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = self.fields
        choices["suite"].choices = [  # type: ignore[attr-defined]
            (row.slug, f"{drawn_plain(shortened(row.title, 60))} ({row.slug} v{row.version}, {row.n_cases:,} cases)")
            for row in suites
        ]
        choices["endpoint"].choices = [  # type: ignore[attr-defined]
            (row.slug, f"{row.slug} ({row.model_name}, {row.dtype})") for row in endpoints
        ]
        choices["profile"].choices = [  # type: ignore[attr-defined]
            (row.slug, f"{row.slug}: {drawn_plain(shortened(row.title, 80))}") for row in profiles
        ]

    def idempotency_key(self) -> str:
        """The same for the same form with the same content: going back and changing something asks for another run."""
        asked = {name: value for name, value in self.cleaned_data.items() if name != "key"}
        return f"form-{self.cleaned_data['key'] or uuid4()}-{digest_json(asked)}"

    def clean_labels(self) -> dict[str, str]:
        return labels_of(self.cleaned_data["labels"])

    def model(self) -> dict[str, str] | None:
        path = self.cleaned_data["checkpoint"].strip()
        return {"path": path} if path else None


class RepeatsForm(PlainForm):
    n = forms.IntegerField(min_value=1, max_value=MAX_REPEATS_ASKED, initial=5, label="Repeats to add")


class RescoreForm(PlainForm):
    scorer = JSONText(
        label="Scorer as JSON",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "placeholder": '{"kind": "exact"}'}),
    )


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


class BaselineForm(PlainForm):
    """`runs` are offered; of another one that is asked for, the service says why it will not do."""

    run = forms.IntegerField(min_value=1, widget=forms.Select)
    reason = forms.CharField(
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Why this run: what was released, or why the one before no longer counts.",
    )

    def __init__(self, *args: Any, runs: Any = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [
            (str(point.run_id), f"run {point.run_id}: {points(point.mean)} on {point.endpoint}, {point.profile}")
            for point in runs
        ]
        asked = self.data.get("run", "")
        if asked.isdigit() and asked not in dict(choices):
            choices.append((asked, f"run {asked}"))
        self.fields["run"].widget.choices = choices


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
