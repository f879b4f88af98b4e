"""What people fill in to have an experiment planned."""

from typing import Any

from django import forms

from frontend.shell.forms import PlainForm
from frontend.templatetags.drawing import drawn_plain, shortened
from runs.lab import DEFAULT_CASES, DEFAULT_RUNS
from runs.models import EndpointRecord


class ExperimentForm(PlainForm):
    suite = forms.ChoiceField()
    endpoint = forms.ChoiceField(help_text="Of a gateway, its bypass is what all else is held against.")
    profile = forms.ChoiceField(initial="pinned", help_text="What all else is pinned by.")
    runs = forms.IntegerField(
        min_value=5, max_value=100, initial=DEFAULT_RUNS, help_text="Passes over the suite in each condition."
    )
    temperature = forms.FloatField(
        required=False, help_text="At which the sampler is let go. Empty: as the suite was last drawn."
    )
    budget_minutes = forms.FloatField(
        required=False,
        label="Budget in minutes",
        help_text="Of engines. Empty: half as much again as the estimate, which the plan shows.",
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

    baseline = forms.IntegerField(min_value=1, label="Baseline", help_text="The number of the run held against.")
    candidate = forms.IntegerField(min_value=1, label="Candidate", help_text="The number of the run that differs.")
    cases = forms.IntegerField(
        min_value=1, max_value=100, initial=DEFAULT_CASES, help_text="Chosen cases to decode in each step, at most."
    )
    budget_minutes = forms.FloatField(
        required=False, label="Budget in minutes", help_text="Of engines. Empty: half as much again as the estimate."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "auto_id": "id_bisect_%s"})
