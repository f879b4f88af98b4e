"""The client of an external endpoint, made from its row: secrets, limits, and the database's clock."""

from functools import partial
from typing import Any

from django.conf import settings

from evalboard.calling.client import ApiClient, CalledServer
from runs.models import EndpointRecord
from runs.store import DatabaseClock
from runs.work import CallLimits
from worker.engines.named_secrets import read_headers


class OpenAIEngine(ApiClient):
    """Calls one endpoint. limits: shared by all workers; options: the client's."""

    def __init__(self, endpoint: EndpointRecord, *, limits: CallLimits | None = None, **options: Any) -> None:
        server = CalledServer(
            base_url=endpoint.base_url,
            model=endpoint.model_repo,
            hosts=settings.ENDPOINT_HOSTS,
            api=endpoint.api,
            extra_body=endpoint.extra_body,
            name=str(endpoint),
        )
        super().__init__(
            server,
            partial(read_headers, endpoint.auth, endpoint.headers),
            n_failures=endpoint.n_failures,
            limits=limits,
            clock=DatabaseClock() if limits is None else limits.clock,
            **options,
        )
