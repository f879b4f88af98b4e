"""Other tools' logs: sent, read, listed."""

from functools import partial
from typing import Any

from django.urls import reverse
from rest_framework.decorators import parser_classes
from rest_framework.request import Request
from rest_framework.response import Response

from runs import services
from runs.access import READ, RUN
from runs.api import pages, query, shapes
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.describe import JSON, Answer, describe
from runs.api.import_answers import Import
from runs.api.import_bodies import ImportIn
from runs.api.parsers import LogForm
from runs.selectors import imported
from runs.uploads import is_waiting, log_files, takes_logs


@takes_logs
@resource(GET=READ, POST=RUN)
@describe("GET", "Imported logs, newest first", name="imported_logs", answer=Page[Import], is_paged=True)
@describe(
    "POST",
    "Read another tool's log, and store its runs",
    name="import_log",
    body={LogForm.media_type: ImportIn},
    status=201,
    answer=Import,
    gives_headers={"Location": "the import"},
    also={200: Answer("The import of this very log, or of the same eval, before", {JSON: Import})},
    refuses=[404, 409, 413],
)
@parser_classes([LogForm])
def import_list(request: Request) -> Response:
    if request.method == "POST":
        return _import(request)
    query.read(request)
    return pages.answer(
        request, imported.import_rows, place=lambda row: row.id, show=lambda row: shapes.imported(row, request)
    )


def _import(request: Request) -> Response:
    """201 with what was made of the log; 200 with what was made of it before."""
    query.read(request, is_paged=False)
    body = ImportIn(data=request.data)
    body.is_valid(raise_exception=True)
    asked: dict[str, Any] = dict(body.validated_data)
    files = log_files(asked.pop("files"))
    found, _, is_new = services.import_logs(
        files=files, user=request.user, is_wanted=partial(is_waiting, request.META), **asked
    )
    shown = shapes.imported(imported.import_row(found.pk), request)
    location = request.build_absolute_uri(reverse("api:import", args=[found.pk]))
    headers = {"Location": location} if is_new else {}
    return Response(shown, status=201 if is_new else 200, headers=headers)


@resource(GET=READ)
@describe("GET", "An imported log, with its runs", name="imported_log", answer=Import)
def import_detail(request: Request, import_id: int) -> Response:
    query.read(request, is_paged=False)
    return Response(shapes.imported(imported.import_row(import_id), request))
