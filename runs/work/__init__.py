"""Work and who does it: claims, requests, shards, responses, the end of repeats and runs, workers."""

from runs.work import dispatch, queue, requests, responses, rollup, workers
from runs.work.answered import Answered, CallOutcome
from runs.work.call_limits import CallLimits
from runs.work.claims import Beat, Lease, lease_end, lost
from runs.work.deserted import why_nobody
from runs.work.read import CaseToDecode, Serving, ShardWork, case_to_decode, serving_of, shard_work
from runs.work.read_certificates import NEEDS_CERTIFICATE, Served, find_certified, find_uncertified
from runs.work.read_queue import shards_ahead
from runs.work.read_workers import PoolRow, pool_rows, run_left_alone, self_test_result, worker_rows
from runs.work.replies import Reply, read_replies
from runs.work.requests import Requests
from runs.work.responses import record_outcomes
from runs.work.rests import (
    RESTS_BEFORE_GIVING_UP,
    end_rest,
    fail_refused,
    note_rest,
    rest_endpoint,
    wait_for_endpoint,
)
from runs.work.shards import (
    CRASHES_BEFORE_ISOLATION,
    SHARDS,
    bind_bucket,
    cancel_shard,
    claim_shard,
    fail_start,
    finish_shard,
    let_go,
    mark_in_flight,
    release_shard,
    renew_shard,
)
from runs.work.strays import look_through, work_on_strays
from runs.work.workers import (
    beat,
    close_engine_process,
    count_engine_failure,
    count_fenced,
    forget_engine_failures,
    leave_alone,
    open_engine_process,
    others_work,
    record_pace,
    record_self_check,
    record_self_test,
    refuse_if_nobody_can,
    register_worker,
    stop_worker,
    store_vocabulary,
)

__all__ = [
    "CRASHES_BEFORE_ISOLATION",
    "NEEDS_CERTIFICATE",
    "RESTS_BEFORE_GIVING_UP",
    "SHARDS",
    "Answered",
    "Beat",
    "CallLimits",
    "CallOutcome",
    "CaseToDecode",
    "Lease",
    "PoolRow",
    "Reply",
    "Requests",
    "Served",
    "Serving",
    "ShardWork",
    "beat",
    "bind_bucket",
    "cancel_shard",
    "case_to_decode",
    "claim_shard",
    "close_engine_process",
    "count_engine_failure",
    "count_fenced",
    "dispatch",
    "end_rest",
    "fail_refused",
    "fail_start",
    "find_certified",
    "find_uncertified",
    "finish_shard",
    "forget_engine_failures",
    "lease_end",
    "leave_alone",
    "let_go",
    "look_through",
    "lost",
    "mark_in_flight",
    "note_rest",
    "open_engine_process",
    "others_work",
    "pool_rows",
    "queue",
    "read_replies",
    "record_outcomes",
    "record_pace",
    "record_self_check",
    "record_self_test",
    "refuse_if_nobody_can",
    "register_worker",
    "release_shard",
    "renew_shard",
    "requests",
    "responses",
    "rest_endpoint",
    "rollup",
    "run_left_alone",
    "self_test_result",
    "serving_of",
    "shard_work",
    "shards_ahead",
    "stop_worker",
    "store_vocabulary",
    "wait_for_endpoint",
    "why_nobody",
    "work_on_strays",
    "worker_rows",
    "workers",
]
