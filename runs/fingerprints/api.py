"""Fingerprints and workers: what served responses, and who is there to serve more."""

from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.catalogue import Endpoint, SameModel
from evalboard.contract.endpoint import EndpointReport
from evalboard.contract.stack import Fingerprint, FingerprintDifference, FingerprintRow, Worker
from runs import fingerprints
from runs.access import ADMIN, READ, RUN
from runs.api import pages, query, wire
from runs.api.access import resource
from runs.api.describe import describe
from runs.api.serializers import Nothing, Strict, Text, read_body
from runs.catalogue.read import endpoint_row
from runs.fingerprints.read import fingerprint_report, fingerprint_rows, same_model_row, same_model_rows
from runs.fingerprints.read_endpoint import endpoint_report
from runs.fingerprints.same_models import say_same_model, take_back_same_model
from runs.work import try_endpoint, worker_rows


class SameModelIn(Strict):
    name = Text()
    other_name = Text()
    reason = Text()


@resource(GET=READ)
@describe("GET", "Fingerprints, newest first", name="fingerprints", answer=Page[FingerprintRow])
def fingerprint_list(request: Request) -> Response:
    query.read(request)
    return pages.answer(request, fingerprint_rows)


@resource(GET=READ)
@describe("GET", "A fingerprint with its manifest", name="fingerprint", answer=Fingerprint)
def fingerprint_detail(request: Request, fingerprint_id: int) -> Response:
    query.read(request, is_paged=False)
    return wire.answer(fingerprint_report(fingerprint_id), request)


@resource(GET=READ)
@describe("GET", "What moved between two fingerprints", name="fingerprint_difference", answer=FingerprintDifference)
def fingerprint_difference(request: Request, fingerprint_id: int, other: int) -> Response:
    query.read(request, is_paged=False)
    return wire.answer(fingerprints.fingerprint_difference(fingerprint_id, other), request)


@resource(GET=READ)
@describe("GET", "An endpoint with what is known of it lately", name="endpoint", answer=EndpointReport)
def endpoint_detail(request: Request, endpoint: str) -> Response:
    query.read(request, is_paged=False)
    return wire.answer(endpoint_report(endpoint), request)


@resource(POST=RUN)
@describe("POST", "Try a paused endpoint now", name="try_endpoint", body=Nothing, answer=Endpoint)
def try_now(request: Request, endpoint: str) -> Response:
    read_body(Nothing, request)
    return wire.answer(endpoint_row(try_endpoint(endpoint=endpoint)), request)


@resource(GET=READ)
@describe("GET", "Workers and what they do", name="workers", answer=Page[Worker])
def worker_list(request: Request) -> Response:
    query.read(request)
    return pages.answer_with(request, worker_rows())


@resource(GET=READ, POST=ADMIN)
@describe("GET", "Names of models that people said are one", name="model_names", answer=Page[SameModel])
@describe(
    "POST",
    "Say that two names are one model",
    name="say_same_model",
    body=SameModelIn,
    status=201,
    answer=SameModel,
    refuses=[409],
)
def model_name_list(request: Request) -> Response:
    if request.method == "POST":
        word = say_same_model(**read_body(SameModelIn, request), user=request.user)
        return wire.answer(same_model_row(word.pk), request, status=201)
    query.read(request)
    return pages.answer_with(request, same_model_rows())


@resource(GET=READ, DELETE=ADMIN)
@describe("GET", "Two names of one model", name="model_name", answer=SameModel)
@describe("DELETE", "Take back that two names are one model", name="take_back_same_model", status=204)
def model_name_detail(request: Request, same_model_id: int) -> Response:
    query.read(request, is_paged=False)
    if request.method == "DELETE":
        take_back_same_model(same_model_id=same_model_id, user=request.user)
        return Response(status=204)
    return wire.answer(same_model_row(same_model_id), request)
