"""Workers as the workers page shows them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import BooleanField, Case, ExpressionWrapper, F, Q, Value, When
from django.db.models.functions import Now

from evalboard.core import seats
from evalboard.core.seats import Seats
from runs import imported
from runs.models import EngineProcess, Shard, Worker
from runs.selectors.self_test import SelfTestFacts, self_test_facts

STOPPED_SHOWN = 20
LEFT_ALONE = re.compile(r"Leaves run (\d+) alone: (.*)", re.S)


@dataclass(frozen=True, slots=True)
class LeftAlone:
    """A run that a worker does not work on, and why."""

    run_id: int
    why: str


@dataclass(frozen=True, slots=True)
class RunningProcess:
    """The engine process that a worker keeps warm."""

    id: int
    bucket_id: int
    model_name: str
    fingerprint_id: int
    fingerprint_digest: str
    fingerprint_label: str
    batch_class: str
    seats: Seats | None
    started_at: datetime


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """`state` is `working`, `idle`, `resting` (degraded), `silent` (no heartbeat for a lease) or `stopped`.

    `seen_seconds` is how long ago it was seen, by the database's clock. `note` is its own words, those of
    `left_alone` among them.
    """

    id: int
    name: str
    host: str
    pool: str
    state: str
    hardware: dict[str, Any]
    versions: dict[str, Any]
    process: RunningProcess | None
    run_id: int | None
    repeat: int | None
    shard_first: int | None
    shard_last: int | None
    shard_attempt: int | None
    n_done: int | None
    note: str
    left_alone: LeftAlone | None
    rests_until: datetime | None
    n_engine_failures: int
    n_fenced: int
    self_test: SelfTestFacts | None
    seen_at: datetime
    seen_seconds: float
    started_at: datetime

    @property
    def fingerprint_digest(self) -> str:
        return self.process.fingerprint_digest if self.process else ""

    @property
    def n_cases(self) -> int:
        """Of its shard; 0 where it has none."""
        return 0 if self.shard_first is None or self.shard_last is None else self.shard_last - self.shard_first + 1

    @property
    def hardware_label(self) -> str:
        """What it decodes on, in one line: "AMD EPYC · AVX512 · 2 cores"."""
        gpus = [gpu["name"] for gpu in self.hardware.get("gpus", [])]
        n_cores = self.hardware.get("n_cores")
        cores = f"{n_cores} core{'' if n_cores == 1 else 's'}" if n_cores else None
        parts = gpus or [self.hardware.get("cpu_model"), self.hardware.get("cpu_isa")]
        return " · ".join(str(part) for part in [*parts, cores] if part)

    @property
    def engine_label(self) -> str:
        """The versions that people ask for first: "vLLM 0.32.0 · torch 2.13.0"."""
        known = {"vLLM": "vllm", "torch": "torch", "CUDA": "cuda"}
        return " · ".join(f"{name} {self.versions[key]}" for name, key in known.items() if self.versions.get(key))


def worker_rows() -> tuple[WorkerRow, ...]:
    """Workers, those seen last first; of the stopped ones only the newest."""
    lease = timedelta(seconds=settings.LEASE_SECONDS)
    workers = (
        Worker.objects.exclude(name=imported.WORKER, pool=imported.POOL)
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
    shards = Shard.objects.filter(status=Shard.Status.RUNNING, owner__in=living).select_related("repeat")
    current = {shard.owner_id: shard for shard in shards.order_by("-id")}
    processes = _running_processes(living)
    found = sorted([*living, *stopped], key=lambda worker: worker.seen_at, reverse=True)
    return tuple(_row(worker, current.get(worker.pk), processes.get(worker.pk)) for worker in found)


def left_alone(note: str) -> LeftAlone | None:
    """What a worker's note says of a run that it leaves alone."""
    said = LEFT_ALONE.fullmatch(note)
    return LeftAlone(run_id=int(said[1]), why=said[2]) if said else None


def _running_processes(living: Sequence[Worker]) -> dict[int, RunningProcess]:
    """By worker, the newest engine process that it has not closed."""
    related = ("bucket__model", "bucket__fingerprint")
    processes = EngineProcess.objects.filter(worker__in=living, stopped_at=None).select_related(*related)
    slim = processes.defer("manifest", "pins", "self_checks", "bucket__model__files", "bucket__fingerprint__manifest")
    return {
        process.worker_id: RunningProcess(
            id=process.pk,
            bucket_id=process.bucket_id,
            model_name=process.bucket.model.name,
            fingerprint_id=process.bucket.fingerprint_id,
            fingerprint_digest=process.bucket.fingerprint.digest,
            fingerprint_label=process.bucket.fingerprint.label,
            batch_class=process.bucket.batch_class,
            seats=seats.of({"engine": process.engine}),
            started_at=process.started_at,
        )
        for process in slim.annotate(engine=F("manifest__engine")).order_by("id")
    }


def _row(worker: Any, shard: Shard | None, process: RunningProcess | None) -> WorkerRow:
    return WorkerRow(
        id=worker.pk,
        name=worker.name,
        host=worker.host,
        pool=worker.pool,
        state=_state(worker, shard),
        hardware=worker.hardware,
        versions=worker.versions,
        process=process,
        run_id=shard.repeat.run_id if shard else None,
        repeat=shard.repeat.index if shard else None,
        shard_first=shard.first if shard else None,
        shard_last=shard.last if shard else None,
        shard_attempt=shard.attempt if shard else None,
        n_done=shard.n_done if shard else None,
        note=worker.note,
        left_alone=left_alone(worker.note),
        rests_until=worker.rests_until if worker.is_resting else None,
        n_engine_failures=worker.n_engine_failures,
        n_fenced=worker.n_fenced,
        self_test=self_test_facts(worker.self_test),
        seen_at=worker.seen_at,
        seen_seconds=max((worker.now - worker.seen_at).total_seconds(), 0.0),
        started_at=worker.started_at,
    )


def _state(worker: Any, shard: Shard | None) -> str:
    if worker.stopped_at is not None:
        return "stopped"
    if worker.is_silent:
        return "silent"
    if shard:
        return "working"
    return "resting" if worker.is_resting else "idle"
