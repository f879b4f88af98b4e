"""`/metrics` for Prometheus: the installation's state out of the database, and this server's own requests.

docs/metrics.md describes each; a test keeps it so.
"""

import os
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from rest_framework.decorators import renderer_classes
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from runs import selectors
from runs.access import READ
from runs.api import query
from runs.api.access import resource
from runs.api.describe import TEXT, describe
from runs.middleware import REQUESTS


class Exposition(BaseRenderer):
    """Prometheus' text format, as it is."""

    media_type = "text/plain"
    format = "prometheus"

    def render(self, data: bytes, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return data


@resource(GET=READ)
@describe("GET", "Figures for Prometheus", name="metrics", answer={"text/plain": TEXT})
@renderer_classes([Exposition])
def metrics(request: Request) -> Response:
    query.read(request, is_paged=False)
    state = CollectorRegistry(auto_describe=False)
    state.register(_State(selectors.metrics()))
    body = generate_latest(state) + generate_latest(_requests())
    return Response(body, content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _requests() -> CollectorRegistry:
    """What this process answered, or where processes share a folder for it, what all of them did."""
    if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return REQUESTS
    shared = CollectorRegistry()
    MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
    return shared


class _State(Collector):
    def __init__(self, found: selectors.Metrics) -> None:
        self._found = found

    def collect(self) -> Iterator[Metric]:
        found = self._found
        yield _gauge("evalboard_runs", "Runs by status.", ["status"], {(name,): n for name, n in found.runs.items()})
        yield from self._pools()
        yield _gauge(
            "evalboard_workers", "Workers that have not stopped, by state.", ["pool", "state"], dict(found.workers)
        )
        yield GaugeMetricFamily(
            "evalboard_engine_processes", "Engine processes of living workers.", found.n_engine_processes
        )
        yield CounterMetricFamily(
            "evalboard_fenced_writes", "Writes refused because the attempt had lost its shard.", found.n_fenced
        )
        yield GaugeMetricFamily(
            "evalboard_self_check_failures",
            "Of the newest 1,000 engine processes, those whose self-check stopped giving the same bits.",
            found.n_self_check_failures,
        )
        yield _gauge(
            "evalboard_events_last_hour",
            "Lines of runs' histories in the last hour, among the newest 10,000.",
            ["level", "code"],
            dict(found.events),
        )
        if found.is_doorbell_heard is not None:
            yield GaugeMetricFamily("evalboard_doorbell_up", "1 while Redis answers.", int(found.is_doorbell_heard))
        yield GaugeMetricFamily(
            "evalboard_data_free_bytes", "Room on the disk of this server's data folder.", found.free_bytes
        )

    def _pools(self) -> Iterator[Metric]:
        pools = self._found.pools.items()
        shards = {(pool, "queued"): of.n_queued for pool, of in pools}
        shards |= {(pool, "running"): of.n_running for pool, of in pools}
        yield _gauge("evalboard_shards", "Shards that have not ended, by status.", ["pool", "status"], shards)
        yield _gauge(
            "evalboard_expired_leases",
            "Running shards whose lease has ended and that no sweep has taken back yet.",
            ["pool"],
            {(pool,): of.n_expired for pool, of in pools},
        )
        yield _gauge(
            "evalboard_cases_left",
            "Cases of those shards that have no outcome yet.",
            ["pool"],
            {(pool,): of.n_cases_left for pool, of in pools},
        )
        yield _gauge(
            "evalboard_oldest_claimable_seconds",
            "How long the shard that waits longest could have been claimed.",
            ["pool"],
            {(pool,): of.oldest_seconds for pool, of in pools},
        )


def _gauge(
    name: str, about: str, labels: list[str], values: dict[tuple[str], Any] | dict[tuple[str, str], Any]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, about, labels=labels)
    for of, value in sorted(values.items()):
        family.add_metric(of, value)
    return family
