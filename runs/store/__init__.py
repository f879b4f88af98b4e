"""The lowest slice: SQL helpers, packed columns, trace blocks, run history, addresses, outages."""

from runs.store import bulk, changes, counters, history, imported, own_process, stored_columns, stored_traces, traces
from runs.store.database_clock import DatabaseClock, database_now, instant
from runs.store.images import (
    delete_unused_images,
    forget_images,
    keep_images,
    mark_images,
    stored_digests,
    with_images,
)
from runs.store.imported import NOT_IN_LOG, PROMPT_FILTERED
from runs.store.outage import Outage, notice
from runs.store.own_process import own_place
from runs.store.scored_cases import CaseResponse, ScoredCase, read_case_responses, read_scored
from runs.store.statements import (
    MAX_COUNTED,
    Orders,
    RecordList,
    RowWindow,
    limit_statements,
    limit_statements_here,
    may_decide,
    newest_page,
    ordering_names,
    require_first,
    require_row,
    sort_rows,
    storable,
    take_as_long_as_it_takes,
)
from runs.store.stored_columns import NO_BUCKET, Digests, Indexes, packed_digest
from runs.store.stored_traces import BLOCKS, TracePair, TracePlace
from runs.store.traces import BlockSlot, Key

__all__ = [
    "BLOCKS",
    "MAX_COUNTED",
    "NOT_IN_LOG",
    "NO_BUCKET",
    "PROMPT_FILTERED",
    "BlockSlot",
    "CaseResponse",
    "DatabaseClock",
    "Digests",
    "Indexes",
    "Key",
    "Orders",
    "Outage",
    "RecordList",
    "RowWindow",
    "ScoredCase",
    "TracePair",
    "TracePlace",
    "bulk",
    "changes",
    "counters",
    "database_now",
    "delete_unused_images",
    "forget_images",
    "history",
    "imported",
    "instant",
    "keep_images",
    "limit_statements",
    "limit_statements_here",
    "mark_images",
    "may_decide",
    "newest_page",
    "notice",
    "ordering_names",
    "own_place",
    "own_process",
    "packed_digest",
    "read_case_responses",
    "read_scored",
    "require_first",
    "require_row",
    "sort_rows",
    "storable",
    "stored_columns",
    "stored_digests",
    "stored_traces",
    "take_as_long_as_it_takes",
    "traces",
    "with_images",
]
