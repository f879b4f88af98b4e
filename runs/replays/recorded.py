"""Load the run's own response to a case, for comparison with a replay's answers."""

from dataclasses import dataclass

from evalboard.core.trace import TokenTrace, read_trace
from runs.models import ResponseRecord


@dataclass(frozen=True, slots=True)
class RunResponse:
    """The run's response to the case, and who gave it; no trace where it is missing."""

    trace: TokenTrace
    prompt_digest: bytes | None
    bucket_id: int | None
    fingerprint_id: int | None
    model_id: int | None


def read_run_response(repeat_id: int, case_index: int) -> RunResponse | None:
    """Read a repeat's response to a case; None where it is missing, or has no tokens."""
    response = (
        ResponseRecord.objects.filter(repeat=repeat_id, case_index=case_index)
        .select_related("engine_process__bucket", "trace_block")
        .first()
    )
    if response is None or response.trace_block is None or response.trace_slot is None:
        return None
    bucket = response.engine_process.bucket if response.engine_process else None
    return RunResponse(
        trace=read_trace(bytes(response.trace_block.data), response.trace_slot),
        prompt_digest=None if response.prompt_digest is None else bytes(response.prompt_digest),
        bucket_id=bucket.pk if bucket else None,
        fingerprint_id=bucket.fingerprint_id if bucket else None,
        model_id=bucket.model_id if bucket else None,
    )
