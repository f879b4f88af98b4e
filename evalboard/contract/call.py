"""How one call to a server of others went, by the worker that made it."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Instant, Number, ServerClock, says


class CallFacts(Contract):
    """How a call went. What the server does not say is null or empty.

    Both instants are by the database's clock; of calls without `worker_ahead`, which are older, by the worker's.
    """

    started_at: Instant
    ended_at: Instant
    n_tries: Annotated[Number, says(minimum=1, description="with those that failed before it")]
    status: Annotated[Number | None, says(description="of HTTP; null where no answer came")]
    response_id: Annotated[str, says(description="the body's `id`")]
    request_id: Annotated[str, says(description="of the header `x-request-id`")]
    seed_echoed: Annotated[Count | None, says(description="where the body has one")]
    system_fingerprint: str
    backend: Annotated[str, says(description="what names the backend; empty where nothing does")]
    backend_from: Annotated[str, says(description="which header or field named it")]
    model_reported: str
    n_tokens: Annotated[Count | None, says(description="of the answer, by the server's own count")]
    n_prompt_tokens: Count | None
    left_out: Annotated[tuple[str, ...], says(description="settings of the profile that were not sent")]
    dropped: Annotated[tuple[str, ...], says(description="fields of the answer that could not be read")] = ()
    clock_ahead: ServerClock = None
    worker_ahead: Annotated[
        float | None, says(description="seconds by which the worker's own clock was ahead of the database's")
    ] = None
