"""Read nodes' determinism certificates: the newest probes' results, and whether they are still valid.

A certificate is for one host, model, fingerprint and batch class. Another driver, engine or model is another bucket,
which it does not cover.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from evalboard.contract.probe_kinds import ProbeKind
from evalboard.contract.stack import Certificate
from evalboard.core.profile import digest_node
from runs.models import BucketRecord, EngineProcess, ProbeRecord, RunRecord, WorkerRecord

NEEDS_CERTIFICATE = "invariant"  # the batch class that promises what only a certificate shows
MAX_PROBES = 500  # the newest, of all endpoints

Served = tuple[str, int]  # a host, and the id of the bucket that it served


def certificates_of(workers: Iterable[WorkerRecord]) -> dict[int, tuple[Certificate, ...]]:
    """Return the newest certificate per endpoint and profile by worker, newest first."""
    workers = tuple(workers)
    rows = list(_rows({worker.host for worker in workers}))
    models = _newest_models(rows)
    buckets = BucketRecord.objects.select_related("model").in_bulk({row["bucket"] for _, row in rows})
    by_worker: dict[int, tuple[Certificate, ...]] = {}
    for worker in workers:
        node = digest_node(worker.hardware, worker.versions)
        newest: dict[tuple[int, int], Certificate] = {}
        for probe, row in rows:
            place = probe.endpoint_id, probe.profile_id
            if row["host"] != worker.host or place in newest or row["bucket"] not in buckets:
                continue
            model = buckets[row["bucket"]].model
            is_node = row["node_digest"] == node
            is_same = is_node and models.get(probe.endpoint_id, model.pk) == model.pk
            newest[place] = _certificate(probe, row, model.name, is_same=is_same, is_node=is_node)
        by_worker[worker.pk] = tuple(newest.values())
    return by_worker


def find_uncertified(processes: Iterable[EngineProcess]) -> tuple[str, ...]:
    """Return the hosts of `invariant` processes without a valid certificate, by name.

    Asks the database only where there is such a process.
    """
    served = {(each.worker.host, each.bucket_id) for each in processes if each.bucket.batch_class == NEEDS_CERTIFICATE}
    return tuple(sorted({host for host, _ in served - find_certified(served)}))


def find_certified(served: Collection[Served]) -> frozenset[Served]:
    """Return those (host, bucket id) with a valid certificate that no newer probe revoked."""
    if not served:
        return frozenset()
    newest: dict[Served, bool] = {}
    for _, row in _rows({host for host, _ in served}):
        newest.setdefault((row["host"], row["bucket"]), row["is_certified"])
    return frozenset(place for place in served if newest.get(place))


def _rows(hosts: Collection[str]) -> Iterator[tuple[ProbeRecord, dict[str, Any]]]:
    """Yield each worker on these hosts in finished determinism probes, newest probe first."""
    ended = ProbeRecord.objects.filter(kind=ProbeKind.DETERMINISM, status=ProbeRecord.Status.FINISHED)
    for probe in ended.select_related("endpoint", "profile").defer("answers").order_by("-pk")[:MAX_PROBES]:
        for row in (probe.finding or {})["numbers"].get("workers", ()):
            if row["host"] in hosts and (row["is_certified"] or row["n_bits_moved"]):
                yield probe, row


def _newest_models(rows: Iterable[tuple[ProbeRecord, Any]]) -> dict[int, int]:
    """Return by endpoint the model that its newest run was bound to."""
    endpoints = {probe.endpoint_id for probe, _ in rows}
    runs = RunRecord.objects.filter(endpoint__in=endpoints, bucket__isnull=False).order_by("endpoint", "-pk")
    return dict(runs.distinct("endpoint").values_list("endpoint", "bucket__model"))


def _certificate(probe: ProbeRecord, row: Any, model: str, *, is_same: bool, is_node: bool) -> Certificate:
    """Return a certificate. is_same: hardware, versions and model are unchanged; is_node: the first two."""
    numbers = (probe.finding or {})["numbers"]
    state = "failed" if not row["is_certified"] else "valid" if is_same else "expired"
    why = None if state != "expired" else "model" if is_node else "node"
    return Certificate(
        probe=str(probe.pk),
        endpoint=probe.endpoint.slug,
        profile=probe.profile.slug,
        model=model,
        fingerprint=row["fingerprint"],
        state=state,
        expired_by=why,
        seats=row["seats_reached"],
        ruled_out=numbers["certificate"] if state != "failed" else None,
        at=probe.finished_at or probe.created_at,
    )
