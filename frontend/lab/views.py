"""The lab: experiments planned and listed, and each with its table, its plan and what is not measured."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.views.decorators.http import require_http_methods, require_safe

from evalboard.contract.lab import Experiment
from evalboard.contract.run import RunRow
from evalboard.wording.lab import describe_arm, describe_money
from evalboard.wording.lab_report import (
    describe_change,
    describe_range,
    describe_sd,
    render_report,
    repeat_command,
)
from frontend.lab.bisect_page import bisect_page
from frontend.lab.charts import draw_strips
from frontend.shell.forms import PlainForm, blaming, endpoint_choices, once, posted_from, reporting
from frontend.shell.lists import parse_number, read_view
from frontend.shell.live import answer_list, answer_progress
from frontend.shell.run_choices import by_suite, offered_runs
from frontend.templatetags.drawing import drawn_plain, shortened
from runs import acts, lab
from runs.access import READ, RUN, may, requires
from runs.catalogue import read
from runs.lab import DEFAULT_CASES, DEFAULT_RUNS
from runs.models import ExperimentRecord
from runs.suites import suite_rows


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
        choices["endpoint"].choices = endpoint_choices(endpoints)
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


EXPERIMENTS_PER_PAGE = 25
# A status of the lab that no other page has: whose glyph and ink it takes.
STATUS_MARKS = {"planned": "idle", "waiting": "queued", "cut": "incomplete", "missing": "cancelled"}
PARTS = {"progress": "lab/_live.html"}


@requires(READ, post=RUN)
@require_http_methods(["GET", "HEAD", "POST"])
@once
def experiments(request: HttpRequest) -> HttpResponse:
    return _experiments(request, request.POST if request.method == "POST" else None)


@requires(RUN)
@posted_from("experiments", at="new-bisect")
@once
def bisect(request: HttpRequest) -> HttpResponse:
    form = BisectForm(request.POST, runs=_offered(request.POST))
    if form.is_valid():
        with blaming(form):
            planned = lab.plan_bisect(**form.cleaned_data, user=request.user)
            return redirect("experiment", experiment_id=planned.pk)
    return _experiments(request, None, bisect_form=form)


def _offered(named: Mapping[str, Any]) -> tuple[RunRow, ...]:
    """Return the newest runs that engines here decoded, and those that a form or an address names."""
    numbers = [parse_number(str(named.get(name, ""))) for name in ("baseline", "candidate")]
    rows, _ = offered_runs([number for number in numbers if number])
    return tuple(row for row in rows if not row.is_reported or int(row.id) in numbers)


def _experiments(request: HttpRequest, sent: Any, *, bisect_form: BisectForm | None = None) -> HttpResponse:
    """Show the list, with both forms; a form of `sent` is the variance experiment's."""
    choices = {"suites": suite_rows(), "endpoints": read.endpoint_rows(), "profiles": read.profile_rows()}
    form = ExperimentForm(sent, **choices)
    if form.is_bound and form.is_valid():
        with blaming(form):
            planned = lab.plan_experiment(**form.cleaned_data, user=request.user)
            return redirect("experiment", experiment_id=planned.pk)
    form.mark_problems()
    runs = {name: request.GET.get(name, "") for name in ("baseline", "candidate")}
    bisect_form = bisect_form or BisectForm(initial=runs, runs=_offered(runs))
    bisect_form.mark_problems()
    query = request.GET if request.method != "POST" else {}
    view = read_view(query, orders=lab.EXPERIMENT_ORDERS, default="-id", size=EXPERIMENTS_PER_PAGE)
    shown = view.read(lab.sortable_experiments())
    page = {
        "rows": tuple((row, _mark(row.status)) for row in shown.rows),
        "list": shown,
        "form": form,
        "bisect_form": bisect_form,
        "may_run": may(request.user, RUN),
    }
    is_wrong = form.errors or (bisect_form.is_bound and bisect_form.errors)
    is_moving = any(row.status == "running" for row in shown.rows)
    status = 422 if is_wrong else 200
    return answer_list(request, "lab/list.html", "lab/_rows.html", page, is_moving=is_moving, status=status)


@requires(READ)
@require_safe
def experiment(request: HttpRequest, experiment_id: int) -> HttpResponse:
    answer = lab.experiment_detail(experiment_id)
    part = request.GET.get("part")
    if part is None:
        return render(request, "lab/page.html", _page(request, answer))
    if part not in PARTS:
        raise Http404
    return answer_progress(request, PARTS[part], _page(request, answer), is_over=answer.is_terminal)


@requires(RUN)
@posted_from("experiment", "experiment_id")
def start(request: HttpRequest, experiment_id: int) -> HttpResponse:
    return _act(request, lab.start_experiment, experiment_id, "The experiment has begun; this page follows it.")


@requires(RUN)
@posted_from("experiment", "experiment_id")
def cancel(request: HttpRequest, experiment_id: int) -> HttpResponse:
    return _act(request, lab.cancel_experiment, experiment_id, "The experiment is cancelled; its whole passes stay.")


@requires(RUN)
@posted_from("experiment", "experiment_id")
def resume(request: HttpRequest, experiment_id: int) -> HttpResponse:
    budget = request.POST.get("budget_minutes", "")
    more = {"budget_minutes": float(budget)} if _is_number(budget) else {}
    return _act(request, lab.resume_experiment, experiment_id, "The experiment goes on.", **more)


@requires(RUN)
@posted_from("experiment", "experiment_id")
def delete(request: HttpRequest, experiment_id: int) -> HttpResponse:
    with reporting(request):
        lab.delete_experiment(experiment_id=experiment_id)
        messages.success(request, f"Experiment {experiment_id} was deleted; its runs stay.")
        return redirect("experiments")
    return redirect("experiment", experiment_id=experiment_id)


def _act(request: HttpRequest, act: Callable[..., None], experiment_id: int, words: str, **more: float) -> HttpResponse:
    with reporting(request):
        act(experiment_id=experiment_id, **more)
        messages.success(request, words)
    return redirect("experiment", experiment_id=experiment_id)


def _page(request: HttpRequest, answer: Experiment) -> dict[str, Any]:
    strips = draw_strips(answer)
    lines = [
        {
            "row": row,
            "strip": strips.rows.get(at) if strips else None,
            "range": describe_range(row),
            "sd": describe_sd(row),
            "change": describe_change(row, answer.control),
        }
        for at, row in enumerate(answer.rows)
    ]
    claim, rest = _cut(answer.sentence)
    address = reverse("api:experiment", args=[answer.id])
    return {
        "experiment": answer,
        "acts": acts.offers_on(ExperimentRecord, int(answer.id), request.user),
        "claim": claim,
        "rest": rest,
        "strips": strips,
        "lines": lines,
        "is_blameless": any(row.source == "control" and row.state == "moved" for row in answer.rows),
        "mark": _mark(answer.status),
        "arms": [(describe_arm(arm.source, arm.name), arm, _mark(arm.status)) for arm in answer.arms],
        "report": render_report(answer, address=request.build_absolute_uri("/").rstrip("/")),
        "exports": (
            {"label": "CSV", "url": f"{address}table.csv"},
            {"label": "Markdown", "url": f"{address}report.md"},
        ),
        "is_begun": bool(strips) or bool(answer.bisect and answer.started_at),
        "command": repeat_command(answer),
        "money": describe_money(answer),
        "part_done": answer.n_done / max(answer.cost.n_runs, 1),
        "announced_percent": 10 * (10 * answer.n_done // max(answer.cost.n_runs, 1)),
        **(bisect_page(answer, answer.bisect) if answer.bisect else {}),
    }


def _cut(sentence: str) -> tuple[str, str]:
    """Split a sentence after its first full stop or semicolon; the first part is set in bold."""
    stops = [at for at in (sentence.find("; "), sentence.find(". ")) if at >= 0]
    end = min(stops) + 1 if stops else len(sentence)
    return sentence[:end], sentence[end:].strip()


def _mark(status: str) -> str:
    return STATUS_MARKS.get(status, status)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


urlpatterns = [
    path("lab/", experiments, name="experiments"),
    path("lab/bisect/", bisect, name="bisect"),
    path("lab/<int:experiment_id>/", experiment, name="experiment"),
    path("lab/<int:experiment_id>/start/", start, name="experiment_start"),
    path("lab/<int:experiment_id>/cancel/", cancel, name="experiment_cancel"),
    path("lab/<int:experiment_id>/resume/", resume, name="experiment_resume"),
    path("lab/<int:experiment_id>/delete/", delete, name="experiment_delete"),
]
