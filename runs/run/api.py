"""Runs: asked for, followed, extended, cancelled, deleted."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.urls import reverse
from rest_framework.decorators import renderer_classes
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract import response as contract
from evalboard.contract.base import Page
from evalboard.contract.bucket import StrayResponse
from evalboard.contract.run import Run, RunEstimate, RunPair, RunRow
from evalboard.core.errors import InvalidInput
from evalboard.core.profile import MAX_SEED
from evalboard.core.trace import NOTABLE
from runs import models
from runs import run as run_slice
from runs.access import ADMIN, READ, RUN
from runs.api import etags, pages, query, traces, wire
from runs.api.describe import WHOLE, describe, keyed, one_of, text, whole
from runs.api.resource import Resource, resource, serve
from runs.api.serializers import Flag, ModelIn, Object, Strict, Text, Whole, read_body
from runs.run.completing import complete_run, run_again
from runs.run.estimates import estimate_run
from runs.run.idempotency import HEADER, make_once
from runs.run.in_turn import create_pair
from runs.run.read import run_report
from runs.run.read_cases import case_page
from runs.run.read_list import (
    PLACE_DIGITS,
    RUN_ORDERS,
    WAITING_FOR_ENDPOINT,
    RunFilter,
    place_of,
    run_page,
    sortable_runs,
)
from runs.run.read_response import show_trace, stored_trace
from runs.run.read_responses import response_rows
from runs.run.read_shards import stray_rows
from runs.run.read_state import run_state
from runs.run.runs import cancel_run, create_run, delete_run

DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
STATUSES = (*models.RunRecord.Status.values, WAITING_FOR_ENDPOINT)
FILTERS = {
    "suite": text("its slug"),
    "endpoint": text("its slug"),
    "status": one_of(STATUSES),
    "bucket": whole("its id"),
    "label": text("branch, or branch=main"),
    **query.ordering_of(RUN_ORDERS),
    "date": text("a day, or two as 2026-11-01..2026-11-20, in UTC", pattern=rf"^{DAY}(\.\.{DAY})?$"),
}
KEY = keyed(HEADER)
MADE = {"Location": "the run"}


class RunIn(Strict):
    suite = Text()
    suite_version = Whole(required=False, min_value=1)
    endpoint = Text()
    profile = Text()
    repeats = Whole(default=5)
    seed = Whole(required=False, min_value=0, max_value=MAX_SEED)
    model = ModelIn(required=False)
    labels = Object(required=False)
    priority = Text(required=False)
    is_shuffled = Flag(required=False)
    is_restarted = Flag(required=False)


class RunPairIn(Strict):
    """The body of `POST /runs/`, for each side."""

    baseline = RunIn()
    candidate = RunIn()


class AgainIn(Strict):
    endpoint = Text(required=False)


class RepeatsIn(Strict):
    n = Whole()
    have = Whole(required=False, min_value=0)


@resource(GET=READ, POST=RUN)
@describe("GET", "Runs, newest first", name="runs", answer=Page[RunRow], query=FILTERS)
@describe(
    "POST",
    "Start a run",
    name="create_run",
    body=RunIn,
    takes_headers=KEY,
    status=201,
    answer=Run,
    gives_headers=MADE,
    refuses=[404, 409, 422],
)
def run_list(request: Request) -> Response:
    if request.method == "POST":
        return _create(request)
    sent = query.read(request, FILTERS)
    since, until = query.days(sent, "date")
    wanted = RunFilter(
        suite=sent.get("suite", ""),
        endpoint=sent.get("endpoint", ""),
        status=query.choice(sent, "status", STATUSES),
        bucket=query.number(sent, "bucket"),
        label=sent.get("label", ""),
        since=since,
        until=until,
    )

    listed = sortable_runs(wanted)
    if ordering := query.ordering(sent, RUN_ORDERS):
        return pages.answer_with(request, listed.sort(ordering), make_rows=listed.make_rows)

    def fetch(*, after: int | None, before: int | None, limit: int) -> tuple[RunRow, ...]:
        # Newest first: what comes after a row in the list has a lower place.
        return run_page(wanted, before=after, after=before, limit=limit)

    return pages.answer(request, fetch, place=place_of, digits=PLACE_DIGITS)


def _create(request: Request) -> Response:
    order = {**read_body(RunIn, request), "user": request.user}
    return _made(request, request.data, order, create_run)


def _made(request: Request, body: Any, order: dict[str, Any], make: Callable[..., models.RunRecord]) -> Response:
    """Answer with a new run, or with that of the same request and key before."""
    [run], was_made_before = make_once(request.headers.get(HEADER), body, request.user, lambda: (make(**order),))
    headers = {"Location": request.build_absolute_uri(reverse("api:run", args=[run.pk]))}
    return wire.answer(run_report(run.pk), request, status=201, headers={**wire.replayed(was_made_before), **headers})


@resource(POST=RUN)
@describe(
    "POST",
    "Start two runs whose repeats take turns",
    name="create_pair",
    body=RunPairIn,
    takes_headers=KEY,
    status=201,
    answer=RunPair,
    refuses=[404, 409, 422],
)
def pair_list(request: Request) -> Response:
    """Both sides of a release at once: A B B A A B, so that the load and the hour meet both alike."""
    sides = {**read_body(RunPairIn, request), "user": request.user}
    make = partial(create_pair, **sides)
    runs, was_made_before = make_once(request.headers.get(HEADER), request.data, request.user, make)
    baseline, candidate = (run_report(run.pk) for run in runs)
    answer = RunPair(baseline=baseline, candidate=candidate)
    return wire.answer(answer, request, status=201, headers=wire.replayed(was_made_before))


@resource(GET=READ, DELETE=ADMIN)
@describe("GET", "A run", name="run", answer=Run, **etags.DESCRIBED)
@describe(
    "DELETE", "Delete a run that has ended, with all that it stored", name="delete_run", status=204, refuses=[409]
)
def run_detail(request: Request, run_id: int) -> Response:
    query.read(request, is_paged=False)
    if request.method == "DELETE":
        delete_run(run_id=run_id)
        return Response(status=204)
    state = run_state(run_id)
    return etags.answer(request, state.tag, lambda: wire.to_json(run_report(run_id, state=state), request))


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


RESOURCE = Resource("run", Run, run_report)
cancel = serve(RESOURCE.acted("cancel_run", "Cancel a run", cancel_run, refuses=[409]))
complete = serve(RESOURCE.acted("complete_run", "Complete a run", complete_run, refuses=[409, 422]))
add_repeats = serve(
    RESOURCE.acted("add_repeats", "Add repeats", run_slice.add_repeats, body=RepeatsIn, refuses=[409, 422])
)


@resource(POST=RUN)
@describe(
    "POST",
    "Run again with the same settings",
    name="run_again",
    body=AgainIn,
    takes_headers=KEY,
    status=201,
    answer=Run,
    gives_headers=MADE,
    refuses=[404, 409, 422],
)
def again(request: Request, run_id: int) -> Response:
    sent = read_body(AgainIn, request)
    return _made(request, {"again": run_id, **sent}, {**sent, "run_id": run_id, "user": request.user}, run_again)


ONLY = ("unstable", "likely", "failed", "failed_alike", "passed", "incomplete", "missing", "left_out", *NOTABLE)
CASE_FILTERS = {"only": one_of(ONLY), "query": text("part of a case's id, prompt or tags, or of an answer to it")}


@resource(GET=READ)
@describe("GET", "Cases of a run over its repeats", name="cases", answer=Page[contract.CaseOfRun], query=CASE_FILTERS)
def case_list(request: Request, run_id: int) -> Response:
    sent = query.read(request, CASE_FILTERS)
    only = query.choice(sent, "only", ONLY)
    fetch = partial(case_page, run_id, query=sent.get("query", ""), only=only)
    return pages.answer(request, fetch, place=lambda row: row.case_index)


RESPONSE_FILTERS = {"case": text("a case id"), "repeat": WHOLE}


@resource(GET=READ)
@describe(
    "GET",
    "Responses of a run, by repeat and case",
    name="responses",
    answer=Page[contract.Response],
    query=RESPONSE_FILTERS,
)
def response_list(request: Request, run_id: int) -> Response:
    sent = query.read(request, RESPONSE_FILTERS)
    fetch = partial(response_rows, run_id, case_id=sent.get("case"), repeat=query.number(sent, "repeat"))
    return pages.answer(request, fetch, place=lambda row: row.place)


STRAY_FILTERS = {"bucket": whole("its id")}


@resource(GET=READ)
@describe(
    "GET",
    "Responses of a run that another computation gave, by bucket, case and repeat",
    name="strays",
    answer=Page[StrayResponse],
    query=STRAY_FILTERS,
)
def stray_list(request: Request, run_id: int) -> Response:
    sent = query.read(request, STRAY_FILTERS)
    fetch = partial(stray_rows, run_id, bucket=query.number(sent, "bucket"))
    return pages.answer(request, fetch, place=lambda row: row.place)


@resource(GET=READ)
@describe(
    "GET",
    "The trace of one response, position by position or packed",
    name="trace",
    query=traces.RANGE,
    answer=traces.ANSWER,
)
@renderer_classes(traces.RENDERERS)
def trace(request: Request, run_id: int, repeat: int, case: str) -> Response:
    """Answer a trace: positions as JSON, or a packed block if `Accept` asks for bytes."""
    return traces.answer(request, partial(stored_trace, run_id, repeat=repeat, case_id=case), show=show_trace)
