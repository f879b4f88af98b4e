"""Workers as the workers page shows them."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import BooleanField, ExpressionWrapper, OuterRef, Q, Subquery
from django.db.models.functions import Now

from runs.models import EngineProcess, Shard, Worker

STOPPED_SHOWN = 20


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """`state` is `working`, `idle`, `silent` (no heartbeat for a lease) or `stopped`."""

    id: int
    name: str
    host: str
    pool: str
    state: str
    hardware: dict[str, Any]
    versions: dict[str, Any]
    fingerprint_digest: str
    run_id: int | None
    repeat: int | None
    shard_first: int | None
    shard_last: int | None
    note: str
    seen_at: datetime
    started_at: datetime

    @property
    def hardware_label(self) -> str:
        """What it decodes on, in one line: "AMD EPYC · AVX512 · 2 cores"."""
        gpus = [gpu["name"] for gpu in self.hardware.get("gpus", [])]
        cores = self.hardware.get("n_cores")
        parts = gpus or [self.hardware.get("cpu_model"), self.hardware.get("cpu_isa")]
        return " · ".join(str(part) for part in [*parts, f"{cores} cores" if cores else None] if part)

    @property
    def engine_label(self) -> str:
        """The versions that people ask for first: "vLLM 0.32.0 · torch 2.13.0"."""
        known = {"vLLM": "vllm", "torch": "torch", "CUDA": "cuda"}
        return " · ".join(f"{name} {self.versions[key]}" for name, key in known.items() if self.versions.get(key))


def worker_rows() -> tuple[WorkerRow, ...]:
    """Workers, those seen last first; of the stopped ones only the newest."""
    lease = timedelta(seconds=settings.LEASE_SECONDS)
    workers = Worker.objects.annotate(
        is_silent=ExpressionWrapper(Q(seen_at__lt=Now() - lease), output_field=BooleanField()),
        fingerprint_digest=Subquery(
            EngineProcess.objects.filter(worker=OuterRef("pk"), stopped_at=None)
            .order_by("-id")
            .values("bucket__fingerprint__digest")[:1]
        ),
    ).order_by("-seen_at", "-id")
    living = list(workers.filter(stopped_at=None))
    stopped = list(workers.exclude(stopped_at=None)[:STOPPED_SHOWN])
    shards = Shard.objects.filter(status=Shard.Status.RUNNING, owner__in=living).select_related("repeat")
    current = {shard.owner_id: shard for shard in shards.order_by("-id")}
    found = sorted([*living, *stopped], key=lambda worker: worker.seen_at, reverse=True)
    return tuple(_row(worker, current.get(worker.pk)) for worker in found)


def _row(worker: Any, shard: Shard | None) -> WorkerRow:
    return WorkerRow(
        id=worker.pk,
        name=worker.name,
        host=worker.host,
        pool=worker.pool,
        state=_state(worker, shard),
        hardware=worker.hardware,
        versions=worker.versions,
        fingerprint_digest=worker.fingerprint_digest or "",
        run_id=shard.repeat.run_id if shard else None,
        repeat=shard.repeat.index if shard else None,
        shard_first=shard.first if shard else None,
        shard_last=shard.last if shard else None,
        note=worker.note,
        seen_at=worker.seen_at,
        started_at=worker.started_at,
    )


def _state(worker: Any, shard: Shard | None) -> str:
    if worker.stopped_at is not None:
        return "stopped"
    if worker.is_silent:
        return "silent"
    return "working" if shard else "idle"
