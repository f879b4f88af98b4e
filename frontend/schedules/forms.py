"""What people fill in to have runs or probes started at set times."""

from typing import Any

from django import forms

from evalboard.contract.probe import KINDS
from frontend.shell.forms import PlainForm
from frontend.templatetags.drawing import drawn_plain, shortened
from runs.models import EndpointRecord

# Where a service's words about what is started stand on the form.
RUN_FIELDS = {f"run.{name}": name for name in ("suite", "endpoint", "profile", "repeats")}
PROBE_FIELDS = {f"probe.{name}": name for name in ("endpoint", "profile")} | {"probe.kind": "probe_kind"}


class ScheduleForm(PlainForm):
    """The fields shared by both kinds of schedules."""

    slug = forms.CharField(max_length=80, label="Name", help_text="Small letters, digits, dots and dashes.")
    endpoint = forms.ChoiceField()
    cron = forms.CharField(
        max_length=100,
        label="When",
        widget=forms.TextInput(attrs={"placeholder": "0 3 * * 1-5", "spellcheck": "false"}),
        help_text="Minute, hour, day of the month, month, day of the week: 0 3 * * 1-5 is 03:00 from Monday to Friday.",
    )
    time_zone = forms.CharField(max_length=60, initial="UTC", help_text="The time zone, such as Europe/Berlin.")

    def __init__(self, *args: Any, endpoints: Any = (), **kwargs: Any) -> None:
        """Build the form. endpoints: rows of the catalogue, without those of logs."""
        super().__init__(*args, **kwargs)
        self.fields["endpoint"].choices = [  # type: ignore[attr-defined]
            (row.slug, f"{row.slug} ({row.about})") for row in endpoints if row.engine != EndpointRecord.Engine.IMPORTED
        ]


class RunScheduleForm(ScheduleForm):
    suite = forms.ChoiceField()
    profile = forms.ChoiceField()
    repeats = forms.IntegerField(min_value=1, max_value=100, initial=5)
    field_order = ("slug", "suite", "endpoint", "profile", "repeats", "cron", "time_zone")

    def __init__(self, *args: Any, suites: Any = (), profiles: Any = (), **kwargs: Any) -> None:
        """`suites`, `profiles`: rows of the catalogue."""
        super().__init__(*args, **kwargs)
        self.fields["suite"].choices = [  # type: ignore[attr-defined]
            (row.slug, f"{drawn_plain(shortened(row.title, 60))} ({row.slug})") for row in suites
        ]
        self.fields["profile"].choices = [(row.slug, row.slug) for row in profiles]  # type: ignore[attr-defined]

    def order(self) -> dict[str, Any]:
        """Return what `create_run` takes."""
        return {name: self.cleaned_data[name] for name in RUN_FIELDS.values()}


class ProbeScheduleForm(ScheduleForm):
    probe_kind = forms.ChoiceField(choices=[(kind, kind) for kind in KINDS], label="Kind")
    field_order = ("slug", "endpoint", "probe_kind", "cron", "time_zone")

    def order(self) -> dict[str, Any]:
        """Return what `create_probe` takes."""
        return {"endpoint": self.cleaned_data["endpoint"], "kind": self.cleaned_data["probe_kind"], "parameters": {}}
