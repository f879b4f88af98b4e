"""Forms to start a run, and to score it again."""

from typing import Any

from django import forms

from evalboard.core.profile import MAX_SEED
from frontend.shell.forms import JSONText, LabelLines, PlainForm, endpoint_choices
from frontend.templatetags.drawing import drawn_plain, shortened

MAX_REPEATS_ASKED = 100
MAIN_FIELDS = ("suite", "endpoint", "repeats")  # the others are folded


class StartRunForm(PlainForm):
    suite = forms.ChoiceField()
    endpoint = forms.ChoiceField()
    profile = forms.ChoiceField()
    repeats = forms.IntegerField(
        min_value=1,
        max_value=MAX_REPEATS_ASKED,
        initial=5,
        help_text="Five show how much the score varies. You can add repeats later.",
    )
    in_turn_with = forms.ChoiceField(
        required=False,
        label="In turn with",
        help_text="Run the suite there too, repeat by repeat in turn, as the baseline of a release. The load and the "
        "hour then affect both alike.",
    )
    seed = forms.IntegerField(
        min_value=0,
        max_value=MAX_SEED,
        required=False,
        help_text="For a profile that samples, or an external server. With the baseline’s seed both runs send the same "
        "seeds, so small changes show. Empty: the profile’s.",
    )
    priority = forms.ChoiceField(
        required=False,
        choices=[("normal", "normal"), ("bulk", "bulk")],
        help_text="Bulk runs after normal ones. Runs of a release go before both.",
    )
    checkpoint = forms.CharField(
        required=False,
        max_length=500,
        label="Another checkpoint",
        help_text="A folder on the worker, of the endpoint's model line. Blank: the endpoint's own model.",
    )
    labels = LabelLines()

    def __init__(self, *args: Any, suites: Any = (), endpoints: Any = (), profiles: Any = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = self.fields
        choices["suite"].choices = [  # type: ignore[attr-defined]
            (row.slug, f"{drawn_plain(shortened(row.title, 60))} ({row.slug} v{row.version}, {row.n_cases:,} cases)")
            for row in suites
        ]
        choices["endpoint"].choices = endpoint_choices(endpoints)  # type: ignore[attr-defined]
        others = [("", "no other endpoint"), *endpoint_choices(endpoints)]
        choices["in_turn_with"].choices = others  # type: ignore[attr-defined]
        choices["profile"].choices = [  # type: ignore[attr-defined]
            (row.slug, f"{row.slug}: {drawn_plain(shortened(row.title, 80))}") for row in profiles
        ]

    @property
    def main_fields(self) -> list[Any]:
        return [self[name] for name in MAIN_FIELDS]

    @property
    def other_fields(self) -> list[Any]:
        return [field for field in self.visible_fields() if field.name not in MAIN_FIELDS]

    def model(self) -> dict[str, str] | None:
        path = self.cleaned_data["checkpoint"].strip()
        return {"path": path} if path else None


class RepeatsForm(PlainForm):
    n = forms.IntegerField(min_value=1, max_value=MAX_REPEATS_ASKED, initial=5, label="Repeats to add")
    have = forms.IntegerField(required=False, widget=forms.HiddenInput)


class RescoreForm(PlainForm):
    scorer = JSONText(
        label="Scorer as JSON",
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": '{"kind": "exact"}'}),
    )
