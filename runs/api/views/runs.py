"""Runs: asked for, followed, extended, cancelled, scored again, deleted."""

from typing import Any

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.core.errors import InvalidInput
from runs import selectors, services
from runs.access import ADMIN, READ, RUN
from runs.api import answers, etags, pages, query, shapes
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.describe import describe, one_of, text, whole
from runs.api.serializers import Nothing, RepeatsIn, RescoreIn, RunIn
from runs.models import Run
from runs.selectors import RunRow
from runs.selectors.run_list import PLACE_DIGITS, RunFilter, place_of, run_page
from runs.selectors.run_state import RunState, run_state
from runs.services.idempotency import HEADER

DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
FILTERS = {
    "suite": text("its slug"),
    "endpoint": text("its slug"),
    "status": one_of(Run.Status.values),
    "bucket": whole("its id"),
    "label": text("branch, or branch=main"),
    "date": text("a day, or two as 2026-11-01..2026-11-20, in UTC", pattern=rf"^{DAY}(\.\.{DAY})?$"),
}
KEY = {HEADER: text("the same request sent again makes no second run", pattern="^[!-~]{1,255}$")}
MADE = {"Location": "the run"}


@resource(GET=READ, POST=RUN)
@describe("GET", "Runs, newest first", name="runs", answer=Page[answers.RunRow], query=FILTERS, is_paged=True)
@describe(
    "POST",
    "Start a run",
    name="create_run",
    body=RunIn,
    takes_headers=KEY,
    status=201,
    answer=answers.Run,
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
        status=query.choice(sent, "status", Run.Status.values),
        bucket=query.number(sent, "bucket"),
        label=sent.get("label", ""),
        since=since,
        until=until,
    )

    def fetch(*, after: int | None, before: int | None, limit: int) -> tuple[RunRow, ...]:
        # Newest first: what comes after a row in the list has a lower place.
        return run_page(wanted, before=after, after=before, limit=limit)

    return pages.answer(
        request, fetch, place=place_of, show=lambda row: shapes.run_row(row, request), digits=PLACE_DIGITS
    )


def _create(request: Request) -> Response:
    query.read(request, is_paged=False)
    body = RunIn(data=request.data)
    body.is_valid(raise_exception=True)
    asked: dict[str, Any] = {**body.validated_data, "user": request.user}
    headers: dict[str, str] = {}
    if (key := request.headers.get(HEADER)) is None:
        run = services.create_run(**asked)
    else:
        run, was_made_before = services.create_run_once(key=key, body=request.data, **asked)
        if was_made_before:
            headers["Idempotent-Replayed"] = "true"
    headers["Location"] = request.build_absolute_uri(reverse("api:run", args=[run.pk]))
    return Response(_shown(run.pk, request), status=201, headers=headers)


@resource(GET=READ, DELETE=ADMIN)
@describe("GET", "A run", name="run", answer=answers.Run, **etags.DESCRIBED)
@describe(
    "DELETE", "Delete a run that has ended, with all that it stored", name="delete_run", status=204, refuses=[409]
)
def run_detail(request: Request, run_id: int) -> Response:
    query.read(request, is_paged=False)
    if request.method == "DELETE":
        services.delete_run(run_id=run_id)
        return Response(status=204)
    state = run_state(run_id)
    return etags.answer(request, state.tag, lambda: _shown(run_id, request, state=state))


@resource(POST=RUN)
@describe(
    "POST", "Cancel a run", name="cancel_run", body=Nothing, is_body_required=False, answer=answers.Run, refuses=[409]
)
def cancel(request: Request, run_id: int) -> Response:
    query.read(request, is_paged=False)
    Nothing(data=request.data).is_valid(raise_exception=True)
    services.cancel_run(run_id=run_id)
    return Response(_shown(run_id, request))


@resource(POST=RUN)
@describe("POST", "Add repeats", name="add_repeats", body=RepeatsIn, answer=answers.Run, refuses=[409, 422])
def add_repeats(request: Request, run_id: int) -> Response:
    query.read(request, is_paged=False)
    body = RepeatsIn(data=request.data)
    body.is_valid(raise_exception=True)
    services.add_repeats(run_id=run_id, n=body.validated_data["n"])
    return Response(_shown(run_id, request))


@resource(POST=RUN)
@describe(
    "POST", "Score stored responses again", name="rescore", body=RescoreIn, answer=answers.Rescored, refuses=[409]
)
def rescore(request: Request, run_id: int) -> Response:
    """Score stored responses with another scorer; `scores` of the answer has both."""
    query.read(request, is_paged=False)
    body = RescoreIn(data=request.data)
    body.is_valid(raise_exception=True)
    if not body.validated_data:
        raise InvalidInput("There is nothing to score with.", fields={"scorer": "Give a scorer, or cases with theirs."})
    scorer = services.rescore_run(run_id=run_id, **body.validated_data)
    return Response({"scorer": {"id": str(scorer.pk), "digest": scorer.digest}, "run": _shown(run_id, request)})


def _shown(run_id: int, request: Request, *, state: RunState | None = None) -> answers.Run:
    return shapes.run(selectors.run_report(run_id, state=state), request)
