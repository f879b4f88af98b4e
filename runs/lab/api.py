"""Experiments of the lab: planned, confirmed, followed, and their tables as files."""

from typing import Any

from django.http import StreamingHttpResponse
from django.urls import path
from rest_framework import serializers
from rest_framework.request import Request

from evalboard.contract.lab import KINDS, Experiment, ExperimentRow
from evalboard.contract.lab_kinds import SOURCES
from evalboard.core import table
from evalboard.wording.lab_report import render_report
from evalboard.wording.lab_table import table_names, table_rows
from runs import lab
from runs.api import query, streams
from runs.api.resource import Resource, serve
from runs.api.serializers import Amount, Flag, Strict, Text, Whole
from runs.models import ExperimentRecord


class ExperimentIn(Strict):
    kind = serializers.ChoiceField(choices=KINDS, default="variance")
    suite = Text()
    suite_version = Whole(required=False, min_value=1)
    endpoint = Text(required=False)
    profile = Text(default="pinned")
    runs = Whole(default=lab.DEFAULT_RUNS)
    sources = serializers.ListField(child=Text(), required=False, max_length=len(SOURCES))
    temperature = Amount(required=False)
    budget_minutes = Amount(required=False)
    start = Flag(default=False)


class BisectIn(Strict):
    kind = serializers.ChoiceField(choices=KINDS)
    baseline = Whole()
    candidate = Whole()
    cases = Whole(default=lab.DEFAULT_CASES)
    budget_minutes = Amount(required=False)
    start = Flag(default=False)


class BudgetIn(Strict):
    may_be_left_out = True
    budget_minutes = Amount(required=False)


EXPERIMENT = Resource("experiment", Experiment, lab.experiment_detail, state=lab.experiment_state)


def _create(*, kind: str, start: bool, user: Any, **body: Any) -> ExperimentRecord:
    plan = lab.plan_bisect if kind == "bisect" else lab.plan_experiment
    experiment = plan(**body, user=user)
    if start:
        lab.start_experiment(experiment_id=experiment.pk)
    return experiment


experiment_list = serve(
    EXPERIMENT.listed(
        "experiments", "Experiments, newest first", ExperimentRow, lab.sortable_experiments, lab.EXPERIMENT_ORDERS
    ),
    EXPERIMENT.made(
        "Plan an experiment, and start it where that is said",
        {"": ExperimentIn, "bisect": BisectIn},
        _create,
        refuses=[404, 409, 422],
    ),
)
experiment_detail = serve(
    EXPERIMENT.one("An experiment, as far as it is"),
    EXPERIMENT.deleted(
        "Delete a plan, or an experiment that has ended; its runs stay", lab.delete_experiment, refuses=[409]
    ),
)
start = serve(
    EXPERIMENT.acted(
        "start_experiment", "Confirm a plan: its runs begin", lab.start_experiment, body=BudgetIn, refuses=[409]
    )
)
cancel = serve(
    EXPERIMENT.acted(
        "cancel_experiment", "Stop an experiment, with the run that it is at", lab.cancel_experiment, refuses=[409]
    )
)
resume = serve(
    EXPERIMENT.acted(
        "resume_experiment",
        "Go on with what an experiment left out",
        lab.resume_experiment,
        body=BudgetIn,
        refuses=[409],
    )
)


@streams.serves(streams.Csv, "The table of an experiment, as CSV", name="export_experiment_csv")
def table_csv(request: Request, experiment_id: int) -> StreamingHttpResponse:
    query.read(request, is_paged=False)
    experiment = lab.experiment_detail(experiment_id)
    rows = table_rows(experiment)
    parts = table.write("csv", table_names(experiment), rows)
    return streams.answer(streams.Csv, parts, name=f"experiment-{experiment_id}.csv", n_rows=len(rows))


@streams.serves(streams.Markdown, "An experiment as Markdown: sentence, table, plan", name="export_experiment_markdown")
def report_markdown(request: Request, experiment_id: int) -> StreamingHttpResponse:
    query.read(request, is_paged=False)
    report = render_report(lab.experiment_detail(experiment_id), address=request.build_absolute_uri("/").rstrip("/"))
    return streams.answer(streams.Markdown, iter([report.encode()]), name=f"experiment-{experiment_id}.md")


urlpatterns = [
    path("experiments/", experiment_list, name="experiments"),
    path("experiments/<int:experiment_id>/", experiment_detail, name="experiment"),
    path("experiments/<int:experiment_id>/start/", start, name="experiment_start"),
    path("experiments/<int:experiment_id>/cancel/", cancel, name="experiment_cancel"),
    path("experiments/<int:experiment_id>/resume/", resume, name="experiment_resume"),
    path("experiments/<int:experiment_id>/table.csv", table_csv, name="experiment_csv"),
    path("experiments/<int:experiment_id>/report.md", report_markdown, name="experiment_markdown"),
]
