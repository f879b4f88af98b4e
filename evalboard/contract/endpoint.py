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

    fingerprint: Annotated[FingerprintNamed | None, says(description="null: the backend is not named")]
    n_responses: Count
    share: Share


class ErrorSeen(Contract):
    """A reason for missing responses, by code."""

    code: str
    n: Count


class LastResponses(Contract):
    """Statistics of the last repeats: at most 20 repeats, and about 20,000 responses."""

    n_repeats: Count
    n_responses: Count
    since: Annotated[Instant | None, says(description="end of the first of these repeats")]
    until: Annotated[Instant | None, says(description="end of the last of these repeats")]
    median_seconds: Annotated[Seconds | None, says(description="of a call, or of decoding on our workers")]
    p95_seconds: Seconds | None
    clock_ahead: ServerClock
    backends: Annotated[tuple[BackendSeen, ...], says(description="largest first; without missing responses")]
    errors: Annotated[tuple[ErrorSeen, ...], says(description="the most frequent first")]


class HourServed(Contract):
    """The responses of one hour, by who gave them."""

    at: Annotated[Instant, says(description="when the hour began")]
    n_responses: Count
    backends: Annotated[tuple[BackendSeen, ...], says(description="largest first")]


class EndpointReport(Endpoint):
    """An endpoint with what its last responses show, its newest check and its newest rotation."""

    last: LastResponses
    hours: Annotated[
        tuple[HourServed, ...],
        says(description="last 7 days, oldest first; hours without a response and missing responses are left out"),
    ] = ()
    check: Annotated[ProbeRow | None, says(description="the newest finished capability check")]
    fitting_profile: Annotated[
        str | None, says(description="the built-in profile that fits what the newest check saw; null: not checked")
    ]
    compared_by: Annotated[
        str | None, says(description="which profile fits and by what answers are compared; null: not checked")
    ]
    rotated: Annotated[RotationSeen | None, says(description="null: never")]
    url: PageAddress
