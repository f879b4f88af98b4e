"""Other tools' logs: sent, read, listed."""

from functools import partial
from typing import Any

from django.http import QueryDict
from django.urls import reverse
from rest_framework import serializers
from rest_framework.decorators import parser_classes
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.imports import Import, ImportReading
from evalboard.importers.formats import AUTO, FORMATS
from runs.access import READ, RUN
from runs.api import pages, query, wire
from runs.api.describe import JSON, StatusAnswer, describe
from runs.api.parsers import LogForm
from runs.api.resource import get, resource, serve
from runs.api.serializers import Strict, Text, read_body
from runs.imports import read
from runs.imports.imports import import_logs
from runs.imports.readings import begin_reading, is_large, reading_row
from runs.imports.uploads import MAX_FILES, is_waiting, log_files, takes_logs

ORDERING = query.ordering_of(read.IMPORT_ORDERS)


class ImportIn(Strict):
    """A log's files as multipart/form-data. `suite`: the slug of a suite whose cases the log answers.

    `scale` is that of scores beyond 0 to 1, as in 0..10. `second_of` is the id of a run of the same side: the log shows
    which of its equal repeats count.
    """

    files = serializers.ListField(
        child=serializers.FileField(max_length=255, allow_empty_file=True), allow_empty=False, max_length=MAX_FILES
    )
    format = serializers.ChoiceField([AUTO, *FORMATS], default=AUTO)
    suite = Text(default=None)
    scale = Text(default="")
    second_of = Text(default="")

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, QueryDict):  # a request without a body, of whatever type
            raise serializers.ValidationError({"files": "Send the log's files as multipart/form-data."})
        twice = [name for name in ("format", "suite", "scale", "second_of") if len(data.getlist(name)) > 1]
        if twice:
            raise serializers.ValidationError(dict.fromkeys(twice, "Given more than once."))
        return super().to_internal_value(data)


@takes_logs
@resource(GET=READ, POST=RUN)
@describe("GET", "Imported logs, newest first", name="imported_logs", answer=Page[Import], query=ORDERING)
@describe(
    "POST",
    "Read another tool's log, and store its runs",
    name="import_log",
    body={LogForm.media_type: ImportIn},
    status=201,
    answer=Import,
    gives_headers={"Location": "the import, or the reading of a large log"},
    also={
        200: StatusAnswer("The import of this very log, or of the same eval, before", {JSON: Import}),
        202: StatusAnswer("A large log is read from now on; ask at Location how far it is", {JSON: ImportReading}),
    },
    refuses=[404, 409, 413],
)
@parser_classes([LogForm])
def import_list(request: Request) -> Response:
    if request.method == "POST":
        return _import(request)
    sent = query.read(request, ORDERING)
    return pages.answer_list(request, read.sortable_imports(), ordering=query.ordering(sent, read.IMPORT_ORDERS))


def _import(request: Request) -> Response:
    """Answer 201 with the import, 200 with an earlier import of this log, or 202 for a large log."""
    options = read_body(ImportIn, request)
    files = log_files(options.pop("files"))
    if is_large(files):
        reading = begin_reading(files=files, user=request.user, **options)
        location = request.build_absolute_uri(reverse("api:import_reading", args=[reading.pk]))
        return wire.answer(reading_row(reading.pk), request, status=202, headers={"Location": location})
    source, _, is_new = import_logs(
        files=files, user=request.user, is_wanted=partial(is_waiting, request.META), **options
    )
    location = request.build_absolute_uri(reverse("api:import", args=[source.pk]))
    headers = {"Location": location} if is_new else {}
    return wire.answer(read.import_row(source.pk), request, status=201 if is_new else 200, headers=headers)


import_detail = serve(get("imported_log", "An imported log, with its runs", Import, read.import_row))
import_reading = serve(get("import_reading", "How far the reading of a large log is", ImportReading, reading_row))
