"""Endpoints, profiles and policies: what a run or a release may name."""

from collections.abc import Mapping
from typing import Any, Final

from evalboard.contract.catalogue import Endpoint, Policy, Profile
from runs.access import ADMIN
from runs.api.resource import Resource, serve
from runs.api.serializers import Flag, ModelIn, Object, Strict, Text, Whole
from runs.catalogue import read
from runs.catalogue.endpoints import create_endpoint, create_profile, ignore_fingerprint, set_price
from runs.catalogue.policies import create_policy
from runs.models import EndpointRecord


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
    tensor_parallel_size = Whole(required=False)
    pipeline_parallel_size = Whole(required=False)
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
    price = Object(required=False, allow_null=True)


class PriceIn(Strict):
    price = Object(allow_null=True)


class FingerprintIn(Strict):
    ignores_fingerprint = Flag(source="ignores")


class ProfileIn(Strict):
    slug = Text()
    title = Text(required=False, allow_blank=True, default="", max_length=200)
    settings = Object()


class PolicyIn(ProfileIn):
    pass


ENDPOINT = Resource("endpoint", Endpoint, read.endpoint_row, changes=ADMIN, takes_record=True)
PROFILE = Resource("profile", Profile, read.profile_row, changes=ADMIN, takes_record=True)
POLICY = Resource("policy", Policy, read.policy_row, changes=ADMIN, takes_record=True)
VERSIONED: Final[Any] = {"again": "The newest version has these settings already", "is_located": False}


def _create_endpoint(*, model: Mapping[str, Any], **fields: Any) -> EndpointRecord:
    return create_endpoint(**fields, **{f"model_{name}": value for name, value in model.items()})


endpoint_list = serve(
    ENDPOINT.listed("endpoints", "Endpoints", Endpoint, read.endpoint_rows, read.ENDPOINT_ORDERS),
    ENDPOINT.made(
        "Add an endpoint",
        EndpointIn,
        _create_endpoint,
        is_located=False,
        by="",
        refuses=[409],
    ),
)
fingerprint = serve(
    ENDPOINT.acted("set_fingerprint", "Say whether fingerprints name servers", ignore_fingerprint, body=FingerprintIn)
)
price = serve(ENDPOINT.acted("set_price", "Say what its tokens cost", set_price, body=PriceIn))
profile_list = serve(
    PROFILE.listed("profiles", "The newest version of each profile", Profile, read.profile_rows),
    PROFILE.made(
        "Add a profile, or the next version of one",
        ProfileIn,
        create_profile,
        by="",
        **VERSIONED,
    ),
)
policy_list = serve(
    POLICY.listed("policies", "The newest version of each policy", Policy, read.policy_rows),
    POLICY.made("Add a policy, or the next version of one", PolicyIn, create_policy, **VERSIONED),
)
