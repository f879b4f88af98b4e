"""Clients for external servers, each opened once and reused for all work on its endpoint."""

from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import suppress
from typing import Any, Protocol

from django.conf import settings

from evalboard.calling.calls import CallOutcome, DecodeRequest
from evalboard.core.digest import digest_json
from runs.models import EndpointRecord, WorkerRecord
from runs.work import CallLimits

MAX_OPEN = 4  # endpoints that a worker goes to and fro between


class EndpointClient(Protocol):
    """Makes the calls to one endpoint. Every method but `abort` belongs to one thread."""

    def open(self) -> None:
        """Read the secret and check the address. Raises EndpointRefused."""

    def decode(
        self, requests: Iterable[DecodeRequest], *, is_answered: bool = False
    ) -> Generator[CallOutcome, None, None]:
        """Yield what each request came to as it ends; after `abort` it ends early.

        is_answered: what these requests belong to has answers already. Raises EndpointRefused or EndpointRests; what
        was yielded before stands.
        """

    def abort(self) -> None:
        """Make a decode that is under way end early; another one may follow. Callable from any thread."""

    def stop(self) -> None:
        """Close all connections; harmless when there are none."""


class OpenClients:
    """The open clients of a worker, the one that was used last at the end."""

    def __init__(self, make_client: Callable[..., EndpointClient], *, worker: WorkerRecord) -> None:
        self._make_client = make_client
        self._worker = worker
        self._open: dict[tuple[int, str], EndpointClient] = {}
        self._current: EndpointClient | None = None

    def open_for(
        self, endpoint: EndpointRecord, *, is_alone: bool, learns: bool = True, refused: Collection[str] = ()
    ) -> EndpointClient:
        """Return the endpoint's client, opened where none is. Raises EndpointRefused.

        is_alone: one call at a time, in place of as many as the endpoint takes. learns: what the server refuses by name
        is left out from then on. refused: settings that it is known to refuse, which are never sent.
        """
        key = endpoint.pk, _digest(endpoint, is_alone=is_alone, learns=learns, refused=sorted(refused))
        for other in [one for one in self._open if one[0] == endpoint.pk and one != key]:
            self._close(other)  # the endpoint was changed since
        client = self._open.pop(key, None)
        if client is None:
            client = self._make_client(
                endpoint,
                response_seconds=settings.RESPONSE_SECONDS,
                first_byte_seconds=settings.FIRST_BYTE_SECONDS,
                concurrency=1 if is_alone else endpoint.concurrency,
                learns=learns,
                refused=refused,
                limits=CallLimits(endpoint, worker=self._worker, is_alone=is_alone),
            )
            client.open()
        self._open[key] = self._current = client
        for oldest in list(self._open)[:-MAX_OPEN]:
            self._close(oldest)
        return client

    def discard(self, client: EndpointClient) -> None:
        """Close a client, so that the next piece of work has another one."""
        for key in [key for key, one in self._open.items() if one is client]:
            self._close(key)

    def abort(self) -> None:
        """Call off the calls that are under way; callable from another thread."""
        client = self._current  # read once: the other thread may let it go meanwhile
        if client is not None:
            client.abort()

    def close(self) -> None:
        for key in list(self._open):
            self._close(key)

    def _close(self, key: tuple[int, str]) -> None:
        with suppress(OSError):
            self._open.pop(key).stop()


def _digest(endpoint: EndpointRecord, **how: Any) -> str:
    """Return the digest of a client's settings, so that a changed endpoint gets a new client."""
    fields = ("base_url", "api", "auth", "headers", "extra_body", "model_repo", "concurrency")
    return digest_json({name: getattr(endpoint, name) for name in fields} | how)
