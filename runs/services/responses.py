"""Responses are stored as they finish; a finished shard's traces are packed together."""

from collections.abc import Iterable, Sequence

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from evalboard.core import codec, digest
from evalboard.core.provenance import Decoded, Failed, Outcome
from evalboard.core.trace import Trace
from runs.models import Case, EngineProcess, Event, Repeat, Response, Shard, TraceBlock
from runs.services import history
from runs.services.leases import Lease, fenced, lease_span
from runs.services.storable import storable

TRACES_PER_BLOCK = 32


def record_outcomes(*, lease: Lease, process: EngineProcess | None, outcomes: Sequence[Outcome]) -> int:
    """Store what came back for some cases of a shard; how many were new. Raises LeaseLost.

    One transaction: the shard's row is locked, so no other attempt can write beside it, and a
    case that has a response already keeps the first one. Recording renews the lease.
    """
    with transaction.atomic():
        shard = fenced(lease)
        indexes = [outcome.case_index for outcome in outcomes]
        stored = set(
            Response.objects.filter(repeat=lease.repeat_id, case_index__in=indexes).values_list("case_index", flat=True)
        )
        fresh = [outcome for outcome in outcomes if outcome.case_index not in stored]
        _insert(lease, process, fresh)
        if process is not None and fresh:
            links = Repeat.engine_processes.through
            link = links(repeat_id=lease.repeat_id, engineprocess_id=process.pk)
            links.objects.bulk_create([link], ignore_conflicts=True)
        Shard.objects.filter(pk=shard.pk).update(
            n_done=F("n_done") + len(fresh), lease_until=Now() + lease_span(), in_flight=None
        )
        for failed in fresh:
            if isinstance(failed, Failed):
                _note_failure(lease, failed)
    return len(fresh)


def record_crash(*, shard: Shard, run_id: int, failed: Failed) -> None:
    """Store that a case killed its worker; for the reconciler, which holds the shard's row and no lease."""
    lease = Lease(shard.pk, shard.attempt, shard.owner_id or 0, run_id, shard.repeat_id)
    if Response.objects.filter(repeat=shard.repeat_id, case_index=failed.case_index).exists():
        return
    _insert(lease, None, [failed])
    shard.n_done += 1
    _note_failure(lease, failed)


def pack_shard(shard: Shard) -> None:
    """Repack a finished shard's traces into final blocks; a trace that an earlier repeat holds is referred to.

    Runs inside the transaction that ends the shard. Only final blocks are referred to: they never move.
    """
    run_id = shard.repeat.run_id
    rows = list(
        Response.objects.filter(repeat=shard.repeat_id, case_index__range=(shard.first, shard.last))
        .exclude(trace_block=None)
        .order_by("case_index")
    )
    loose_ids = {row.trace_block_id for row in rows if row.trace_block_id is not None}
    blocks = TraceBlock.objects.filter(pk__in=loose_ids)
    loose = {block.pk: codec.read_block(bytes(block.data)) for block in blocks}
    known = _packed_traces(run_id, shard)
    fresh: list[tuple[Response, Trace]] = []
    for row in rows:
        trace = loose[row.trace_block_id or 0][row.trace_slot or 0]  # both are set: rows without were left out
        place = known.get((row.case_index, trace.digest))
        if place is None:
            fresh.append((row, trace))
        else:
            row.trace_block_id, row.trace_slot = place
    for start in range(0, len(fresh), TRACES_PER_BLOCK):
        _store_block(run_id, fresh[start : start + TRACES_PER_BLOCK])
    Response.objects.bulk_update(rows, ["trace_block", "trace_slot"], batch_size=500)
    blocks.filter(is_packed=False).delete()


def _insert(lease: Lease, process: EngineProcess | None, outcomes: Iterable[Outcome]) -> None:
    decoded = [outcome for outcome in outcomes if isinstance(outcome, Decoded)]
    rows = [_missing_row(lease, process, outcome) for outcome in outcomes if isinstance(outcome, Failed)]
    if decoded:
        block = TraceBlock.objects.create(
            run_id=lease.run_id,
            data=codec.encode_block([outcome.trace for outcome in decoded]),
            n_traces=len(decoded),
        )
        rows += [_row(lease, process, outcome, block, slot) for slot, outcome in enumerate(decoded)]
    Response.objects.bulk_create(rows)


def _row(lease: Lease, process: EngineProcess | None, outcome: Decoded, block: TraceBlock, slot: int) -> Response:
    return Response(
        repeat_id=lease.repeat_id,
        case_index=outcome.case_index,
        engine_process=process,
        attempt=lease.attempt,
        text=storable(outcome.text),  # the trace and the text's digest keep the exact bytes
        finish_reason=outcome.finish_reason,
        trace_block=block,
        trace_slot=slot,
        text_digest=digest.text_digest(outcome.text),
        trace_digest=outcome.trace.digest,
        prompt_digest=outcome.prompt_digest,
        n_tokens=len(outcome.trace),
        n_prompt_tokens=outcome.n_prompt_tokens,
        n_cached_tokens=outcome.n_cached_tokens,
        n_preemptions=outcome.n_preemptions,
        batch_min=outcome.batch_min,
        batch_max=outcome.batch_max,
        seed_sent=outcome.seed_sent,
        request_id=outcome.request_id,
        queued_seconds=outcome.timings.queued_seconds,
        prefill_seconds=outcome.timings.prefill_seconds,
        decode_seconds=outcome.timings.decode_seconds,
    )


def _missing_row(lease: Lease, process: EngineProcess | None, outcome: Failed) -> Response:
    return Response(
        repeat_id=lease.repeat_id,
        case_index=outcome.case_index,
        engine_process=process,
        attempt=lease.attempt,
        error_code=outcome.code,
        error_detail=storable(outcome.detail),
    )


def _note_failure(lease: Lease, failed: Failed) -> None:
    case = Case.objects.get(suite_version__runs=lease.run_id, index=failed.case_index)
    history.note(lease.run_id, failed.code, f"Case {case.case_id}: {failed.detail}", level=Event.Level.ERROR)


def _packed_traces(run_id: int, shard: Shard) -> dict[tuple[int, bytes], tuple[int, int]]:
    """Where the run already holds a final trace of these cases: (case, digest) → (block, slot)."""
    rows: Iterable[tuple[int, bytes, int, int]] = Response.objects.filter(
        repeat__run=run_id, case_index__range=(shard.first, shard.last), trace_block__is_packed=True
    ).values_list("case_index", "trace_digest", "trace_block_id", "trace_slot")  # type: ignore[assignment]
    return {(index, bytes(trace)): (block, slot) for index, trace, block, slot in rows}


def _store_block(run_id: int, members: Sequence[tuple[Response, Trace]]) -> None:
    block = TraceBlock.objects.create(
        run_id=run_id,
        data=codec.encode_block([trace for _, trace in members]),
        n_traces=len(members),
        is_packed=True,
    )
    for slot, (row, _) in enumerate(members):
        row.trace_block, row.trace_slot = block, slot
