"""Baselines: the run that the candidates of a model line are held against, and the rotation that ends its time."""

from typing import Annotated

from evalboard.contract.base import Contract, Id, Instant, page_only, says
from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.run import RunRow
from evalboard.core.profile import MovedField


class RotationSeen(Contract):
    """The rotation that made a baseline expire."""

    at: Instant
    endpoint: str
    profile: str
    run: Id
    before: FingerprintNamed
    after: FingerprintNamed
    id: int = page_only
    n_expired: int = page_only  # baselines that it made expire
    moved: tuple[MovedField, ...] = page_only  # in the manifest
    reference_runs: tuple[int, ...] = page_only  # of reference sets, started by themselves after it

    @property
    def run_id(self) -> int:
        """Return the first run that the new fingerprint served."""
        return int(self.run)


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
    expired: Annotated[
        RotationSeen | None, says(description="the rotation after which it ships nothing; null while it holds")
    ]

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
