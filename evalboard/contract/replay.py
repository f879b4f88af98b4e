"""Replays: one case of a run decoded again, as it was or under variants."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Id, Instant, Number, PageAddress, says


class Replay(Contract):
    """One case decoded again."""

    id: Id
    run: Id
    repeat: Number
    case: str
    status: Annotated[str, says(enum=("queued", "running", "finished", "failed"))]
    variants: tuple[dict[str, Any], ...]
    results: Annotated[tuple[dict[str, Any], ...], says(description="one for each variant that was tried")]
    reading: Annotated[tuple[str, ...], says(description="sentences on what was found; none until it has ended")]
    error: Annotated[str | None, says(description="why no variant gave an answer")]
    created_by: str | None
    created_at: Instant
    finished_at: Instant | None
    url: PageAddress

    @property
    def is_terminal(self) -> bool:
        return self.status in ("finished", "failed")
