"""Every state change, one keyword-only function each. Pages, API, commands and workers all call these."""

from runs.access import grant_role
from runs.services.endpoints import create_endpoint, create_profile
from runs.services.leases import Beat, Lease, mark_in_flight, renew_lease
from runs.services.reconcile import reconcile, release_dead_workers
from runs.services.rescoring import rescore_run
from runs.services.responses import record_outcomes
from runs.services.runs import add_repeats, cancel_run, create_run, delete_run
from runs.services.shards import bind_bucket, cancel_shard, claim_shard, fail_start, finish_shard, release_shard
from runs.services.suites import push_suite
from runs.services.tokens import create_token, use_token
from runs.services.workers import (
    beat,
    close_engine_process,
    open_engine_process,
    record_self_check,
    register_worker,
    stop_worker,
    store_vocabulary,
)

__all__ = [
    "Beat",
    "Lease",
    "add_repeats",
    "beat",
    "bind_bucket",
    "cancel_run",
    "cancel_shard",
    "claim_shard",
    "close_engine_process",
    "create_endpoint",
    "create_profile",
    "create_run",
    "create_token",
    "delete_run",
    "fail_start",
    "finish_shard",
    "grant_role",
    "mark_in_flight",
    "open_engine_process",
    "push_suite",
    "reconcile",
    "record_outcomes",
    "record_self_check",
    "register_worker",
    "release_dead_workers",
    "release_shard",
    "renew_lease",
    "rescore_run",
    "stop_worker",
    "store_vocabulary",
    "use_token",
]
