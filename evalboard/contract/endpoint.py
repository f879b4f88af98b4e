"""One endpoint, and what its last repeats and its newest check show of it."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Instant, PageAddress, ServerClock, Share, says
from evalboard.contract.baseline import RotationSeen
from evalboard.contract.catalogue import Endpoint
from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.probe import ProbeRow

Seconds = Annotated[float, says(minimum=0)]


class BackendSeen(Contract):
    """One stack among the last responses, and how many of them it gave."""

    fingerprint: Annotated[FingerprintNamed | None, says(description="null: nothing names who gave them")]
    n_responses: Count
    share: Share


class ErrorSeen(Contract):
    """One reason why responses are missing, by its code."""

    code: str
    n: Count


class LastResponses(Contract):
    """What the responses of the last repeats show: at most 20 repeats, and about 20,000 responses."""

    n_repeats: Count
    n_responses: Count
    since: Annotated[Instant | None, says(description="when the first of these repeats ended")]
    until: Annotated[Instant | None, says(description="when the last of them ended")]
    median_seconds: Annotated[Seconds | None, says(description="of a call, or of decoding where workers decode")]
    p95_seconds: Seconds | None
    clock_ahead: ServerClock
    backends: Annotated[tuple[BackendSeen, ...], says(description="the largest first; missing responses have none")]
    errors: Annotated[tuple[ErrorSeen, ...], says(description="the most frequent first")]


class EndpointReport(Endpoint):
    """An endpoint with what its last responses show, its newest check and its newest rotation."""

    last: LastResponses
    check: Annotated[ProbeRow | None, says(description="the newest capability check that has ended")]
    rotated: Annotated[RotationSeen | None, says(description="null: never")]
    url: PageAddress
