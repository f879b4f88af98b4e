"""Pools: the workers of each, and what waits for them."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count

from runs.models import Shard
from runs.selectors.worker import WorkerRow, worker_rows

SERVING = ("working", "idle")
FIRST = ("silent", "resting", "working", "idle")


@dataclass(frozen=True, slots=True)
class PoolRow:
    """One pool. `workers` are those that have not stopped, the ones that need somebody first.

    `waiting_run_ids` are the open runs with shards in the queue, oldest first; `n_waiting` is how many shards.
    """

    name: str
    workers: tuple[WorkerRow, ...]
    n_waiting: int
    waiting_run_ids: tuple[int, ...]

    @property
    def n_serving(self) -> int:
        """Workers that are heard of and do not rest."""
        return sum(worker.state in SERVING for worker in self.workers)

    @property
    def is_deserted(self) -> bool:
        """Work waits and nobody is there to do it."""
        return self.n_waiting > 0 and self.n_serving == 0


def pool_rows(workers: Iterable[WorkerRow] | None = None) -> tuple[PoolRow, ...]:
    """Pools that have workers or work, by name. `workers` are rows read before."""
    members: dict[str, list[WorkerRow]] = defaultdict(list)
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
            workers=tuple(sorted(members[name], key=lambda worker: (FIRST.index(worker.state), worker.name))),
            n_waiting=sum(runs[name].values()),
            waiting_run_ids=tuple(runs[name]),
        )
        for name in sorted({*members, *runs})
    )
