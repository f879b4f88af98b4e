"""Every state change, one keyword-only function each. Pages, API, commands and workers all call these."""

from runs.access import grant_role
from runs.services.baselines import set_baseline
from runs.services.case_outcomes import case_outcomes
from runs.services.comparisons import compare, work_on_comparison
from runs.services.endpoints import create_endpoint, create_profile, store_default_profiles
from runs.services.idempotency import create_run_once, forget_old_keys
from runs.services.imports import import_logs
from runs.services.leases import Beat, Lease, mark_in_flight, renew_lease
from runs.services.model_names import say_same_model, take_back_same_model
from runs.services.people import add_person, end_sessions, remove_person, use_link
from runs.services.policies import create_policy, store_default_policies
from runs.services.probes import (
    ProbeLease,
    claim_probe,
    create_probe,
    finish_probe,
    record_calls,
    refuse_probe,
    release_probe,
    renew_probe,
)
from runs.services.reconcile import reconcile, release_dead_workers
from runs.services.releases import create_release
from runs.services.replays import (
    ReplayLease,
    claim_replay,
    create_replay,
    finish_replay,
    record_result,
    refuse_replay,
    release_replay,
    renew_replay,
)
from runs.services.rescoring import rescore_run
from runs.services.responses import record_outcomes
from runs.services.rotations import note_rotation
from runs.services.runs import add_repeats, cancel_run, create_run, delete_run
from runs.services.self_tests import record_self_test
from runs.services.settling import settle_plan, settle_release
from runs.services.shards import bind_bucket, cancel_shard, claim_shard, fail_start, finish_shard, release_shard
from runs.services.sign_offs import sign_release
from runs.services.suites import push_suite, reference_suite
from runs.services.tokens import create_token, revoke_token, use_token
from runs.services.verdict_check import verdict_change
from runs.services.verdicts import decide_release
from runs.services.webhooks import create_webhook, delete_webhook, send_test, switch_on
from runs.services.workers import (
    beat,
    close_engine_process,
    count_engine_failure,
    count_fenced,
    forget_engine_failures,
    open_engine_process,
    others_work,
    record_self_check,
    register_worker,
    stop_worker,
    store_vocabulary,
)

__all__ = [
    "Beat",
    "Lease",
    "ProbeLease",
    "ReplayLease",
    "add_person",
    "add_repeats",
    "beat",
    "bind_bucket",
    "cancel_run",
    "cancel_shard",
    "case_outcomes",
    "claim_probe",
    "claim_replay",
    "claim_shard",
    "close_engine_process",
    "compare",
    "count_engine_failure",
    "count_fenced",
    "create_endpoint",
    "create_policy",
    "create_probe",
    "create_profile",
    "create_release",
    "create_replay",
    "create_run",
    "create_run_once",
    "create_token",
    "create_webhook",
    "decide_release",
    "delete_run",
    "delete_webhook",
    "end_sessions",
    "fail_start",
    "finish_probe",
    "finish_replay",
    "finish_shard",
    "forget_engine_failures",
    "forget_old_keys",
    "grant_role",
    "import_logs",
    "mark_in_flight",
    "note_rotation",
    "open_engine_process",
    "others_work",
    "push_suite",
    "reconcile",
    "record_calls",
    "record_outcomes",
    "record_result",
    "record_self_check",
    "record_self_test",
    "reference_suite",
    "refuse_probe",
    "refuse_replay",
    "register_worker",
    "release_dead_workers",
    "release_probe",
    "release_replay",
    "release_shard",
    "remove_person",
    "renew_lease",
    "renew_probe",
    "renew_replay",
    "rescore_run",
    "revoke_token",
    "say_same_model",
    "send_test",
    "set_baseline",
    "settle_plan",
    "settle_release",
    "sign_release",
    "stop_worker",
    "store_default_policies",
    "store_default_profiles",
    "store_vocabulary",
    "switch_on",
    "take_back_same_model",
    "use_link",
    "use_token",
    "verdict_change",
    "work_on_comparison",
]
