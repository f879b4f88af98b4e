"""The facts of one call to an external server, recorded by the worker that made it."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Instant, Number, ServerClock, says


class CallFacts(Contract):
    """How a call went. Null or empty: not reported by the server.

    Both instants are by the database's clock; for calls without `worker_ahead`, which are older, by the worker's.
    """

    started_at: Instant
    ended_at: Instant
    n_tries: Annotated[Number, says(minimum=1, description="including earlier failed tries")]
    status: Annotated[Number | None, says(description="HTTP status; null without an answer")]
    response_id: Annotated[str, says(description="the body's `id`")]
    request_id: Annotated[str, says(description="from the header `x-request-id`")]
    seed_echoed: Annotated[Count | None, says(description="from the body, if present")]
    system_fingerprint: str
    backend: Annotated[str, says(description="the backend's name; empty if not named")]
    backend_from: Annotated[str, says(description="the header or field that named it")]
    model_reported: str
    n_tokens: Annotated[Count | None, says(description="of the answer and its thinking, as counted by the server")]
    n_prompt_tokens: Count | None
    n_reasoning_tokens: Annotated[Count | None, says(description="of them, those of the thinking")] = None
    n_cached_tokens: Annotated[Count | None, says(description="of the prompt's, those read from a cache")] = None
    left_out: Annotated[tuple[str, ...], says(description="profile settings that were not sent")]
    dropped: Annotated[tuple[str, ...], says(description="fields of the answer that could not be parsed")] = ()
    clock_ahead: ServerClock = None
    worker_ahead: Annotated[
        float | None, says(description="seconds that the worker's clock was ahead of the database's")
    ] = None
