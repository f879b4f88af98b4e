"""Which client a worker calls an endpoint through: one that is open where it may be, and never too many of them."""

from collections.abc import Generator, Iterable
from typing import Any

import pytest

from evalboard.calling.calls import CallOutcome, DecodeRequest, EndpointRefused
from runs.models import EndpointRecord, WorkerRecord
from worker.calls import MAX_OPEN, OpenClients


class RecordingClient:
    """A client that makes no calls and lists what was done with it."""

    def __init__(self, endpoint: EndpointRecord, **how: Any) -> None:
        self.endpoint, self.how = endpoint, how
        self.done: list[str] = []

    def open(self) -> None:
        self.done.append("open")
        if not self.endpoint.base_url:
            raise EndpointRefused("The endpoint's address names no host.")

    def decode(self, requests: Iterable[DecodeRequest]) -> Generator[CallOutcome, None, None]:
        yield from ()

    def abort(self) -> None:
        self.done.append("abort")

    def stop(self) -> None:
        self.done.append("stop")
        raise OSError("already closed")


def endpoint(number: int = 1, **fields: Any) -> EndpointRecord:
    return EndpointRecord(pk=number, **{"base_url": "https://models.example/v1", "model_repo": "paint-1b", **fields})


@pytest.fixture
def calls() -> OpenClients:
    return OpenClients(RecordingClient, worker=WorkerRecord(pk=1))


def opened(calls: OpenClients, target: EndpointRecord, **how: Any) -> RecordingClient:
    client = calls.open_for(target, **{"is_alone": False, **how})
    assert isinstance(client, RecordingClient)
    return client


def test_one_client_stays_open_between_two_pieces_of_work(calls: OpenClients, settings: Any) -> None:
    settings.RESPONSE_SECONDS, settings.FIRST_BYTE_SECONDS = 77, 70
    first = opened(calls, endpoint())
    assert opened(calls, endpoint()) is first
    assert first.done == ["open"]
    first.how.pop("limits")
    assert first.how == {
        "response_seconds": 77,
        "first_byte_seconds": 70,
        "concurrency": 8,
        "learns": True,
        "refused": (),
    }


@pytest.mark.parametrize(
    ("fields", "how"),
    [
        ({"base_url": "https://other.example/v1"}, {}),
        ({"model_repo": "paint-2b"}, {}),
        ({"auth": "THEIR_API_KEY"}, {}),
        ({"headers": {"X-Team": "7"}}, {}),
        ({"extra_body": {"provider": "east"}}, {}),
        ({"api": "responses"}, {}),
        ({"concurrency": 2}, {}),
        ({}, {"is_alone": True}),
        ({}, {"learns": False}),
        ({}, {"refused": ["temperature"]}),
    ],
)
def test_what_a_client_is_made_of_has_changed_so_another_one_takes_its_place(
    calls: OpenClients, fields: dict[str, Any], how: dict[str, Any]
) -> None:
    first, neighbour = opened(calls, endpoint()), opened(calls, endpoint(2))
    other = opened(calls, endpoint(**fields), **how)
    assert other is not first
    assert (first.done, other.done, neighbour.done) == (["open", "stop"], ["open"], ["open"])


def test_the_client_that_was_used_longest_ago_is_closed_first(calls: OpenClients) -> None:
    clients = [opened(calls, endpoint(number)) for number in range(MAX_OPEN)]
    opened(calls, endpoint(0))  # used again, so that the second is the oldest now
    opened(calls, endpoint(MAX_OPEN))
    assert [client.done[-1] for client in clients] == ["open", "stop", *["open"] * (MAX_OPEN - 2)]
    assert opened(calls, endpoint(0)) is clients[0]
    assert opened(calls, endpoint(1)) is not clients[1]


def test_an_endpoint_that_is_refused_leaves_no_client(calls: OpenClients) -> None:
    for _ in range(2):
        with pytest.raises(EndpointRefused):
            opened(calls, endpoint(base_url=""))
    calls.abort()  # nothing is under way


def test_a_client_that_is_discarded_is_closed_and_not_used_again(calls: OpenClients) -> None:
    client = opened(calls, endpoint())
    calls.discard(client)
    assert client.done[-1] == "stop"
    assert opened(calls, endpoint()) is not client


def test_calling_off_reaches_the_client_in_use_and_closing_reaches_all(calls: OpenClients) -> None:
    first, second = opened(calls, endpoint(1)), opened(calls, endpoint(2))
    calls.abort()
    assert (first.done, second.done) == (["open"], ["open", "abort"])
    calls.close()
    assert (first.done[-1], second.done[-1]) == ("stop", "stop")
