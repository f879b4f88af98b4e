"""Fingerprints and workers: what served responses, and who is there to serve more."""

from rest_framework.request import Request
from rest_framework.response import Response

from runs import selectors
from runs.access import READ
from runs.api import catalogue_answers, catalogue_shapes, pages, query
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.describe import describe


@resource(GET=READ)
@describe(
    "GET",
    "Fingerprints, newest first",
    name="fingerprints",
    answer=Page[catalogue_answers.FingerprintRow],
    is_paged=True,
)
def fingerprint_list(request: Request) -> Response:
    query.read(request)
    return pages.answer(
        request, selectors.fingerprint_rows, place=lambda row: row.id, show=catalogue_shapes.fingerprint_row
    )


@resource(GET=READ)
@describe("GET", "A fingerprint with its manifest", name="fingerprint", answer=catalogue_answers.Fingerprint)
def fingerprint_detail(request: Request, fingerprint_id: int) -> Response:
    query.read(request, is_paged=False)
    return Response(catalogue_shapes.fingerprint(selectors.fingerprint_report(fingerprint_id)))


@resource(GET=READ)
@describe(
    "GET",
    "What moved between two fingerprints",
    name="fingerprint_difference",
    answer=catalogue_answers.FingerprintDifference,
)
def fingerprint_difference(request: Request, fingerprint_id: int, other: int) -> Response:
    query.read(request, is_paged=False)
    found = selectors.fingerprint_difference(fingerprint_id, other)
    return Response(catalogue_shapes.fingerprint_difference(found, request))


@resource(GET=READ)
@describe("GET", "Workers and what they do", name="workers", answer=Page[catalogue_answers.Worker], is_paged=True)
def worker_list(request: Request) -> Response:
    query.read(request)
    return pages.answer_with(request, selectors.worker_rows(), show=catalogue_shapes.worker)
