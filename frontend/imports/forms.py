"""What people fill in to have another tool's log read."""

from collections.abc import Sequence
from typing import Any

from django import forms

from evalboard.contract.suite import SuiteRow
from evalboard.importers.formats import AUTO, FORMATS
from frontend.shell.forms import PlainForm
from frontend.templatetags.drawing import drawn_plain, shortened
from runs.imports import MAX_FILES, LogUpload

WHOSE = {
    "inspect": "Inspect AI: .eval or .json",
    "lm_eval": "lm-evaluation-harness: results and samples",
    "promptfoo": "promptfoo: its JSON output",
    "batch": "batches of OpenAI, Anthropic, vllm run-batch: input and output",
    "litellm": "LiteLLM: the gateway's log",
    "scores": "lines with answers and scores, from any tool",
    "chat": "chat completions or Anthropic’s messages, one a line",
    "rollouts": "rollouts with the sampler’s and the trainer’s logprobs",
}


class ManyFiles(forms.FileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One file or several; cleaned, a list."""

    widget = ManyFiles

    def clean(self, data: Sequence[LogUpload] | None, initial: Any = None) -> list[LogUpload]:
        if not data:
            raise forms.ValidationError(self.error_messages["required"])
        return [super(FilesField, self).clean(file, initial) for file in data]


class ImportForm(PlainForm):
    log = FilesField(
        label="Log files",
        allow_empty_file=True,
        help_text=f"Up to {MAX_FILES} that belong together, .gz and .zst too; or several logs of one tool.",
    )
    format = forms.ChoiceField(
        choices=[(AUTO, "Detect automatically"), *((name, WHOSE[name]) for name in FORMATS)],
        initial=AUTO,
        help_text="Detected from names and contents. Choose one if that fails.",
    )
    suite = forms.ChoiceField(required=False, help_text="Match to an existing suite by case id, or create one.")
    scale = forms.CharField(
        required=False, max_length=40, label="Scale of scores", help_text="Of scores outside 0 to 1, such as 0..10."
    )

    second_of = forms.CharField(
        required=False,
        max_length=12,
        label="Second log of the same side",
        help_text="The number of a run of the same model and settings at another hour: where both agree, its repeats "
        "count.",
        widget=forms.TextInput(attrs={"inputmode": "numeric", "placeholder": "run number"}),
    )

    def __init__(self, *args: Any, suites: Sequence[SuiteRow], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named = [(row.slug, f"{drawn_plain(shortened(row.title, 60))} ({row.slug} v{row.version})") for row in suites]
        self.fields["suite"].choices = [("", "Create from the log"), *named]  # type: ignore[attr-defined]
