"""The interface of a worker's loop to every kind of work (`Job`), and shared parts (`Station`)."""

import time
from collections.abc import Mapping
from typing import Any, Protocol

from evalboard.calling.calls import DecodeRequest, EngineFailure
from evalboard.core.profile import find_profile_refusal, find_size_refusal, parse_profile
from runs.models import WorkerRecord
from runs.store import with_images
from runs.work import Beat, CaseToDecode, Lease, Requests, Serving, beat, leave_alone, self_test_result
from worker.calls import OpenClients
from worker.heartbeat import Heartbeat
from worker.session import EngineSession

LEFT_ALONE_SECONDS = 60.0  # after that a worker tries again: its engine may have been updated since
MAX_LAST_LINES = 20


class WorkInterrupted(Exception):
    """The work on a row must end before it is done: its lease is lost, or the worker is to stop."""


class Job(Protocol):
    """One kind of work, as the loop of `worker.runner` does it row by row.

    The loop claims a row and renews its lease while `work` runs; it lets the row go where that was interrupted, and
    gives it up where anything went wrong. A lease that is lost is left as it is: another attempt has the row.
    """

    def claim(self) -> Lease | None:
        """Claim the next row for this worker; None where there is none."""

    def resume(self) -> Lease | None:
        """Return the lease of a row that this worker still has, after the database was away; None without any."""

    def renew(self, *, lease: Lease) -> Beat:
        """Extend a valid lease. Called from a separate thread."""

    def work(self, lease: Lease, heartbeat: Heartbeat) -> None:
        """Do the work and end the row, or leave it to other workers. Raises Interrupted, and LeaseLost."""

    def let_go(self, lease: Lease, reason: str) -> None:
        """Give the row back in good order: the attempt does not count against it."""

    def fail(self, lease: Lease, reason: str) -> None:
        """Give the row up: the attempt ended badly."""


class Station:
    """A worker's engine session and clients of external servers, which its jobs share."""

    def __init__(
        self, *, worker: WorkerRecord, hardware: Mapping[str, Any], session: EngineSession, calls: OpenClients
    ) -> None:
        self.worker = worker
        self.session = session
        self.calls = calls
        self.is_stopping = False  # no Event: a signal handler sets it, and may not wait for an Event's lock
        self.rests_until = float("-inf")  # monotonic
        self._hardware = hardware
        self._left_alone: dict[tuple[str, int], float] = {}  # until when, monotonic

    def must_end(self, heartbeat: Heartbeat) -> bool:
        return self.is_stopping or heartbeat.must_stop

    def check(self, heartbeat: Heartbeat) -> None:
        """Raise Interrupted if the work must end; the engine's answers may be incomplete then."""
        if self.must_end(heartbeat):
            raise WorkInterrupted

    def find_refusal(self, serving: Serving) -> str | None:
        """Say why this worker cannot honour endpoint and profile; None where it can. A call needs no hardware."""
        if serving.endpoint.is_remote:
            return None
        sizes = serving.endpoint.sizes
        return find_size_refusal([self._hardware], sizes) or find_profile_refusal(
            parse_profile(serving.profile_settings),
            self._hardware,
            host=self.worker.host,
            self_test_result=self_test_result(self.worker.pk),
            sizes=sizes,
        )

    def abort(self) -> None:
        """End the current work early; callable from another thread."""
        self.session.abort()
        self.calls.abort()

    def note(self, text: str) -> None:
        """Say what the worker does."""
        beat(worker=self.worker, note=text)

    def leave_alone(self, noun: str, key: int, why: str) -> None:
        """Leave a run, a probe or a forced scoring to others for a while, and say why."""
        self.skip(noun, key)
        leave_alone(worker=self.worker, noun=noun, key=key, why=why)

    def skip(self, noun: str, key: int) -> None:
        """Claim nothing of a run, a probe or a forced scoring for a while."""
        self._left_alone[noun, key] = time.monotonic() + LEFT_ALONE_SECONDS

    def left_alone(self, noun: str) -> frozenset[int]:
        """Return the ids of those that this worker claims nothing of at present."""
        now = time.monotonic()
        self._left_alone = {place: until for place, until in self._left_alone.items() if until > now}
        return frozenset(key for kind, key in self._left_alone if kind == noun)

    @property
    def is_resting(self) -> bool:
        return time.monotonic() < self.rests_until

    @property
    def is_picky(self) -> bool:
        """Return whether the worker's note explains why it does not take waiting work."""
        now = time.monotonic()
        return self.is_resting or any(until > now for until in self._left_alone.values())


class RequestedJob:
    """A job on one kind of requested rows, its `requests`."""

    requests: Requests[Any]

    def __init__(self, station: Station) -> None:
        self._station = station
        self._session = station.session

    def resume(self) -> Lease | None:
        return self.requests.resume(worker=self._station.worker)

    def renew(self, *, lease: Lease) -> Beat:
        return self.requests.renew(lease=lease)

    def let_go(self, lease: Lease, reason: str) -> None:
        self.requests.release(lease=lease, reason=reason, may_fail=False)

    def fail(self, lease: Lease, reason: str) -> None:
        self.requests.release(lease=lease, reason=reason, may_fail=True)


def describe_failure(failure: EngineFailure) -> str:
    """Describe a failure, with the end of the engine's own output."""
    lines = "\n".join(failure.last_words.splitlines()[-MAX_LAST_LINES:])
    return f"{failure.detail}\n{lines}".strip()


def make_request(case: CaseToDecode, sampling: Mapping[str, Any], *, place: int | None = None) -> DecodeRequest:
    """Return the decoding request of a case with its own seed.

    place: identifies the outcome if the case's index does not.
    """
    return DecodeRequest(
        case_index=case.index if place is None else place,
        messages=with_images(case.messages),
        tools=case.tools,
        sampling={**sampling, "seed": case.seed},
    )
