"""Endpoints, profiles and policies, and the rotation of an endpoint's fingerprint."""

from runs.catalogue import expiry, policies, read, rotations
from runs.catalogue.endpoints import (
    ENGINES,
    SLUG,
    create_endpoint,
    create_profile,
    ignore_fingerprint,
    model_problems,
    set_price,
    store_default_profiles,
)
from runs.catalogue.model_names import OneNames, is_all_that_is_known
from runs.catalogue.policies import create_policy, newest_policy, store_default_policies
from runs.catalogue.read import finds_call_names, honours_logprobs, policy_rows, read_newest_check
from runs.catalogue.rotations import CurrentStack, newer_stack, newer_stacks, note_rotation

__all__ = [
    "ENGINES",
    "SLUG",
    "CurrentStack",
    "OneNames",
    "create_endpoint",
    "create_policy",
    "create_profile",
    "expiry",
    "finds_call_names",
    "honours_logprobs",
    "ignore_fingerprint",
    "is_all_that_is_known",
    "model_problems",
    "newer_stack",
    "newer_stacks",
    "newest_policy",
    "note_rotation",
    "policies",
    "policy_rows",
    "read",
    "read_newest_check",
    "rotations",
    "set_price",
    "store_default_policies",
    "store_default_profiles",
]
