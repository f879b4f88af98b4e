"""Replays: one case of a run, or one request of production, decoded again."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Id, Instant, Number, PageAddress, says
from evalboard.contract.trace import Trace


class ProductionAnswer(Contract):
    """The answer under production's settings, of the first variant that has one."""

    text: str
    bucket: Id | None
    sampling: Annotated[dict[str, Any], says(description="as sent to the engine, including token limit and stops")]
    engine: Annotated[dict[str, Any], says(description="settings in effect, read back from the engine")]
    trace: Annotated[Trace | None, says(description="each token with its alternatives; null in a list")]


class Production(Contract):
    """Under which settings a replay was decoded that are not its run's."""

    endpoint: str
    profile: str
    profile_version: Number
    model: Annotated[str | None, says(description="the name in the request; the endpoint's own model decodes it")]
    not_sent: Annotated[tuple[str, ...], says(description="request fields that were not sent to the engine")]
    from_profile: Annotated[tuple[str, ...], says(description="sampling settings taken from the profile")]
    answer: ProductionAnswer | None


class Replay(Contract):
    """One case of a run, or one request of production, decoded again."""

    id: Id
    run: Annotated[Id | None, says(description="null for a request of production")]
    repeat: Number | None
    case: str | None
    status: Annotated[str, says(enum=("queued", "running", "finished", "failed"))]
    variants: tuple[dict[str, Any], ...]
    results: Annotated[tuple[dict[str, Any], ...], says(description="one per variant")]
    reading: Annotated[tuple[str, ...], says(description="the findings in sentences; empty until it has ended")]
    error: Annotated[str | None, says(description="why no variant was answered")]
    production: Annotated[
        Production | None,
        says(description="null: under the run's own settings; otherwise in no score and no comparison"),
    ]
    created_by: str | None
    created_at: Instant
    finished_at: Instant | None
    url: PageAddress

    @property
    def is_terminal(self) -> bool:
        return self.status in ("finished", "failed")

    @property
    def title(self) -> str:
        """Return what was decoded: a case of a run, or a request."""
        if self.run is None:
            return "a request of production"
        return f"case {self.case}, run {self.run} repeat {self.repeat}"
