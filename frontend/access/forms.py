"""What people fill in to let programs in, and to have programs told."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone

from frontend.shell.forms import CodeText, PlainForm
from runs.access import LONGEST_NAME, ROLES, SCOPES
from runs.webhooks import EVENTS, LONGEST_URL

WHAT_SCOPES_DO = {
    "read": "look at everything",
    "run": "start runs, push suites, ask for releases",
    "sign": "set baselines, sign releases off",
    "admin": "change endpoints, profiles, policies, names of models; delete runs; webhooks; people; the audit trail",
}
WHAT_ROLES_DO = {
    "viewer": "looks at everything",
    "engineer": "also starts runs and releases",
    "release manager": "also sets baselines and signs releases off",
    "admin": "also changes endpoints, policies and people",
}
DAYS = {7: "a week", 30: "30 days", 90: "90 days", 180: "180 days", 365: "a year"}


class TokenForm(PlainForm):
    name = forms.CharField(max_length=LONGEST_NAME, label="Purpose", help_text="Such as nightly-ci.")
    scopes = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, label="Rights")
    days = forms.TypedChoiceField(coerce=int, choices=tuple(DAYS.items()), initial=90, label="Expires after")

    def __init__(self, *args: Any, scopes: frozenset[str], **kwargs: Any) -> None:
        """`scopes` are the person's own: others would do nothing."""
        super().__init__(*args, **kwargs)
        choices = [(name, f"{name}: {WHAT_SCOPES_DO[name]}") for name in SCOPES if name in scopes]
        self.fields["scopes"].choices = choices  # type: ignore[attr-defined]

    def expires_at(self) -> datetime:
        return timezone.now() + timedelta(days=self.cleaned_data["days"])


class WebhookForm(PlainForm):
    url = CodeText(
        max_length=LONGEST_URL,
        label="Address",
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
    )
    events = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        label="Events",
        choices=[(name, f"{name}: {about}") for name, about in EVENTS.items()],
    )


class AddressForm(PlainForm):
    """An address of a person's own: of a webhook, or of a mailbox."""

    address = CodeText(
        max_length=LONGEST_URL,
        label="E-mail, or a webhook’s address",
        widget=forms.TextInput(attrs={"placeholder": "https://hooks.slack.com/…"}),
    )

    def url(self) -> str:
        """Return it as the outbox stores it: what has an @ and no scheme is a mailbox."""
        text = str(self.cleaned_data["address"]).strip()
        return f"mailto:{text}" if "@" in text and "://" not in text and not text.startswith("mailto:") else text


class PersonForm(PlainForm):
    ROLES = tuple(ROLES)

    name = forms.CharField(max_length=150, help_text="Letters, digits and @ . + - _")
    role = forms.ChoiceField(choices=[(role, f"{role}: {WHAT_ROLES_DO[role]}") for role in ROLES], initial="viewer")
