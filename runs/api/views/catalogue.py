"""Endpoints and profiles: what a run may name."""

from rest_framework.request import Request
from rest_framework.response import Response

from runs import services
from runs.access import ADMIN, READ
from runs.api import pages, query, shapes
from runs.api.access import resource
from runs.api.serializers import EndpointIn, ProfileIn
from runs.selectors import catalogue


@resource(GET=READ, POST=ADMIN)
def endpoint_list(request: Request) -> Response:
    if request.method == "POST":
        return _create_endpoint(request)
    query.read(request)
    return pages.answer_with(request, catalogue.endpoint_rows(), show=shapes.endpoint)


def _create_endpoint(request: Request) -> Response:
    query.read(request, is_paged=False)
    body = EndpointIn(data=request.data)
    body.is_valid(raise_exception=True)
    asked = dict(body.validated_data)
    model = {f"model_{name}": value for name, value in asked.pop("model").items()}
    endpoint = services.create_endpoint(**asked, **model)
    return Response(shapes.endpoint(catalogue.endpoint_row(endpoint)), status=201)


@resource(GET=READ, POST=ADMIN)
def profile_list(request: Request) -> Response:
    if request.method == "POST":
        return _create_profile(request)
    query.read(request)
    return pages.answer_with(request, catalogue.profile_rows(), show=shapes.profile)


def _create_profile(request: Request) -> Response:
    """201 with a new version; 200 where the newest one has the same settings already."""
    query.read(request, is_paged=False)
    body = ProfileIn(data=request.data)
    body.is_valid(raise_exception=True)
    profile, is_new = services.create_profile(**body.validated_data)
    return Response(shapes.profile(catalogue.profile_row(profile)), status=201 if is_new else 200)
