"""Workers, their nodes' self-tests and their pools, as the workers page shows them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import BooleanField, Case, Count, ExpressionWrapper, F, Q, Value, When
from django.db.models.functions import Now

from evalboard.contract import stack as contract
from evalboard.contract.parts import FingerprintNamed, Seats
from evalboard.contract.run import experiment_of
from evalboard.core.profile import list_operation_findings, read_seats
from evalboard.wording.run import leaves_alone
from runs.models import EngineProcess, SelfTestRecord, Shard, WorkerRecord
from runs.store import imported
from runs.work.read_certificates import certificates_of

STOPPED_SHOWN = 20
SERVING = ("working", "idle")
WORKER_ORDERS = {"state": "urgency", "name": "name", "seen_at": "seen_at"}


def worker_rows() -> tuple[contract.Worker, ...]:
    """Read workers, those seen last first; of the stopped ones only the newest."""
    lease = timedelta(seconds=settings.LEASE_SECONDS)
    workers = (
        WorkerRecord.objects.exclude(name=imported.WORKER, pool=imported.POOL)
        .select_related("self_test")
        .annotate(
            now=Now(),
            is_silent=ExpressionWrapper(Q(seen_at__lt=Now() - lease), output_field=BooleanField()),
            is_resting=Case(When(rests_until__gt=Now(), then=Value(True)), default=Value(False)),
        )
        .order_by("-seen_at", "-id")
    )
    living = list(workers.filter(stopped_at=None))
    stopped = list(workers.exclude(stopped_at=None)[:STOPPED_SHOWN])
    shards = Shard.objects.filter(status=Shard.Status.RUNNING, owner__in=living).select_related("repeat__run")
    current = {shard.owner_id: shard for shard in shards.order_by("-id")}
    processes = _running_processes(living)
    certificates = certificates_of(living)
    rows = sorted([*living, *stopped], key=lambda worker: worker.seen_at, reverse=True)
    return tuple(
        _row(worker, current.get(worker.pk), processes.get(worker.pk), certificates.get(worker.pk, ()))
        for worker in rows
    )


def run_left_alone(worker: WorkerRecord) -> contract.RunLeftAlone | None:
    """Return the run that a worker leaves to others; None where it leaves none, or a probe."""
    left = worker.left_alone
    if left is None or left["noun"] != "run":
        return None
    return contract.RunLeftAlone(run=str(left["id"]), why=left["why"])


def _running_processes(living: Sequence[WorkerRecord]) -> dict[int, EngineProcess]:
    """By worker, the newest engine process that it has not closed."""
    related = ("bucket__model", "bucket__fingerprint")
    processes = EngineProcess.objects.filter(worker__in=living, stopped_at=None).select_related(*related)
    slim = processes.defer("manifest", "pins", "self_checks", "bucket__model__files", "bucket__fingerprint__manifest")
    return {process.worker_id: process for process in slim.annotate(engine=F("manifest__engine")).order_by("id")}


def _row(
    worker: Any, shard: Shard | None, process: Any, certificates: tuple[contract.Certificate, ...]
) -> contract.Worker:
    return contract.Worker.from_record(
        worker,
        id=str(worker.pk),
        state=_state(worker, shard),
        fingerprint=process.bucket.fingerprint.digest if process else None,
        seats=_seats(process) if process else None,
        shard=_shard(shard) if shard else None,
        note=worker.note if worker.left_alone is None else leaves_alone(worker.left_alone),
        rests_until=worker.rests_until if worker.is_resting else None,
        self_test=_self_test(worker.self_test),
        certificates=certificates,
        process=_process(process) if process else None,
        left_alone=run_left_alone(worker),
        seen_seconds=max((worker.now - worker.seen_at).total_seconds(), 0.0),
    )


def _seats(process: Any) -> Seats | None:
    seats = read_seats({"engine": process.engine})
    return None if seats is None else Seats(asked=seats.wanted, got=seats.got)


def _shard(shard: Shard) -> contract.ShardHeld:
    return contract.ShardHeld.from_record(
        shard,
        run=str(shard.repeat.run_id),
        repeat=shard.repeat.index,
        experiment=experiment_of(shard.repeat.run.labels),
    )


def _process(process: EngineProcess) -> contract.ProcessOfWorker:
    bucket = process.bucket
    fingerprint = bucket.fingerprint
    return contract.ProcessOfWorker(
        id=str(process.pk),
        bucket=str(bucket.pk),
        model=bucket.model.name,
        fingerprint=FingerprintNamed(id=str(fingerprint.pk), digest=fingerprint.digest, label=fingerprint.label),
        batch_class=bucket.batch_class,
        started_at=process.started_at,
    )


def _state(worker: Any, shard: Shard | None) -> str:
    if worker.stopped_at is not None:
        return "stopped"
    if worker.is_silent:
        return "silent"
    if shard:
        return "working"
    return "resting" if worker.is_resting else "idle"


def self_test_result(worker_id: int) -> dict[str, Any] | None:
    """Return the result of the newest self-test of the worker's node, None where it was not tested."""
    return SelfTestRecord.objects.filter(workers=worker_id).values_list("result", flat=True).first()


def _self_test(test: SelfTestRecord | None) -> contract.SelfTest | None:
    """Return a self-test; one that an older Evalboard made has no findings."""
    if test is None:
        return None
    return contract.SelfTest(
        id=str(test.pk),
        at=test.created_at,
        is_invariant=test.is_invariant,
        findings=list_operation_findings(test.result),
    )


@dataclass(frozen=True, slots=True)
class PoolRow:
    """One pool. `workers` have not stopped; those that need attention come first.

    `waiting_run_ids` are the open runs with queued shards, oldest first; `n_waiting` is how many shards.
    """

    name: str
    workers: tuple[contract.Worker, ...]
    n_waiting: int
    waiting_run_ids: tuple[int, ...]

    @property
    def n_serving(self) -> int:
        """Return the number of live workers that are not paused."""
        return sum(worker.state in SERVING for worker in self.workers)

    @property
    def is_deserted(self) -> bool:
        """Return whether work waits and no worker is available."""
        return self.n_waiting > 0 and self.n_serving == 0


def pool_rows(workers: Iterable[contract.Worker] | None = None) -> tuple[PoolRow, ...]:
    """Read pools that have workers or work, by name. `workers` are rows read before."""
    members: dict[str, list[contract.Worker]] = defaultdict(list)
    for worker in worker_rows() if workers is None else workers:
        if worker.state != "stopped":
            members[worker.pool].append(worker)
    runs: dict[str, dict[int, int]] = defaultdict(dict)
    queued = Shard.objects.filter(status=Shard.Status.QUEUED, repeat__run__is_cancel_wanted=False)
    by_run = queued.order_by("repeat__run").values_list("repeat__run__endpoint__pool", "repeat__run")
    for pool, run_id, n in by_run.annotate(n=Count("pk")):
        runs[pool][run_id] = n
    return tuple(
        PoolRow(
            name=name,
            workers=tuple(sorted(members[name], key=lambda worker: (worker.urgency, worker.name))),
            n_waiting=sum(runs[name].values()),
            waiting_run_ids=tuple(runs[name]),
        )
        for name in sorted({*members, *runs})
    )
