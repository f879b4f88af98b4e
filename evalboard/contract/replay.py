"""Replays: one case of a run, or one request of production, decoded again."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Id, Instant, Number, PageAddress, says
from evalboard.contract.trace import Trace


class ProductionAnswer(Contract):
    """What came out under production's settings, of the first variant with an answer."""

    text: str
    bucket: Id | None
    sampling: Annotated[dict[str, Any], says(description="as the engine was sent it, limit and stops included")]
    engine: Annotated[dict[str, Any], says(description="settings in effect, as read back from inside the engine")]
    trace: Annotated[Trace | None, says(description="every token with its alternatives; null in a list")]


class Production(Contract):
    """Under which settings a replay was decoded that are not its run's."""

    endpoint: str
    profile: str
    profile_version: Number
    model: Annotated[str | None, says(description="as the request names it; the endpoint decodes it all the same")]
    not_sent: Annotated[tuple[str, ...], says(description="fields of the request that no engine was given")]
    from_profile: Annotated[tuple[str, ...], says(description="sampling that the request leaves to the profile")]
    answer: ProductionAnswer | None


class Replay(Contract):
    """One case of a run, or one request of production, decoded again."""

    id: Id
    run: Annotated[Id | None, says(description="null for a request of production")]
    repeat: Number | None
    case: str | None
    status: Annotated[str, says(enum=("queued", "running", "finished", "failed"))]
    variants: tuple[dict[str, Any], ...]
    results: Annotated[tuple[dict[str, Any], ...], says(description="one for each variant that was tried")]
    reading: Annotated[tuple[str, ...], says(description="sentences on what was found; none until it has ended")]
    error: Annotated[str | None, says(description="why no variant gave an answer")]
    production: Annotated[
        Production | None,
        says(description="null: under the run's own settings. What is not null enters no score and no comparison"),
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
        """Name what was decoded: a case of a run, or a request."""
        if self.run is None:
            return "a request of production"
        return f"case {self.case}, run {self.run} repeat {self.repeat}"
