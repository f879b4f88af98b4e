"""Other tools' logs: what was imported, and the form that imports one."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods

from evalboard.contract.suite import SuiteRow
from evalboard.importers.formats import AUTO, FORMATS
from evalboard.wording.messages import Messages
from frontend.shell.forms import PlainForm, blaming
from frontend.shell.lists import read_view
from frontend.shell.live import answer_progress
from frontend.templatetags.drawing import drawn_plain, shortened
from runs.access import READ, RUN, requires
from runs.imports import (
    IMPORT_ORDERS,
    MAX_FILES,
    LogUpload,
    begin_reading,
    import_logs,
    import_row,
    is_large,
    is_waiting,
    log_files,
    reading_row,
    readings_under_way,
    sortable_imports,
    takes_logs,
)
from runs.suites import suite_rows

DONE = Messages(
    "import_page",
    {
        ("import", "asserts"): {
            "one_run": "The log was imported.",
            "runs": "The log was imported as {n:run}.",
            "before": "This log was imported before, as import {imported}; nothing new was stored.",
        },
    },
)
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


IMPORTS_PER_PAGE = 25


@csrf_exempt  # by the middleware, which would read the form before `takes_logs`; csrf_protect looks at it after that
@takes_logs
@requires(READ, post=RUN)
@csrf_protect
@require_http_methods(["GET", "HEAD", "POST"])
def imports(request: HttpRequest) -> HttpResponse:
    suites = suite_rows()
    if request.method != "POST":
        return _page(request, ImportForm(suites=suites, initial={"second_of": request.GET.get("second_of", "")[:12]}))
    form = ImportForm(request.POST, request.FILES, suites=suites)
    if form.is_valid():
        fields = form.cleaned_data
        files, options = log_files(fields["log"]), {name: fields[name] for name in ("format", "scale", "second_of")}
        options |= {"suite": fields["suite"] or None, "user": request.user}
        with blaming(form, names={"files": "log"}, under="log"):
            if is_large(files):
                return redirect("import_reading", reading_id=begin_reading(files=files, **options).pk)
            imported, runs, is_new = import_logs(files=files, is_wanted=partial(is_waiting, request.META), **options)
            return _show_stored(request, imported.pk, [run.pk for run in runs], is_new=is_new)
    form.mark_problems()
    return _page(request, form)


@requires(READ)
@require_http_methods(["GET", "HEAD"])
def import_reading(request: HttpRequest, reading_id: int) -> HttpResponse:
    """Follow the reading of a large log; once it is stored, show its run, or all of its runs in the list."""
    reading = reading_row(reading_id)
    if request.GET.get("part") == "progress":
        return answer_progress(request, "imports/_reading.html", {"reading": reading}, is_over=reading.is_terminal)
    if reading.imported is not None:
        stored = import_row(int(reading.imported))
        runs = [int(run.id) for run in stored.runs]
        return _show_stored(request, int(stored.id), runs, is_new=bool(reading.is_new))
    return render(request, "imports/reading.html", {"reading": reading})


def _show_stored(request: HttpRequest, import_id: int, runs: Sequence[int], *, is_new: bool) -> HttpResponse:
    code = "before" if not is_new else "one_run" if len(runs) == 1 else "runs"
    messages.success(request, DONE.write(code, imported=import_id, n=len(runs)))
    return redirect("run", run_id=runs[0]) if len(runs) == 1 else redirect(f"{reverse('imports')}#import-{import_id}")


def _page(request: HttpRequest, form: ImportForm) -> HttpResponse:
    view = read_view(request.GET, orders=IMPORT_ORDERS, default="-id", size=IMPORTS_PER_PAGE, anchor="imports")
    page = {"form": form, "list": view.read(sortable_imports()), "readings": readings_under_way()}
    return render(request, "imports/page.html", page, status=422 if form.errors else 200)
