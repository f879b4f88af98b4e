"""Runs: asked for, followed, extended, cancelled, scored again, deleted."""

from django.urls import reverse
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.core.errors import InvalidInput
from runs import selectors, services
from runs.access import ADMIN, READ, RUN
from runs.api import pages, query, shapes
from runs.api.access import resource
from runs.api.serializers import RepeatsIn, RescoreIn, RunIn
from runs.models import Run
from runs.selectors import RunRow
from runs.selectors.run_list import RunFilter, run_page

FILTERS = ("suite", "endpoint", "status", "bucket", "label", "date")


@resource(GET=READ, POST=RUN)
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
        # Newest first: what comes after a row in the list has a lower id.
        return run_page(wanted, before=after, after=before, limit=limit)

    return pages.answer(request, fetch, place=lambda row: row.id, show=lambda row: shapes.run_row(row, request))


def _create(request: Request) -> Response:
    query.read(request, is_paged=False)
    body = RunIn(data=request.data)
    body.is_valid(raise_exception=True)
    run = services.create_run(**body.validated_data, user=request.user)
    location = request.build_absolute_uri(reverse("api:run", args=[run.pk]))
    return Response(_shown(run.pk, request), status=201, headers={"Location": location})


@resource(GET=READ, DELETE=ADMIN)
def run_detail(request: Request, run_id: int) -> Response:
    query.read(request, is_paged=False)
    if request.method == "DELETE":
        services.delete_run(run_id=run_id)
        return Response(status=204)
    return Response(_shown(run_id, request))


@resource(POST=RUN)
def cancel(request: Request, run_id: int) -> Response:
    services.cancel_run(run_id=run_id)
    return Response(_shown(run_id, request))


@resource(POST=RUN)
def add_repeats(request: Request, run_id: int) -> Response:
    body = RepeatsIn(data=request.data)
    body.is_valid(raise_exception=True)
    services.add_repeats(run_id=run_id, n=body.validated_data["n"])
    return Response(_shown(run_id, request))


@resource(POST=RUN)
def rescore(request: Request, run_id: int) -> Response:
    """Score stored responses with another scorer; `scores` of the answer has both."""
    body = RescoreIn(data=request.data)
    body.is_valid(raise_exception=True)
    if not body.validated_data:
        raise InvalidInput("There is nothing to score with.", fields={"scorer": "Give a scorer, or cases with theirs."})
    scorer = services.rescore_run(run_id=run_id, **body.validated_data)
    return Response({"scorer": {"id": str(scorer.pk), "digest": scorer.digest}, "run": _shown(run_id, request)})


def _shown(run_id: int, request: Request) -> shapes.Json:
    return shapes.run(selectors.run_report(run_id), request)
