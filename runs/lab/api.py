"""Experiments of the lab: planned, confirmed, followed, and their tables as files."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django.http import StreamingHttpResponse
from django.urls import reverse
from rest_framework import serializers
from rest_framework.decorators import renderer_classes
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.lab import KINDS, Experiment, ExperimentRow, RunEstimate
from evalboard.contract.lab_kinds import SOURCES
from evalboard.core import table
from evalboard.core.errors import InvalidInput
from evalboard.wording.lab_report import render_report
from evalboard.wording.lab_table import table_names, table_rows
from runs import lab
from runs.access import READ, RUN
from runs.api import etags, pages, query, streams, wire
from runs.api.access import resource
from runs.api.describe import describe, text, whole
from runs.api.serializers import Flag, Nothing, Strict, Text, Whole, read_body
from runs.lab.surroundings import estimate_run


class Minutes(serializers.FloatField):
    """A number; text that looks like one is refused."""

    def to_internal_value(self, data: Any) -> float:
        if not isinstance(data, int | float) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


ESTIMATE = {
    "suite": text("its slug"),
    "endpoint": text("its slug"),
    "profile": text("its slug; default: pinned"),
    "repeats": whole("default: 5"),
}


@resource(GET=READ)
@describe("GET", "What a run would take", name="run_estimate", answer=RunEstimate, query=ESTIMATE, refuses=[404])
def run_estimate(request: Request) -> Response:
    sent = query.read(request, ESTIMATE, is_paged=False)
    if lacking := [name for name in ("suite", "endpoint") if name not in sent]:
        raise InvalidInput("The query is not valid.", fields=dict.fromkeys(lacking, "Must be given."))
    repeats = query.number({"repeats": "5", **sent}, "repeats") or 0
    named = {name: value for name, value in sent.items() if name != "repeats"}
    return wire.answer(estimate_run(**named, repeats=repeats), request)


class ExperimentIn(Strict):
    kind = serializers.ChoiceField(choices=KINDS, default="variance")
    suite = Text()
    suite_version = Whole(required=False, min_value=1)
    endpoint = Text(required=False)
    profile = Text(default="pinned")
    runs = Whole(default=lab.DEFAULT_RUNS)
    sources = serializers.ListField(child=Text(), required=False, max_length=len(SOURCES))
    temperature = Minutes(required=False)
    budget_minutes = Minutes(required=False)
    start = Flag(default=False)


class BisectIn(Strict):
    kind = serializers.ChoiceField(choices=KINDS)
    baseline = Whole()
    candidate = Whole()
    cases = Whole(default=lab.DEFAULT_CASES)
    budget_minutes = Minutes(required=False)
    start = Flag(default=False)


class BudgetIn(Strict):
    may_be_left_out = True
    budget_minutes = Minutes(required=False)


ORDERING = query.ordering_of(lab.EXPERIMENT_ORDERS)
# What starting, cancelling and resuming answer alike.
ACTED: Final[Any] = {"answer": Experiment, "refuses": [409]}


@resource(GET=READ, POST=RUN)
@describe("GET", "Experiments, newest first", name="experiments", answer=Page[ExperimentRow], query=ORDERING)
@describe(
    "POST",
    "Plan an experiment, and start it where that is said",
    name="create_experiment",
    body=(ExperimentIn, BisectIn),
    status=201,
    answer=Experiment,
    gives_headers={"Location": "the experiment"},
    refuses=[404, 409, 422],
)
def experiment_list(request: Request) -> Response:
    if request.method == "POST":
        return _create(request)
    sent = query.read(request, ORDERING)
    return pages.answer_list(request, lab.sortable_experiments(), ordering=query.ordering(sent, lab.EXPERIMENT_ORDERS))


def _create(request: Request) -> Response:
    is_bisect = isinstance(request.data, Mapping) and request.data.get("kind") == "bisect"
    body = read_body(BisectIn if is_bisect else ExperimentIn, request)
    body.pop("kind")
    is_started = body.pop("start")
    plan = lab.plan_bisect if is_bisect else lab.plan_experiment
    experiment = plan(**body, user=request.user)
    if is_started:
        lab.start_experiment(experiment_id=experiment.pk)
    location = request.build_absolute_uri(reverse("api:experiment", args=[experiment.pk]))
    return wire.answer(lab.experiment_detail(experiment.pk), request, status=201, headers={"Location": location})


@resource(GET=READ, DELETE=RUN)
@describe("GET", "An experiment, as far as it is", name="experiment", answer=Experiment, **etags.DESCRIBED)
@describe(
    "DELETE",
    "Delete a plan, or an experiment that has ended; its runs stay",
    name="delete_experiment",
    status=204,
    refuses=[409],
)
def experiment_detail(request: Request, experiment_id: int) -> Response:
    query.read(request, is_paged=False)
    if request.method == "DELETE":
        lab.delete_experiment(experiment_id=experiment_id)
        return Response(status=204)
    state = lab.experiment_state(experiment_id)
    return etags.answer(request, state, lambda: wire.to_json(lab.experiment_detail(experiment_id), request))


@resource(POST=RUN)
@describe("POST", "Confirm a plan: its runs begin", name="start_experiment", body=BudgetIn, **ACTED)
def start(request: Request, experiment_id: int) -> Response:
    return _act(request, experiment_id, lab.start_experiment, BudgetIn)


@resource(POST=RUN)
@describe("POST", "Stop an experiment, with the run that it is at", name="cancel_experiment", body=Nothing, **ACTED)
def cancel(request: Request, experiment_id: int) -> Response:
    return _act(request, experiment_id, lab.cancel_experiment, Nothing)


@resource(POST=RUN)
@describe("POST", "Go on with what an experiment left out", name="resume_experiment", body=BudgetIn, **ACTED)
def resume(request: Request, experiment_id: int) -> Response:
    return _act(request, experiment_id, lab.resume_experiment, BudgetIn)


def _act(request: Request, experiment_id: int, act: Callable[..., None], body: type[Strict]) -> Response:
    act(experiment_id=experiment_id, **read_body(body, request))
    return wire.answer(lab.experiment_detail(experiment_id), request)


@resource(GET=READ)
@describe(
    "GET",
    "The table of an experiment, as CSV",
    name="export_experiment_csv",
    gives_headers=streams.COUNTED,
    **streams.described(streams.Csv),
)
@renderer_classes([streams.Csv])
def table_csv(request: Request, experiment_id: int) -> StreamingHttpResponse:
    query.read(request, is_paged=False)
    experiment = lab.experiment_detail(experiment_id)
    rows = table_rows(experiment)
    parts = table.write("csv", table_names(experiment), rows)
    return streams.answer(streams.Csv, parts, name=f"experiment-{experiment_id}.csv", n_rows=len(rows))


@resource(GET=READ)
@describe(
    "GET",
    "An experiment as Markdown: sentence, table, plan",
    name="export_experiment_markdown",
    gives_headers=streams.NAMED,
    **streams.described(streams.Markdown),
)
@renderer_classes([streams.Markdown])
def report_markdown(request: Request, experiment_id: int) -> StreamingHttpResponse:
    query.read(request, is_paged=False)
    report = render_report(lab.experiment_detail(experiment_id), address=request.build_absolute_uri("/").rstrip("/"))
    return streams.answer(streams.Markdown, iter([report.encode()]), name=f"experiment-{experiment_id}.md")
