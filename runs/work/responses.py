"""Store responses as they finish, and note failures in the run's history."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F

from evalboard.calling.calls import Answered, CallOutcome, FailedCall
from evalboard.core import digest
from evalboard.core.trace import Decoded, Ending, Failed, TokenTrace, find_ending, is_truncated
from evalboard.importers.spelling import is_measured
from evalboard.logged.answers import answer_fields, pack_unmeasured
from runs.models import Case, EngineProcess, Event, RepeatRecord, ResponseRecord, Shard
from runs.served import LiveServing
from runs.store import BlockSlot, Key, bulk, history, storable, traces
from runs.work import flip_chances
from runs.work.claims import Lease, lease_end, lost
from runs.work.shards import SHARDS

RELATED = ("repeat__run__profile", "repeat__run__suite_version")
NO_ANSWER = "no_answer"
FAILURES_TOLD = 20  # of each code in a run's history; the run's page counts them all


@dataclass(frozen=True, slots=True)
class ServedAnswer:
    """An external server's answer, with its backend's process and its trace, None without tokens."""

    answered: Answered
    process: EngineProcess
    trace: TokenTrace | None

    @property
    def case_index(self) -> int:
        return self.answered.case_index


Stored = Decoded | Failed | ServedAnswer


def record_outcomes(
    *,
    lease: Lease,
    process: EngineProcess | None,
    outcomes: Sequence[CallOutcome],
    serving: LiveServing | None = None,
) -> int:
    """Store the results of some cases of a shard; return how many were new. Raises LeaseLost.

    One transaction: the shard's row is locked, so no other attempt can write beside it, and a
    case that has a response already keeps the first one. Recording renews the lease.
    serving: who answers the run's calls, where a server of others does; `process` is then None.
    """
    ready = _placed(lease, outcomes, serving)
    with SHARDS.locked(lease=lease, related=RELATED) as shard:
        run_id, repeat_id = shard.repeat.run_id, shard.repeat_id
        indexes = [outcome.case_index for outcome in ready]
        stored = traces.stored(run_id=run_id, repeat_id=repeat_id, indexes=indexes)
        fresh = [outcome for outcome in ready if outcome.case_index not in stored.case_indexes]
        _insert(shard, process, fresh, stored.final)
        for served_by, theirs in _by_process(process, fresh).items():
            flip_chances.remember(shard.repeat, served_by.bucket, theirs)
            links = RepeatRecord.engine_processes.through
            link = links(repeat_id=repeat_id, engineprocess_id=served_by.pk)
            links.objects.bulk_create([link], ignore_conflicts=True)
        answered = {"n_rests": 0} if any(not isinstance(outcome, Failed) for outcome in fresh) else {}
        SHARDS.write(lease=lease, n_done=F("n_done") + len(fresh), lease_until=lease_end(), in_flight=None, **answered)
        _note_failures(run_id, [outcome for outcome in fresh if isinstance(outcome, Failed)])
    return len(fresh)


def has_answer(*, run_id: int) -> bool:
    """Tell whether any call of a run was answered."""
    return ResponseRecord.objects.filter(repeat__run=run_id, error_code="").exists()


def record_crash(*, shard: Shard, failed: Failed) -> None:
    """Store that a case crashed its worker. For the sweep, which has locked the shard without a lease."""
    if ResponseRecord.objects.filter(repeat=shard.repeat_id, case_index=failed.case_index).exists():
        return
    _insert(shard, None, [failed], {})
    shard.n_done += 1
    _note_failures(shard.repeat.run_id, [failed])


def _placed(lease: Lease, outcomes: Sequence[CallOutcome], serving: LiveServing | None) -> list[Stored]:
    """Return the outcomes with each answer's process. An invalid answer becomes a failure."""
    read = [_failed(each) if isinstance(each, Answered) and each.response.error else each for each in outcomes]
    answers = [each for each in read if isinstance(each, Answered)]
    if not answers:
        return [each for each in read if not isinstance(each, Answered)]
    if serving is None:
        raise ValueError("Answers of an external server need the name of who served them.")
    repeat_id = SHARDS.held_row(lease).values_list("repeat", flat=True).first()
    if repeat_id is None:
        raise lost(lease)
    placed = serving.place([each.response for each in answers], repeat_id=repeat_id)
    by_case = {
        each.case_index: ServedAnswer(each, answer.process, answer.trace)
        for each, answer in zip(answers, placed, strict=True)
    }
    return [by_case[each.case_index] if isinstance(each, Answered) else each for each in read]


def _failed(answered: Answered) -> FailedCall:
    return FailedCall(answered.case_index, NO_ANSWER, answered.response.error, answered.call)


def _by_process(process: EngineProcess | None, fresh: Sequence[Stored]) -> dict[EngineProcess, list[TokenTrace]]:
    """The engine processes that gave these, failures included, with the traces of each."""
    by_process: dict[EngineProcess, list[TokenTrace]] = {process: []} if process is not None and fresh else {}
    for outcome in fresh:
        if isinstance(outcome, Failed):
            continue
        served_by = outcome.process if isinstance(outcome, ServedAnswer) else process
        if served_by is None:
            continue
        theirs = by_process.setdefault(served_by, [])
        if (trace := _measured(outcome)) is not None:
            theirs.append(trace)
    return by_process


def _insert(
    shard: Shard, process: EngineProcess | None, outcomes: Sequence[Stored], final: Mapping[Key, BlockSlot]
) -> None:
    """Store responses; traces that the run already has in final blocks are only referenced."""
    decoded = [outcome for outcome in outcomes if not isinstance(outcome, Failed)]
    measured = [(each.case_index, trace) for each in decoded if (trace := _measured(each)) is not None]
    traced = [((case_index, trace.digest), trace) for case_index, trace in measured]
    loose = [(key, trace) for key, trace in traced if key not in final]
    places = {**final, **traces.store_blocks(shard.repeat.run_id, loose, is_final=False)}
    rows = [_row(shard, process, outcome, places) for outcome in decoded]
    rows += [_missing_row(shard, process, outcome) for outcome in outcomes if isinstance(outcome, Failed)]
    bulk.copy_rows(rows)


def _measured(outcome: Decoded | ServedAnswer) -> TokenTrace | None:
    """Return the trace that is measured; None where there is none, or its tokens do not spell the answer."""
    is_trace = isinstance(outcome, Decoded) or is_measured(outcome.answered.response)
    return outcome.trace if is_trace else None


def _row(
    shard: Shard, process: EngineProcess | None, outcome: Decoded | ServedAnswer, places: Mapping[Key, BlockSlot]
) -> ResponseRecord:
    trace = _measured(outcome)
    place = None if trace is None else places[outcome.case_index, trace.digest]
    if isinstance(outcome, ServedAnswer):
        return _called_row(shard, outcome, place)
    assert place is not None  # noqa: S101  for the type checker: what is decoded here always has a trace
    return _decoded_row(shard, process, outcome, place)


def _called_row(shard: Shard, placed: ServedAnswer, place: BlockSlot | None) -> ResponseRecord:
    call = placed.answered.call
    return ResponseRecord(
        repeat_id=shard.repeat_id,
        case_index=placed.case_index,
        engine_process=placed.process,
        attempt=shard.attempt,
        decode_seconds=max((call.ended_at - call.started_at).total_seconds(), 0.0),
        call=call.to_json(),
        trace_block_id=place and place.block_id,
        trace_slot=place and place.slot,
        unmeasured_trace=pack_unmeasured(placed.answered.response, placed.trace),
        **answer_fields(placed.answered.response, placed.trace),
    )


def _decoded_row(shard: Shard, process: EngineProcess | None, outcome: Decoded, place: BlockSlot) -> ResponseRecord:
    ending = find_ending(outcome.finish_reason, text=outcome.text)
    return ResponseRecord(
        repeat_id=shard.repeat_id,
        case_index=outcome.case_index,
        engine_process=process,
        attempt=shard.attempt,
        text=storable(outcome.text),  # the trace and the text's digest keep the exact bytes
        reasoning=None if outcome.reasoning is None else storable(outcome.reasoning),
        n_reasoning_tokens=outcome.n_reasoning_tokens,
        is_truncated=is_truncated(text=outcome.text, reasoning=outcome.reasoning, is_cut=ending is Ending.CUT),
        finish_reason=outcome.finish_reason,
        ending=ending or "",
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


def _missing_row(shard: Shard, process: EngineProcess | None, outcome: Failed) -> ResponseRecord:
    return ResponseRecord(
        repeat_id=shard.repeat_id,
        case_index=outcome.case_index,
        engine_process=process,
        attempt=shard.attempt,
        error_code=outcome.code,
        error_detail=storable(outcome.detail),
        call=outcome.call.to_json() if isinstance(outcome, FailedCall) else None,
    )


def _note_failures(run_id: int, failures: Sequence[Failed]) -> None:
    """Note each failure with its case, up to FAILURES_TOLD per code, then that more are only counted.

    Shards that fail at the same moment do not see each other's lines and may note a few more.
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
