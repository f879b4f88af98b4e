"""Baselines: the run that candidates of a model line are compared with, and the rotation that ends it."""

from typing import Annotated

from evalboard.contract.base import Contract, Id, Instant, optional, page_only, says
from evalboard.contract.manifest import MovedField
from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.run import RunRow


class ReferenceRescored(Contract):
    """The reference-set run that a rotation started, and the previous stack's run; for pages.

    before, after: points of both over the cases that both have, once they are compared.
    """

    run: RunRow
    against: int | None
    before: float | None
    after: float | None
    is_compared: bool


class RotationSeen(Contract):
    """The rotation that made a baseline expire."""

    at: Instant
    endpoint: str
    profile: Annotated[
        str | None, says(description="profile under which another stack answers; null: all, for an external server")
    ]
    run: Annotated[
        Id | None, says(description="the first run that the new stack answered; null if a probe saw it first")
    ]
    probe: Annotated[
        Id | None, says(description="the first probe that the new stack answered; null if a run saw it first")
    ] = optional
    before: FingerprintNamed
    after: FingerprintNamed
    id: int = page_only
    n_expired: int = page_only  # baselines that it made expire
    moved: tuple[MovedField, ...] = page_only  # in the manifest
    rescored: tuple[ReferenceRescored, ...] = page_only  # the reference sets that it started
    problem: str = page_only  # why others could not be started
    is_to_rescore: bool = page_only  # whether they are still to be started

    @property
    def run_id(self) -> int | None:
        """Return the first run that the new fingerprint answered; None if a probe saw it first."""
        return None if self.run is None else int(self.run)

    def is_of(self, *, endpoint: str, profile: str) -> bool:
        """Tell whether the rotation concerns an endpoint and a profile."""
        return self.endpoint == endpoint and self.profile in (None, profile)


class Baseline(Contract):
    """A baseline with its run."""

    id: Id
    suite: str
    line: str
    profile: str
    run: Annotated[RunRow, says(description="as in the list of runs")]
    reason: str
    set_by: str | None
    created_at: Instant
    is_current: Annotated[bool, says(description="whether it is the newest of its suite, model line and profile")]
    expired: Annotated[RotationSeen | None, says(description="the rotation that ended it; null while valid")]

    @property
    def run_id(self) -> int:
        return int(self.run.id)

    @property
    def bucket_id(self) -> int | None:
        return None if self.run.bucket is None else int(self.run.bucket)

    @property
    def is_expired(self) -> bool:
        """Tell whether a rotation made it expire; a current one may have expired too."""
        return self.expired is not None
