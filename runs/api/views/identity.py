"""Fingerprints and workers: what served responses, and who is there to serve more."""

from rest_framework.request import Request
from rest_framework.response import Response

from runs import selectors
from runs.access import READ
from runs.api import pages, query, shapes
from runs.api.access import resource


@resource(GET=READ)
def fingerprint_list(request: Request) -> Response:
    query.read(request)
    return pages.answer(request, selectors.fingerprint_rows, place=lambda row: row.id, show=shapes.fingerprint_row)


@resource(GET=READ)
def fingerprint_detail(request: Request, fingerprint_id: int) -> Response:
    query.read(request, is_paged=False)
    return Response(shapes.fingerprint(selectors.fingerprint_report(fingerprint_id)))


@resource(GET=READ)
def worker_list(request: Request) -> Response:
    query.read(request)
    return pages.answer_with(request, selectors.worker_rows(), show=shapes.worker)
