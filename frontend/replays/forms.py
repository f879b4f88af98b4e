"""What people fill in to have a request of production decoded."""

from typing import Any

from django import forms

from evalboard.core.profile import OBSERVED
from frontend.shell.forms import JSONText, PlainForm
from runs.models import EndpointRecord

EXAMPLE = '{"messages": [{"role": "user", "content": "…"}], "temperature": 0.7, "max_tokens": 256}'


class BodyForm(PlainForm):
    endpoint = forms.ChoiceField(label="On", help_text="Your own endpoint with production’s weights.")
    profile = forms.ChoiceField(help_text="Production’s settings. The request’s own sampling overrides them.")
    body = JSONText(
        label="Request",
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false", "placeholder": EXAMPLE, "class": "mono"}),
        help_text="The body of a chat completion request, without headers. It is stored unchanged.",
    )

    def __init__(self, *args: Any, endpoints: Any = (), profiles: Any = (), **kwargs: Any) -> None:
        """Build the form. endpoints, profiles: rows of the catalogue, without external ones and logs."""
        super().__init__(*args, **kwargs)
        choices: dict[str, Any] = self.fields
        choices["endpoint"].choices = [
            (row.slug, f"{row.slug} ({row.about})") for row in endpoints if row.engine == EndpointRecord.Engine.VLLM
        ]
        choices["profile"].choices = [
            (row.slug, row.slug) for row in profiles if row.settings.get("batch_class") != OBSERVED
        ]
