"""Whether the server is alive, and whether it can take work. Neither needs a login nor looks at one."""

import os
from collections.abc import Iterator
from typing import Any

from django.http import HttpResponseBase
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from rest_framework.decorators import renderer_classes
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from evalboard.contract.base import Note
from evalboard.contract.health import Health, Readiness
from runs.access import READ
from runs.api import problems, query, wire
from runs.api.describe import TEXT, describe
from runs.api.resource import open_to_anyone, resource
from runs.health import read_metrics
from runs.health.middleware import REQUESTS
from runs.health.read import doorbell_problem, what_is_missing
from runs.health.read_metrics import Metrics


@open_to_anyone("GET")
@describe("GET", "Whether the server is alive; asks nothing of the database", name="health", answer=Health)
def health(request: Request) -> Response:
    query.read(request, is_paged=False)
    return wire.answer(Health(status="alive"), request)


@open_to_anyone("GET")
@describe("GET", "Whether it can take work", name="ready", answer=Readiness, refuses=[503])
def ready(request: Request) -> HttpResponseBase:
    """Answer 503 with each missing part in `fields`.

    A silent doorbell is not missing: workers poll by themselves.
    """
    query.read(request, is_paged=False)
    missing = what_is_missing()
    if not missing:
        late = doorbell_problem()
        warnings = (Note(code="queue_delayed", text=late),) if late else ()
        return wire.answer(Readiness(status="ready", warnings=warnings), request)
    detail = " ".join(f"{part}: {words}" for part, words in missing.items())
    request_id = getattr(request, "request_id", "")
    return problems.problem(503, "Not ready to take work", detail, "not_ready", request_id, fields=missing)


@open_to_anyone("GET", "POST", "PUT", "PATCH", "DELETE")
def unknown(request: Request) -> HttpResponseBase:
    """Answer 404 for an unknown address under the API."""
    detail = f"There is no {request.path} in this API. Addresses end with a slash; docs/api-reference.md lists them."
    return problems.problem(404, "There is no such thing", detail, "not_found", getattr(request, "request_id", ""))


class Exposition(BaseRenderer):
    """Prometheus' text format, passed through."""

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
    state.register(_State(read_metrics.metrics()))
    body = generate_latest(state) + generate_latest(_requests())
    return Response(body, content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _requests() -> CollectorRegistry:
    """Return the request metrics: of this process, or of all that share a metrics folder."""
    if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return REQUESTS
    shared = CollectorRegistry()
    MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
    return shared


class _State(Collector):
    def __init__(self, state: Metrics) -> None:
        self._metrics = state

    def collect(self) -> Iterator[Metric]:
        metrics = self._metrics
        yield _gauge("evalboard_runs", "Runs by status.", ["status"], {(name,): n for name, n in metrics.runs.items()})
        yield from self._pools()
        yield _gauge(
            "evalboard_workers", "Workers that have not stopped, by state.", ["pool", "state"], dict(metrics.workers)
        )
        yield GaugeMetricFamily(
            "evalboard_engine_processes", "Engine processes of living workers.", metrics.n_engine_processes
        )
        yield CounterMetricFamily(
            "evalboard_fenced_writes", "Writes refused because the attempt had lost its shard.", metrics.n_fenced
        )
        yield GaugeMetricFamily(
            "evalboard_self_check_failures",
            "Of the newest 1,000 engine processes, those whose self-check stopped giving the same bits.",
            metrics.n_self_check_failures,
        )
        yield _gauge(
            "evalboard_events_last_hour",
            "Lines of runs' histories in the last hour, among the newest 10,000.",
            ["level", "code"],
            dict(metrics.events),
        )
        if metrics.is_doorbell_heard is not None:
            yield GaugeMetricFamily("evalboard_doorbell_up", "1 while Redis answers.", int(metrics.is_doorbell_heard))
        yield GaugeMetricFamily(
            "evalboard_data_free_bytes", "Room on the disk of this server's data folder.", metrics.free_bytes
        )

    def _pools(self) -> Iterator[Metric]:
        pools = self._metrics.pools.items()
        shards = {(pool, "queued"): each.n_queued for pool, each in pools}
        shards |= {(pool, "running"): each.n_running for pool, each in pools}
        yield _gauge("evalboard_shards", "Shards that have not ended, by status.", ["pool", "status"], shards)
        yield _gauge(
            "evalboard_expired_leases",
            "Running shards whose lease has ended and that no sweep has taken back yet.",
            ["pool"],
            {(pool,): each.n_expired for pool, each in pools},
        )
        yield _gauge(
            "evalboard_cases_left",
            "Cases of those shards that have no outcome yet.",
            ["pool"],
            {(pool,): each.n_cases_left for pool, each in pools},
        )
        yield _gauge(
            "evalboard_oldest_claimable_seconds",
            "How long the shard that waits longest could have been claimed.",
            ["pool"],
            {(pool,): each.oldest_seconds for pool, each in pools},
        )


def _gauge(
    name: str, about: str, labels: list[str], values: dict[tuple[str], Any] | dict[tuple[str, str], Any]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, about, labels=labels)
    for label_values, value in sorted(values.items()):
        family.add_metric(label_values, value)
    return family
