"""Endpoints, profiles and policies: what a run or a release may name."""

from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Page
from evalboard.contract.catalogue import Endpoint, Policy, Profile
from runs.access import ADMIN, READ
from runs.api import pages, query, wire
from runs.api.access import resource
from runs.api.describe import JSON, StatusAnswer, describe
from runs.api.serializers import Flag, ModelIn, Object, Strict, Text, Whole, read_body
from runs.catalogue import read
from runs.catalogue.endpoints import create_endpoint, create_profile, ignore_fingerprint
from runs.catalogue.policies import create_policy
from runs.store import sort_rows

ORDERING = query.ordering_of(read.ENDPOINT_ORDERS)


class NamedModelIn(ModelIn):
    name = Text(required=False)


class EndpointIn(Strict):
    slug = Text()
    engine = Text(required=False)
    model = NamedModelIn()
    dtype = Text(required=False)
    quantization = Text(required=False, allow_blank=True)
    line = Text(required=False)
    max_model_len = Whole(required=False)
    pool = Text(required=False)
    base_url = Text(required=False)
    api = Text(required=False)
    auth = Text(required=False, allow_blank=True)
    headers = Object(required=False)
    extra_body = Object(required=False)
    concurrency = Whole(required=False)
    calls_per_minute = Whole(required=False, allow_null=True)
    reference = Text(required=False, allow_null=True)
    bypass = Text(required=False, allow_null=True)
    rescores = Flag(required=False)
    daily_check = Flag(required=False)


class FingerprintIn(Strict):
    ignores_fingerprint = Flag()


class ProfileIn(Strict):
    slug = Text()
    title = Text(required=False, allow_blank=True, default="", max_length=200)
    settings = Object()


class PolicyIn(Strict):
    slug = Text()
    title = Text(required=False, allow_blank=True, default="", max_length=200)
    settings = Object()


@resource(GET=READ, POST=ADMIN)
@describe("GET", "Endpoints", name="endpoints", answer=Page[Endpoint], query=ORDERING)
@describe(
    "POST",
    "Add an endpoint",
    name="create_endpoint",
    body=EndpointIn,
    status=201,
    answer=Endpoint,
    refuses=[409],
)
def endpoint_list(request: Request) -> Response:
    if request.method == "POST":
        fields = read_body(EndpointIn, request)
        model = {f"model_{name}": value for name, value in fields.pop("model").items()}
        return wire.answer(read.endpoint_row(create_endpoint(**fields, **model)), request, status=201)
    sent = query.read(request, ORDERING)
    rows = sort_rows(read.endpoint_rows(), read.ENDPOINT_ORDERS, query.ordering(sent, read.ENDPOINT_ORDERS))
    return pages.answer_with(request, rows)


@resource(POST=ADMIN)
@describe("POST", "Say whether fingerprints name servers", name="set_fingerprint", body=FingerprintIn, answer=Endpoint)
def fingerprint(request: Request, endpoint: str) -> Response:
    ignores = read_body(FingerprintIn, request)["ignores_fingerprint"]
    return wire.answer(read.endpoint_row(ignore_fingerprint(endpoint=endpoint, ignores=ignores)), request)


@resource(GET=READ, POST=ADMIN)
@describe("GET", "The newest version of each profile", name="profiles", answer=Page[Profile])
@describe(
    "POST",
    "Add a profile, or the next version of one",
    name="create_profile",
    body=ProfileIn,
    status=201,
    answer=Profile,
    also={200: StatusAnswer("The newest version has these settings already", {JSON: Profile})},
)
def profile_list(request: Request) -> Response:
    if request.method == "POST":
        profile, is_new = create_profile(**read_body(ProfileIn, request))
        return wire.answer(read.profile_row(profile), request, status=201 if is_new else 200)
    query.read(request)
    return pages.answer_with(request, read.profile_rows())


@resource(GET=READ, POST=ADMIN)
@describe("GET", "The newest version of each policy", name="policies", answer=Page[Policy])
@describe(
    "POST",
    "Add a policy, or the next version of one",
    name="create_policy",
    body=PolicyIn,
    status=201,
    answer=Policy,
    also={200: StatusAnswer("The newest version has these settings already", {JSON: Policy})},
)
def policy_list(request: Request) -> Response:
    if request.method == "POST":
        policy, is_new = create_policy(**read_body(PolicyIn, request), user=request.user)
        return wire.answer(read.policy_row(policy), request, status=201 if is_new else 200)
    query.read(request)
    return pages.answer_with(request, read.policy_rows())
