"""What people fill in to set a baseline."""

from typing import Any

from django import forms

from frontend.shell.forms import PlainForm
from frontend.templatetags.numbers import points


class BaselineForm(PlainForm):
    """The form of a baseline. `runs` are offered; for others the service explains a refusal."""

    run = forms.IntegerField(min_value=1, widget=forms.Select)
    reason = forms.CharField(
        max_length=2000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="The reason: what was released, or why the previous baseline is outdated.",
    )

    def __init__(self, *args: Any, runs: Any = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [
            (str(point.run_id), f"run {point.run_id}: {points(point.mean)} on {point.endpoint}, {point.profile_name}")
            for point in runs
        ]
        chosen = self.data.get("run", "")
        if chosen.isdigit() and chosen not in dict(choices):
            choices.append((chosen, f"run {chosen}"))
        self.fields["run"].widget.choices = choices
