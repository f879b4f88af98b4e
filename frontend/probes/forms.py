"""What people fill in to have an endpoint probed."""

from typing import Any

from django import forms

from frontend.probes.words import KINDS
from frontend.shell.forms import JSONText, PlainForm
from frontend.templatetags.drawing import drawn_plain, shortened
from runs.models import EndpointRecord


class OptionalJSON(JSONText):
    """A JSON object typed as text; none typed is an empty one."""

    def clean(self, value: Any) -> dict[str, Any]:
        return super().clean(value) if (value or "").strip() else {}


class ProbeForm(PlainForm):
    endpoint = forms.ChoiceField()
    kind = forms.ChoiceField(choices=[(kind, f"{kind}: {words.question}") for kind, words in KINDS.items()])
    profile = forms.ChoiceField(
        required=False, help_text="The profile of the engine. The probe chooses its own prompts and sampling."
    )
    parameters = OptionalJSON(
        required=False,
        label="Parameters as JSON",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "placeholder": '{"copies": 200}'}),
        help_text="Only those that differ from the defaults.",
    )

    def __init__(self, *args: Any, endpoints: Any = (), profiles: Any = (), **kwargs: Any) -> None:
        """Build the form. endpoints, profiles: rows of the catalogue, without those of logs."""
        super().__init__(*args, **kwargs)
        choices = self.fields
        choices["endpoint"].choices = [  # type: ignore[attr-defined]
            (row.slug, f"{row.slug} ({row.about})") for row in endpoints if row.engine != EndpointRecord.Engine.IMPORTED
        ]
        choices["profile"].choices = [  # type: ignore[attr-defined]
            ("", "the one that fits the kind"),
            *((row.slug, f"{row.slug}: {drawn_plain(shortened(row.title, 80))}") for row in profiles),
        ]
