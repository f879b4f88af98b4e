"""Rows for the pages: a suite with hostile words in it, a worker, an engine, and runs in every state.

Everything goes through the services, as a worker would, so that a page never sees what could not be.
"""

from collections.abc import Callable
from typing import Any

from django.db.models.functions import Now

from evalboard.core.digest import short_digest
from evalboard.core.profile import DEFAULT_PROFILES
from evalboard.core.trace import Decoded, Failed, Outcome, Timings, make_trace, pack_vocabulary
from runs.catalogue import create_endpoint, create_profile
from runs.models import EngineProcess, RunRecord, Shard, WorkerRecord
from runs.run import cancel_run, create_run
from runs.suites import push_suite
from runs.work import (
    Lease,
    bind_bucket,
    cancel_shard,
    claim_shard,
    fail_start,
    finish_shard,
    open_engine_process,
    record_outcomes,
    record_self_check,
    register_worker,
    store_vocabulary,
)
from tests import outcomes

HOSTILE = "<script>alert(1)</script>\u202egnp.exe\x07"
HOSTILE_ID = "a/b c?#%<i>"
WORDS = ["", "blue", " sky", "\n", "Blue", " is", " a", " colour", HOSTILE, ".", " red", "green"]
END = 0
SLUG = "colours"


def stage(*, model_root: Any, n_cases: int = 30) -> None:
    """A suite, an endpoint and a profile to run it with."""
    cases: list[dict[str, Any]] = [
        {"id": f"case-{n:03}", "prompt": f"Which colour is number {n}?", "target": "blue", "tags": ["plain"]}
        for n in range(n_cases)
    ]
    cases[1] = {"id": HOSTILE_ID, "prompt": HOSTILE, "target": "blue", "tags": ["<b>", "hostile"]}
    scorer = {"kind": "exact"}
    document = {"slug": SLUG, "title": "Colours <em>", "max_tokens": 24, "scorer": scorer, "cases": cases}
    push_suite(document=document)
    create_endpoint(slug="local", model_path=str(model_root / "paint-1b"), dtype="float32", line="paint")
    create_profile(slug="pinned", title="Pinned", settings=DEFAULT_PROFILES["pinned"]["settings"])


def start(**changes: Any) -> RunRecord:
    asked: dict[str, Any] = {"suite": SLUG, "endpoint": "local", "profile": "pinned", "repeats": 2}
    return create_run(**{**asked, **changes})


def worker(name: str = "runner-1") -> WorkerRecord:
    return register_worker(
        name=name, host="node-1", pid=1, pool="default", hardware={"kind": "cpu"}, versions={"vllm": "0.32.0"}
    )


def engine(by: WorkerRecord, *, max_num_seqs: int = 1, batch_class: str = "alone", **changes: Any) -> EngineProcess:
    """An engine process with a vocabulary; a pin is broken where `max_num_seqs` is not 1."""
    process = open_engine_process(
        worker=by,
        manifest=outcomes.manifest(max_num_seqs=max_num_seqs, **changes),
        wanted_pins={"max_num_seqs": 1},
        batch_class=batch_class,
        line="paint",
        model_name="paint-1b",
        start_seconds=4.5,
    )
    data = pack_vocabulary([word.encode() for word in WORDS], end_ids=[END])
    store_vocabulary(process=process, digest="b" * 64, n_tokens=len(WORDS), data=data)
    record_self_check(process=process, digest="same")
    return process


def reply(case_index: int, *ids: int, margin: float = 2.0) -> Decoded:
    """A response of these tokens (and the end), the third position with the margin that is asked for."""
    chosen = [*ids, END]
    margins = [margin if position == 2 else 2.0 for position in range(len(chosen))]
    alternatives = [[(token, -0.25), (11, -0.25 - gap)] for token, gap in zip(chosen, margins, strict=True)]
    return Decoded(
        case_index=case_index,
        text="".join(WORDS[token] for token in ids),
        finish_reason="stop",
        trace=make_trace(chosen, [-0.25] * len(chosen), alternatives, [1, 2, 3]),
        n_prompt_tokens=3,
        prompt_digest=short_digest(b"prompt"),
        seed_sent=42,
        request_id=f"request-{case_index}",
        n_cached_tokens=0,
        n_preemptions=0,
        batch_min=1,
        batch_max=1,
        timings=Timings(0.01, 0.02, 0.5),
    )


def answers(repeat: int, case: int) -> Outcome:
    """Mostly right; case 1 is hostile, case 2 unstable, every fifth wrong and wordy with a near tie."""
    if case == 1:
        return reply(case, 8, 3, 8)
    if case == 2 and repeat == 2:
        return reply(case, 4)
    if case % 5 == 4:
        return reply(case, 1, 2, 5, 6, 7, 9, 3, 10, margin=0.0)
    return reply(case, 1)


def some_missing(repeat: int, case: int) -> Outcome:
    return Failed(case, "timeout", f"No answer within 600 s. {HOSTILE}") if case == 3 else answers(repeat, case)


def serve(
    by: WorkerRecord,
    process: EngineProcess,
    *,
    answer: Callable[[int, int], Outcome] = answers,
    n_shards: int | None = None,
) -> None:
    """Work queued shards to their end, all of them or `n_shards`."""
    done = 0
    while done != n_shards and (lease := claim(by, process)):
        record(lease, process, answer=answer)
        finish_shard(lease=lease)
        done += 1


def claim(by: WorkerRecord, process: EngineProcess) -> Lease | None:
    lease = claim_shard(worker=by)
    if lease is not None:
        run = RunRecord.objects.get(repeats__shards=lease.id)
        bind_bucket(run_id=run.pk, bucket=process.bucket)
    return lease


def record(
    lease: Lease,
    process: EngineProcess,
    *,
    answer: Callable[[int, int], Outcome] = answers,
    n_cases: int | None = None,
) -> None:
    """Answer the cases of a claimed shard, all of them or its first `n_cases`."""
    shard = Shard.objects.select_related("repeat").get(pk=lease.id)
    cases = range(shard.first, shard.last + 1)[:n_cases]
    outcomes = [answer(shard.repeat.index, case) for case in cases]  # together, as a worker sends what it has
    record_outcomes(lease=lease, process=process, outcomes=outcomes)


STATES = ("queued", "running", "finished", "incomplete", "failed", "cancelled")


def run_in(state: str) -> RunRecord:
    """A run in a state, with the worker and engine that brought it there."""
    run = start()
    if state == "queued":
        return run
    by = worker(f"runner-of-{run.pk}")
    if state == "failed":
        for _ in range(9):
            lease = claim_shard(worker=by)
            if lease is None:
                break
            fail_start(lease=lease, reason=f"CUDA out of memory {HOSTILE}")
            Shard.objects.filter(repeat__run=run).update(next_at=Now())  # the pause is over
        run.refresh_from_db()
        return run
    process = engine(by)
    if state in ("finished", "incomplete"):
        serve(by, process, answer=some_missing if state == "incomplete" else answers)
    else:
        serve(by, process, n_shards=1)
        lease = claim(by, process)
        assert lease is not None
        record(lease, process, n_cases=5)
        if state == "cancelled":
            cancel_run(run_id=run.pk)
            cancel_shard(lease=lease)
    run.refresh_from_db()
    return run
