"""What people fill in to have an experiment planned."""

from collections.abc import Sequence
from typing import Any

from django import forms

from evalboard.contract.run import RunRow
from frontend.shell.forms import PlainForm
from frontend.shell.run_choices import by_suite
from frontend.templatetags.drawing import drawn_plain, shortened
from runs.lab import DEFAULT_CASES, DEFAULT_RUNS
from runs.models import EndpointRecord


class ExperimentForm(PlainForm):
    suite = forms.ChoiceField()
    endpoint = forms.ChoiceField(help_text="For a gateway, the direct endpoint is the control.")
    profile = forms.ChoiceField(initial="pinned", help_text="Settings that stay fixed.")
    runs = forms.IntegerField(
        min_value=5, max_value=100, initial=DEFAULT_RUNS, help_text="Passes over the suite in each condition."
    )
    temperature = forms.FloatField(required=False, help_text="Temperature to test. Blank: as last sampled.")
    budget_minutes = forms.FloatField(
        required=False,
        label="Budget in minutes",
        help_text="Engine minutes. Blank: 1.5 times the estimate, which the plan shows.",
    )

    def __init__(self, *args: Any, suites: Any = (), endpoints: Any = (), profiles: Any = (), **kwargs: Any) -> None:
        """Build the form. suites, endpoints, profiles: rows of the catalogue.

        Profiles with batches are left out.
        """
        super().__init__(*args, **kwargs)
        choices: dict[str, Any] = self.fields
        choices["suite"].choices = [
            (row.slug, f"{drawn_plain(shortened(row.title, 60))} ({row.slug})") for row in suites
        ]
        choices["endpoint"].choices = [
            (row.slug, f"{row.slug} ({row.about})") for row in endpoints if row.engine != EndpointRecord.Engine.IMPORTED
        ]
        choices["profile"].choices = [
            (row.slug, row.slug)
            for row in profiles
            if row.settings.get("batch_class") == "alone" and not row.slug.startswith("pinned.")
        ]


class BisectForm(PlainForm):
    """Two runs. Its fields have their own ids, since it is on one page with another form."""

    baseline = forms.ChoiceField(label="Baseline", help_text="The run to compare with.")
    candidate = forms.ChoiceField(label="Candidate", help_text="The run with other answers.")
    cases = forms.IntegerField(min_value=1, max_value=100, initial=DEFAULT_CASES, help_text="Cases per step (max).")
    budget_minutes = forms.FloatField(
        required=False, label="Budget in minutes", help_text="Engine minutes. Blank: 1.5 times the estimate."
    )

    def __init__(self, *args: Any, runs: Sequence[RunRow], **kwargs: Any) -> None:
        """Build the form. runs: those that are offered."""
        super().__init__(*args, **{**kwargs, "auto_id": "id_bisect_%s"})
        choices: dict[str, Any] = self.fields
        for name in ("baseline", "candidate"):
            choices[name].choices = [("", "choose a run"), *by_suite(runs)]

    def clean(self) -> dict[str, Any]:
        """Return the runs as numbers."""
        fields = super().clean() or {}
        return fields | {name: int(fields[name]) for name in ("baseline", "candidate") if name in fields}
