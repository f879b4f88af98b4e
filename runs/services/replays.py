"""Replays: asked for, claimed by one statement, recorded variant by variant behind the attempt's fence, ended.

A replay is claimed before any shard, because a person waits for it, and it changes nothing of its run.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from evalboard.core import replay as replays
from evalboard.core.errors import Conflict, InvalidInput, NotFound, ProfileRefused
from evalboard.core.profile import DTYPES, MAX_GROUP_SIZE
from runs.models import Case, Replay, Run, Worker
from runs.services import claims
from runs.services.leases import Beat, lease_span
from runs.services.runs import refuse_if_nobody_can
from runs.services.storable import storable

MAX_VARIANTS = 32  # each may be a start of the engine, and a worker does nothing else meanwhile

CLAIM = """
UPDATE runs_replay
   SET status = 'running', owner_id = %(worker)s, attempt = attempt + 1,
       lease_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
 WHERE id = (
       SELECT replay.id
         FROM runs_replay replay
         JOIN runs_run run ON run.id = replay.run_id
         JOIN runs_endpoint endpoint ON endpoint.id = run.endpoint_id
        WHERE replay.status = 'queued' AND replay.next_at <= clock_timestamp()
          AND endpoint.pool = %(pool)s AND NOT run.id = ANY(%(left_alone)s)
        ORDER BY replay.id
        LIMIT 1
          FOR UPDATE OF replay SKIP LOCKED)
RETURNING id, attempt, run_id
"""
REPLAYS = claims.Claims(Replay, pool="run__endpoint__pool")


@dataclass(frozen=True, slots=True)
class ReplayLease:
    """The right to work on a replay: it holds as long as no other attempt took it."""

    replay_id: int
    attempt: int
    worker_id: int
    run_id: int

    @property
    def key(self) -> int:
        return self.replay_id

    def __str__(self) -> str:
        return f"replay {self.replay_id}"


def create_replay(
    *,
    run_id: int,
    case_id: str,
    repeat: int = 1,
    batch_sizes: Sequence[int] = (),
    dtypes: Sequence[str] = (),
    neighbours: int = 1,
    user: Any = None,
) -> Replay:
    """Ask for one case of a run to be decoded again; a worker of the endpoint's pool finds the row.

    repeat: of the run, whose response the answers are held against; where it has none, that is said.
    batch_sizes, dtypes: each of one with each of the other; none: as the run decoded it.
    neighbours: so many different choices of the cases that fill a batch, at each size.
    Raises NotFound for a run or case that is not there, InvalidInput with fields, Conflict for a run that was read
    from a log, and ProfileRefused when every worker seen lately says that its hardware cannot honour the run's profile.
    """
    run = Run.objects.select_related("suite_version", "endpoint", "profile").filter(pk=run_id).first()
    if run is None:
        raise NotFound(f"There is no run {run_id}.")
    if run.source_id is not None:
        raise Conflict(f"Run {run_id} was read from a log, and nothing here decodes it; replay a run made here.")
    case = Case.objects.filter(suite_version=run.suite_version_id, case_id=case_id).first()
    if case is None:
        raise NotFound(f"The suite of run {run_id} has no case {case_id}.")
    held_against = run.repeats.filter(index=repeat).first()
    sizes, n_cases = sorted(set(batch_sizes)), run.suite_version.n_cases
    fields = _problems(sizes, dtypes, neighbours, n_cases=n_cases)
    if held_against is None:
        fields["repeat"] = f"Run {run_id} has the repeats 1 to {run.repeats.count()}."
    variants = [] if fields else _variants(sizes, dtypes, neighbours, n_cases=n_cases)
    if len(variants) > MAX_VARIANTS:
        fields["variants"] = f"These are {len(variants)} variants of the case; at most {MAX_VARIANTS} at a time."
    if fields or held_against is None:
        raise InvalidInput("The replay is not valid.", fields=fields)
    refuse_if_nobody_can(run.endpoint, run.profile)
    with transaction.atomic():
        replay = Replay.objects.create(
            run=run, repeat=held_against, case_index=case.index, variants=variants, created_by=user
        )
        claims.ring_after_commit(run.endpoint.pool)
    return replay


def claim_replay(*, worker: Worker, left_alone: frozenset[int] = frozenset()) -> ReplayLease | None:
    """Claim the oldest claimable replay of the worker's pool, or None. `left_alone` are runs it cannot serve."""
    row = claims.claim(CLAIM, worker=worker, left_alone=sorted(left_alone))
    return None if row is None else ReplayLease(row[0], row[1], worker.pk, row[2])


def renew_replay(*, lease: ReplayLease) -> Beat:
    """Extend a lease that is still held. A replay is not cancelled: with its run it is deleted, and then not held."""
    return REPLAYS.renew(lease)


def record_result(*, lease: ReplayLease, result: Mapping[str, Any]) -> None:
    """Store what one variant gave, after those before it; that renews the lease. Raises LeaseLost."""
    with transaction.atomic():
        replay = REPLAYS.fenced(lease)
        replay.results = [*replay.results, _storable(result)]
        replay.lease_until = Now() + lease_span()
        replay.save(update_fields=["results", "lease_until"])


def finish_replay(*, lease: ReplayLease) -> None:
    """End a replay whose variants have all been tried; one without any answer has failed. Raises LeaseLost."""
    with transaction.atomic():
        replay = REPLAYS.fenced(lease)
        errors = [result["error"]["detail"] for result in replay.results if result["error"]]
        has_answer = len(errors) < len(replay.results)
        replay.status = Replay.Status.FINISHED if has_answer else Replay.Status.FAILED
        replay.error = "" if has_answer else errors[0] if errors else "No variant was decoded."
        replay.lease_until, replay.finished_at = None, Now()
        replay.save(update_fields=["status", "error", "lease_until", "finished_at"])


def refuse_replay(*, lease: ReplayLease, reason: str) -> None:
    """Leave a replay to others, because this worker cannot honour the profile; where nobody can, it has failed."""
    run = Run.objects.select_related("endpoint", "profile").get(pk=lease.run_id)
    try:
        refuse_if_nobody_can(run.endpoint, run.profile)
    except ProfileRefused as refused:
        REPLAYS.fail(REPLAYS.held(lease), refused.detail)
    else:
        release_replay(lease=lease, reason=reason, may_fail=False)


def release_replay(*, lease: ReplayLease, reason: str, may_fail: bool) -> None:
    """Give a replay back to the queue with the results it has; nothing where the lease is lost.

    may_fail: the attempt ended badly; after `claims.MOST_ATTEMPTS` the replay has failed.
    """
    REPLAYS.let_go(REPLAYS.held(lease), reason, may_fail=may_fail)


def take_back_expired() -> bool:
    """Take back the replays whose lease has ended by the database's clock; whether there were any."""
    return REPLAYS.let_go(REPLAYS.expired(), claims.SILENT, may_fail=True) > 0


def take_back_from(worker_ids: Collection[int]) -> bool:
    """Take back the replays of workers whose process is gone; whether there were any."""
    return REPLAYS.let_go(REPLAYS.owned_by(worker_ids), claims.GONE, may_fail=True) > 0


def _problems(sizes: Sequence[int], dtypes: Sequence[str], n_choices: int, *, n_cases: int) -> dict[str, str]:
    fields = {}
    if any(not 1 <= size <= MAX_GROUP_SIZE for size in sizes):
        fields["batch_sizes"] = f"Must be whole numbers from 1 to {MAX_GROUP_SIZE}."
    if any(dtype not in DTYPES for dtype in dtypes):
        fields["dtypes"] = f"Must be among {', '.join(DTYPES)}."
    if not 1 <= n_choices <= MAX_VARIANTS:
        fields["neighbours"] = f"Must be a whole number from 1 to {MAX_VARIANTS}."
    elif n_choices > 1 and max(sizes, default=1) < 2:
        fields["neighbours"] = "Only a batch has neighbours: give a batch size of at least 2."
    elif "batch_sizes" not in fields and (
        few := [size for size in sizes if replays.shifts(n_choices=n_choices, n_cases=n_cases, batch_size=size) is None]
    ):
        fields["neighbours"] = (
            f"The suite’s {n_cases} cases are too few for {n_choices} choices at batch size {few[0]}."
        )
    return fields


def _variants(sizes: Sequence[int], dtypes: Sequence[str], n_choices: int, *, n_cases: int) -> list[dict[str, Any]]:
    """By dtype, then batch size, then choice of neighbours: what is held against each other stands together."""
    variants: list[dict[str, Any]] = []
    for dtype, size in product(dict.fromkeys(dtypes) or (None,), sizes or (None,)):
        named: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
        if size is None:
            variants.append(named)
            continue
        shifts = replays.shifts(n_choices=n_choices, n_cases=n_cases, batch_size=size) or [0]
        variants += [named | {"batch_size": size} | ({"neighbours": shift} if shift else {}) for shift in shifts]
    return variants


def _storable(result: Mapping[str, Any]) -> dict[str, Any]:
    error = result["error"]
    return {**result, "error": error and {**error, "detail": storable(error["detail"])}}
