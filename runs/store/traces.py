"""Store a run's traces without duplicates: in loose blocks while a shard runs, then in final ones."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db import connection

from evalboard.core.trace import TokenTrace, encode_block, read_block
from runs.models import ResponseRecord, Shard, TraceBlock

TRACES_PER_BLOCK = 32
BLOCKS_AT_ONCE = 8  # in one statement, some hundred kilobytes

MOVE = """
UPDATE runs_response
   SET trace_block_id = place.block_id, trace_slot = place.slot
  FROM unnest(%s::bigint[], %s::bigint[], %s::integer[]) AS place (response_id, block_id, slot)
 WHERE runs_response.id = place.response_id
"""
# The ORM would read blocks and responses first. A response that is left in one of them stops the transaction.
DELETE = "DELETE FROM runs_traceblock WHERE id = ANY(%s)"

Key = tuple[int, bytes]  # case index, trace digest


class BlockSlot(NamedTuple):
    block_id: int
    slot: int


class Loose(NamedTuple):
    """A trace as it was stored when its response came; its block may still be packed with others."""

    response_id: int
    key: Key
    place: BlockSlot


@dataclass(frozen=True, slots=True)
class Stored:
    """A run's stored traces of some cases: a repeat's cases, its loose traces, and all final ones."""

    case_indexes: frozenset[int]
    loose: Sequence[Loose]
    final: Mapping[Key, BlockSlot]


def stored(*, run_id: int, repeat_id: int, indexes: Iterable[int]) -> Stored:
    """Return what is stored of some cases, for one repeat of the run."""
    rows = ResponseRecord.objects.filter(repeat__run=run_id, case_index__in=list(indexes)).order_by("case_index")
    case_indexes: set[int] = set()
    loose: list[Loose] = []
    final: dict[Key, BlockSlot] = {}
    for response_id, repeat, index, digest, block_id, slot, is_final in rows.values_list(
        "id", "repeat_id", "case_index", "trace_digest", "trace_block_id", "trace_slot", "trace_block__is_packed"
    ):
        if repeat == repeat_id:
            case_indexes.add(index)
        if digest is None or block_id is None or slot is None:
            continue  # missing
        key, place = (index, bytes(digest)), BlockSlot(block_id, slot)
        if is_final:
            final[key] = place
        elif repeat == repeat_id:
            loose.append(Loose(response_id, key, place))
    return Stored(frozenset(case_indexes), loose, final)


def store_blocks(run_id: int, members: Sequence[tuple[Key, TokenTrace]], *, is_final: bool) -> dict[Key, BlockSlot]:
    """Write the traces in as few blocks as possible, in one statement; return the place of each."""
    parts = [members[start : start + TRACES_PER_BLOCK] for start in range(0, len(members), TRACES_PER_BLOCK)]
    blocks = [
        TraceBlock(
            run_id=run_id,
            data=encode_block([trace for _, trace in part]),
            n_traces=len(part),
            is_packed=is_final,
        )
        for part in parts
    ]
    TraceBlock.objects.bulk_create(blocks, batch_size=BLOCKS_AT_ONCE)
    return {
        key: BlockSlot(block.pk, slot)
        for block, part in zip(blocks, parts, strict=True)
        for slot, (key, _) in enumerate(part)
    }


def pack_shard(shard: Shard, *, run_id: int) -> None:
    """Make the traces of a finished shard final; one that the run has already is only referenced.

    Runs inside the transaction that ends the shard. Only final blocks are referenced: they never move.
    """
    loose = stored(run_id=run_id, repeat_id=shard.repeat_id, indexes=range(shard.first, shard.last + 1))
    block_ids = _kept_blocks(loose)
    if block_ids:
        TraceBlock.objects.filter(pk__in=block_ids).update(is_packed=True)
    moving = [trace for trace in loose.loose if trace.place.block_id not in block_ids]
    if moving:
        _move(moving, _final_places(run_id, moving, loose.final))


def _kept_blocks(loose: Stored) -> set[int]:
    """Return the blocks that become final unchanged, because repacking would not make them fewer.

    They are the full ones, which is how a fast engine's outcomes come, and one that is not full if it is the only one.
    None of their traces is stored elsewhere.
    """
    n_traces = Counter(trace.place.block_id for trace in loose.loose)
    doubled = {trace.place.block_id for trace in loose.loose if trace.key in loose.final}
    full = {block_id for block_id, n in n_traces.items() if n >= TRACES_PER_BLOCK} - doubled
    rest = set(n_traces) - full
    return full if len(rest) > 1 or rest & doubled else full | rest


def _final_places(run_id: int, moving: Sequence[Loose], final: Mapping[Key, BlockSlot]) -> list[BlockSlot]:
    """Return the final place of each trace, in the given order; traces new to the run are packed."""
    fresh = [trace for trace in moving if trace.key not in final]
    blocks = TraceBlock.objects.filter(pk__in={trace.place.block_id for trace in fresh})
    read = {block.pk: read_block(bytes(block.data)) for block in blocks}
    members = [(trace.key, read[trace.place.block_id][trace.place.slot]) for trace in fresh]
    places = {**final, **store_blocks(run_id, members, is_final=True)}
    return [places[trace.key] for trace in moving]


def _move(moving: Sequence[Loose], places: Sequence[BlockSlot]) -> None:
    block_ids, slots = zip(*places, strict=True)
    with connection.cursor() as cursor:
        cursor.execute(MOVE, [[trace.response_id for trace in moving], list(block_ids), list(slots)])
        cursor.execute(DELETE, [list({trace.place.block_id for trace in moving})])
