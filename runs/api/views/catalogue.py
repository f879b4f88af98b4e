"""Endpoints, profiles and policies: what a run or a release may name."""

from rest_framework.request import Request
from rest_framework.response import Response

from runs import services
from runs.access import ADMIN, READ
from runs.api import catalogue_answers, catalogue_shapes, pages, query
from runs.api.access import resource
from runs.api.answers import Page
from runs.api.describe import JSON, Answer, describe
from runs.api.serializers import EndpointIn, PolicyIn, ProfileIn
from runs.selectors import catalogue


@resource(GET=READ, POST=ADMIN)
@describe("GET", "Endpoints", name="endpoints", answer=Page[catalogue_answers.Endpoint], is_paged=True)
@describe(
    "POST",
    "Add an endpoint",
    name="create_endpoint",
    body=EndpointIn,
    status=201,
    answer=catalogue_answers.Endpoint,
    refuses=[409],
)
def endpoint_list(request: Request) -> Response:
    if request.method == "POST":
        return _create_endpoint(request)
    query.read(request)
    return pages.answer_with(request, catalogue.endpoint_rows(), show=catalogue_shapes.endpoint)


def _create_endpoint(request: Request) -> Response:
    query.read(request, is_paged=False)
    body = EndpointIn(data=request.data)
    body.is_valid(raise_exception=True)
    asked = dict(body.validated_data)
    model = {f"model_{name}": value for name, value in asked.pop("model").items()}
    endpoint = services.create_endpoint(**asked, **model)
    return Response(catalogue_shapes.endpoint(catalogue.endpoint_row(endpoint)), status=201)


@resource(GET=READ, POST=ADMIN)
@describe(
    "GET", "The newest version of each profile", name="profiles", answer=Page[catalogue_answers.Profile], is_paged=True
)
@describe(
    "POST",
    "Add a profile, or the next version of one",
    name="create_profile",
    body=ProfileIn,
    status=201,
    answer=catalogue_answers.Profile,
    also={200: Answer("The newest version has these settings already", {JSON: catalogue_answers.Profile})},
)
def profile_list(request: Request) -> Response:
    if request.method == "POST":
        return _create_profile(request)
    query.read(request)
    return pages.answer_with(request, catalogue.profile_rows(), show=catalogue_shapes.profile)


def _create_profile(request: Request) -> Response:
    """201 with a new version; 200 where the newest one has the same settings already."""
    query.read(request, is_paged=False)
    body = ProfileIn(data=request.data)
    body.is_valid(raise_exception=True)
    profile, is_new = services.create_profile(**body.validated_data)
    return Response(catalogue_shapes.profile(catalogue.profile_row(profile)), status=201 if is_new else 200)


@resource(GET=READ, POST=ADMIN)
@describe(
    "GET", "The newest version of each policy", name="policies", answer=Page[catalogue_answers.Policy], is_paged=True
)
@describe(
    "POST",
    "Add a policy, or the next version of one",
    name="create_policy",
    body=PolicyIn,
    status=201,
    answer=catalogue_answers.Policy,
    also={200: Answer("The newest version has these settings already", {JSON: catalogue_answers.Policy})},
)
def policy_list(request: Request) -> Response:
    if request.method == "POST":
        return _create_policy(request)
    query.read(request)
    return pages.answer_with(request, catalogue.policy_rows(), show=catalogue_shapes.policy)


def _create_policy(request: Request) -> Response:
    """201 with a new version; 200 where the newest one has the same settings already."""
    query.read(request, is_paged=False)
    body = PolicyIn(data=request.data)
    body.is_valid(raise_exception=True)
    policy, is_new = services.create_policy(**body.validated_data, user=request.user)
    return Response(catalogue_shapes.policy(catalogue.policy_row(policy)), status=201 if is_new else 200)
