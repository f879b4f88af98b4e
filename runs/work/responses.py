"""Responses are stored as they finish; a failure is listed in the run's history, as long as that can be read."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from django.db.models import F

from evalboard.core import digest
from evalboard.core.trace import Decoded, Failed, Outcome, is_truncated
from runs.models import Case, EngineProcess, Event, Repeat, Response, Shard
from runs.store import Key, Place, bulk, history, storable, traces
from runs.work import flip_chances
from runs.work.claims import Lease, lease_end
from runs.work.shards import SHARDS

RELATED = ("repeat__run__profile", "repeat__run__suite_version")
FAILURES_TOLD = 20  # of each code in a run's history; the run's page counts them all


def record_outcomes(*, lease: Lease, process: EngineProcess | None, outcomes: Sequence[Outcome]) -> int:
    """Store what came back for some cases of a shard; how many were new. Raises LeaseLost.

    One transaction: the shard's row is locked, so no other attempt can write beside it, and a
    case that has a response already keeps the first one. Recording renews the lease.
    """
    with SHARDS.locked(lease=lease, related=RELATED) as shard:
        run_id, repeat_id = shard.repeat.run_id, shard.repeat_id
        indexes = [outcome.case_index for outcome in outcomes]
        stored = traces.stored(run_id=run_id, repeat_id=repeat_id, indexes=indexes)
        fresh = [outcome for outcome in outcomes if outcome.case_index not in stored.case_indexes]
        _insert(shard, process, fresh, stored.final)
        if process is not None and fresh:
            decoded = [outcome.trace for outcome in fresh if isinstance(outcome, Decoded)]
            flip_chances.remember(shard.repeat, process.bucket, decoded)
            links = Repeat.engine_processes.through
            link = links(repeat_id=repeat_id, engineprocess_id=process.pk)
            links.objects.bulk_create([link], ignore_conflicts=True)
        SHARDS.write(lease=lease, n_done=F("n_done") + len(fresh), lease_until=lease_end(), in_flight=None)
        _note_failures(run_id, [outcome for outcome in fresh if isinstance(outcome, Failed)])
    return len(fresh)


def record_crash(*, shard: Shard, failed: Failed) -> None:
    """Store that a case killed its worker; for the reconciler, which holds the shard's row and no lease."""
    if Response.objects.filter(repeat=shard.repeat_id, case_index=failed.case_index).exists():
        return
    _insert(shard, None, [failed], {})
    shard.n_done += 1
    _note_failures(shard.repeat.run_id, [failed])


def _insert(
    shard: Shard, process: EngineProcess | None, outcomes: Sequence[Outcome], final: Mapping[Key, Place]
) -> None:
    """Store responses; a trace that the run already holds for good is referred to, the others make loose blocks."""
    decoded = [(_key(outcome), outcome) for outcome in outcomes if isinstance(outcome, Decoded)]
    loose = [(key, outcome.trace) for key, outcome in decoded if key not in final]
    places = {**final, **traces.store_blocks(shard.repeat.run_id, loose, is_final=False)}
    rows = [_row(shard, process, outcome, places[key]) for key, outcome in decoded]
    rows += [_missing_row(shard, process, outcome) for outcome in outcomes if isinstance(outcome, Failed)]
    bulk.copy_rows(rows)


def _key(outcome: Decoded) -> Key:
    return outcome.case_index, outcome.trace.digest


def _row(shard: Shard, process: EngineProcess | None, outcome: Decoded, place: Place) -> Response:
    return Response(
        repeat_id=shard.repeat_id,
        case_index=outcome.case_index,
        engine_process=process,
        attempt=shard.attempt,
        text=storable(outcome.text),  # the trace and the text's digest keep the exact bytes
        reasoning=None if outcome.reasoning is None else storable(outcome.reasoning),
        n_reasoning_tokens=outcome.n_reasoning_tokens,
        is_truncated=is_truncated(text=outcome.text, reasoning=outcome.reasoning, finish_reason=outcome.finish_reason),
        finish_reason=outcome.finish_reason,
        trace_block_id=place.block_id,
        trace_slot=place.slot,
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


def _missing_row(shard: Shard, process: EngineProcess | None, outcome: Failed) -> Response:
    return Response(
        repeat_id=shard.repeat_id,
        case_index=outcome.case_index,
        engine_process=process,
        attempt=shard.attempt,
        error_code=outcome.code,
        error_detail=storable(outcome.detail),
    )


def _note_failures(run_id: int, failures: Sequence[Failed]) -> None:
    """Tell each failure with its case, up to FAILURES_TOLD of one code; a last line says that more are only counted.

    Shards that fail at the same moment do not see each other's lines and may tell a few more.
    """
    by_code: defaultdict[str, list[Failed]] = defaultdict(list)
    for failed in failures:
        by_code[failed.code].append(failed)
    for code, alike in by_code.items():
        n_lines = len(Event.objects.filter(run=run_id, code=code).order_by()[: FAILURES_TOLD + 1].values_list("pk"))
        listed = alike[: max(FAILURES_TOLD - n_lines, 0)]
        cases = Case.objects.filter(suite_version__runs=run_id, index__in=[failed.case_index for failed in listed])
        names = dict(cases.values_list("index", "case_id"))
        for failed in listed:
            place = f"Case {names[failed.case_index]}"
            history.note(run_id, code, failed.detail, place=place, level=Event.Level.ERROR)
        if len(listed) < len(alike) and n_lines <= FAILURES_TOLD:
            text = f"More cases ended as {code}: from here on they are counted and no longer listed."
            history.note(run_id, code, text, level=Event.Level.WARNING)
