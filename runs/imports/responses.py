"""The responses of a log as a run's rows: texts, traces, columns and scores."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

import numpy as np

from evalboard.core import scoring
from evalboard.core.trace import TokenTrace, unpack_selection
from evalboard.importers.records import LoggedResponse, LoggedRun, LoggedScore
from evalboard.importers.spelling import is_measured
from evalboard.logged.answers import answer_fields, pack_unmeasured
from evalboard.logged.runs import why_missing
from evalboard.logged.times import Times, believed
from runs.imports.buckets import LoggedServing
from runs.imports.import_suites import recorded_scorer
from runs.models import EngineProcess, RepeatRecord, ResponseRecord, RunRecord, Scorer
from runs.store import BlockSlot, Key, bulk, traces
from runs.work import rollup

ROWS_AT_ONCE = 2000

Responses = Mapping[tuple[int, int], LoggedResponse]  # (repeat, case index) → what the log has
Traces = Mapping[tuple[int, int], TokenTrace]


def store_responses(
    run: RunRecord,
    repeats: Sequence[RepeatRecord],
    answers: Responses,
    decoded: Traces,
    served: LoggedServing,
    times: Times,
) -> dict[int, set[int]]:
    """Store a response per case and repeat, missing if not in the log.

    Return repeat id → engine processes.
    """
    places = _store_traces(run, {key: trace for key, trace in decoded.items() if is_measured(answers[key])})
    rows: list[ResponseRecord] = []
    links: dict[int, set[int]] = defaultdict(set)
    for repeat in repeats:
        n_cases = run.suite_version.n_cases
        chosen = np.ones(n_cases) if repeat.cases is None else unpack_selection(bytes(repeat.cases), n_cases)
        for index in np.flatnonzero(chosen).tolist():
            response = answers.get((repeat.index, index))
            if response is None or response.error:
                rows.append(_missing(repeat, index, response, times))
                continue
            process = served.by(response)
            links[repeat.pk].add(process.pk)
            trace = decoded.get((repeat.index, index))
            place = None if trace is None or not is_measured(response) else places.get((index, trace.digest))
            rows.append(_row(repeat, index, response, process, trace, place, times))
            if len(rows) >= ROWS_AT_ONCE:
                bulk.copy_rows(rows)
                rows = []
    bulk.copy_rows(rows)
    return links


def store_scores(run: RunRecord, repeat: RepeatRecord, logged: LoggedRun, answers: Responses) -> None:
    """Score a repeat by the suite's scorer, and store the tool's own scores too."""
    own = run.suite_version.scorer
    n_cases = run.suite_version.n_cases
    mine = {index: each for (number, index), each in answers.items() if number == repeat.index and not each.error}
    if not scoring.is_recorded(own.spec):
        repeat.run = run
        rollup.score_repeat(repeat, own)
    for name in logged.scorers:
        given = {index: each.scores[name] for index, each in mine.items() if name in each.scores}
        if given:
            _keep(repeat, recorded_scorer(logged, name), given, n_cases)


def _keep(repeat: RepeatRecord, scorer: Scorer, given: Mapping[int, LoggedScore], n_cases: int) -> None:
    scores = np.full(n_cases, np.nan)
    reasons: list[str | None] = [None] * n_cases
    for index, each in given.items():
        if each.value is not None:
            scores[index] = each.value
        reasons[index] = scoring.capped(each.reason) or None
    rollup.store_scores(repeat, scorer, scores, reasons)


def _store_traces(run: RunRecord, decoded: Traces) -> dict[Key, BlockSlot]:
    """Final blocks of traces, equal ones of a case once."""
    different = {(index, trace.digest): trace for (_, index), trace in decoded.items()}
    return traces.store_blocks(run.pk, sorted(different.items(), key=lambda member: member[0][0]), is_final=True)


def _row(
    repeat: RepeatRecord,
    index: int,
    response: LoggedResponse,
    process: EngineProcess,
    trace: TokenTrace | None,
    place: BlockSlot | None,
    times: Times,
) -> ResponseRecord:
    return ResponseRecord(
        repeat=repeat,
        case_index=index,
        engine_process=process,
        attempt=1,
        recorded_at=_recorded_at(response, times),
        trace_block_id=place and place.block_id,
        trace_slot=place and place.slot,
        unmeasured_trace=pack_unmeasured(response, trace),
        **answer_fields(response, trace),
    )


def _missing(repeat: RepeatRecord, index: int, response: LoggedResponse | None, times: Times) -> ResponseRecord:
    code, detail = why_missing(response)
    return ResponseRecord(
        repeat=repeat,
        case_index=index,
        attempt=1,
        error_code=code,
        error_detail=detail,
        recorded_at=_recorded_at(response, times),
    )


def _recorded_at(response: LoggedResponse | None, times: Times) -> datetime:
    """Return when the answer came according to the log, else the time of the import."""
    answered_at = None if response is None else believed(response.answered_at, now=times.imported_at)
    return answered_at or times.imported_at
